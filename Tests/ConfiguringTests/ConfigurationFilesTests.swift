// ConfigurationFilesTests: what is made from the table of keys is as in the repository.

import FoundationEssentials
import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct ConfigurationFilesTests {
  /// Makes a file from the file as it is.
  struct Generated: Sendable, CustomTestStringConvertible {
    let path: String
    let make: @Sendable (String) -> String
    var testDescription: String { path }
  }

  static let files = [
    Generated(path: "config/pictor.json5") {
      $0.prefix { $0 != "{" } + "{\n  $schema: \"pictor.schema.json\",\n"
        + Configuration().json5.dropFirst("{\n".count)
    },
    Generated(path: "config/pictor.schema.json") { _ in Configuration.schema },
    Generated(path: "config/completion/pictor.bash") { _ in Completion.bash },
    Generated(path: "config/completion/_pictor") { _ in Completion.zsh },
    Generated(path: "config/completion/pictor.fish") { _ in Completion.fish },
    Generated(path: "docs/configuration.md") { text in
      let head = "| Key | Variable | Default | For |\n| --- | --- | --- | --- |\n"
      guard let start = text.firstRange(of: head),
        let end = text[start.upperBound...].firstRange(of: "\n\n")
      else { return "no table of keys" }
      return text[..<start.upperBound] + Configuration.documentRows
        + text[text.index(after: end.lowerBound)...]
    },
    Generated(path: "config/man/pictor.1") { _ in ManPage.program },
    Generated(path: "config/man/pictor.json5.5") { _ in ManPage.file },
  ]
  static let commandPages = Invocation.Command.allCases.map { command in
    Generated(path: "config/man/pictor-\(command.rawValue).1") { _ in ManPage.page(of: command) }
  }

  /// With `PICTOR_WRITE_FILES` in the environment, the files are written: `make generated`.
  @Test(arguments: files + commandPages)
  func `a file that is made from the tables says the same`(file: Generated) throws {
    let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let url = URL(filePath: "\(root)/\(file.path)")
    let found = (try? Data(contentsOf: url)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let made = file.make(found)
    if ProcessInfo.processInfo.environment["PICTOR_WRITE_FILES"] != nil {
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(made.utf8).write(to: url)
    }
    #expect(made == found, "make generated writes \(file.path)")
  }

  @Test func `the schema has each key`() throws {
    for key in Configuration.keys {
      var part = RawValue(json5: Configuration.schema)
      for name in key.path.split(separator: ".") {
        part = part?.member("properties")?.member(String(name))
      }
      #expect(part?.member("description")?.text == key.purpose, "\(key.path)")
    }
  }
}

extension RawValue {
  fileprivate func member(_ name: String) -> RawValue? {
    if case .object(let members) = self { members[name] } else { nil }
  }
}
