// ConfigurationFilesTests: the files that tell people about keys say the same as the program.

import FoundationEssentials
import TestSupport
import Testing

@testable import Configuring

@Suite(.onOwnThreads) struct ConfigurationFilesTests {
  private func repositoryFile(_ path: String) throws -> String {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let data = try Data(contentsOf: URL(filePath: "/\(root)/\(path)"))
    return String(decoding: data, as: UTF8.self)
  }

  @Test func `config/pictor.json5 contains the printed defaults`() throws {
    let file = try repositoryFile("config/pictor.json5")
    let body = file[(file.firstIndex(of: "{") ?? file.endIndex)...]
    #expect(String(body) == Configuration().json5)
  }

  @Test func `docs/configuration.md lists each key with its variable and default`() throws {
    let text = try repositoryFile("docs/configuration.md")
    let rows = Configuration.keys.map { key in
      """
      | `\(key.path)`\(key.isLive ? " ⟳" : "") | `\(key.environmentVariable)` | `\(key.literal(in: Configuration()))` | \
      \(key.purpose) |
      """
    }
    let missing = rows.filter { !text.contains($0) }
    #expect(missing.isEmpty, "rows to write:\n\(missing.joined(separator: "\n"))")
  }
}
