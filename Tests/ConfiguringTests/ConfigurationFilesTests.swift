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
    Generated(path: "config/pictor.json5") { $0.prefix { $0 != "{" } + Configuration().json5 },
    Generated(path: "config/pictor.schema.json") { _ in Configuration.schema },
    Generated(path: "config/completion.bash") { _ in Configuration.completion },
    Generated(path: "docs/configuration.md") { text in
      let head = "| Key | Variable | Default | For |\n| --- | --- | --- | --- |\n"
      guard let start = text.firstRange(of: head),
        let end = text[start.upperBound...].firstRange(of: "\n\n")
      else { return "no table of keys" }
      return text[..<start.upperBound] + Configuration.documentRows
        + text[text.index(after: end.lowerBound)...]
    },
  ]

  /// With `PICTOR_WRITE_FILES` in the environment, the files are written: `make generated`.
  @Test(arguments: files)
  func `a file that is made from the table of keys says the same`(file: Generated) throws {
    let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let url = URL(filePath: "\(root)/\(file.path)")
    let found = (try? Data(contentsOf: url)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let made = file.make(found)
    if ProcessInfo.processInfo.environment["PICTOR_WRITE_FILES"] != nil {
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
