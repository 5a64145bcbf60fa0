// ConfigurationFuzzTests: any text as a file is read, or refused with each mistake's place.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct ConfigurationFuzzTests {
  private static let values = [
    "1", "0", "-1", "1.5", "1e999", "0x10", "+3", ".5", "NaN", "Infinity", "9223372036854775808",
    "true",
    "null", "\"auto\"", "\"64MiB\"", "'5s'", "\"99999999TiB\"", "\"\"", "\"\\u0000\"", "[]",
    "[1, \"a\"]",
    "[\"10.0.0.0/8\"]", "{}", "{ a: \"w=3\" }", "\"a.example\"",
    "[{ host: \"a\", proxy: 'http://b' }]",
    "\"env:HOME\"", "\"127.0.0.1:80\"",
  ]
  private static let words: [[UInt8]] = [
    "{", "}", "[", "]", ",", ":", "\"", "'", "\\", "//", "/*", "*/", "\n", "\u{2028}", "null", "-",
    "e9",
    "\u{fffd}", "server", "__proto__", "\\u", "\\x4", "\0",
  ].map { Array($0.utf8) }

  /// Makes a file with some of the keys.
  private static func file(_ random: inout SeededGenerator) -> String {
    var parts: [String: [String]] = [:]
    for _ in 0..<random.number(0...6) {
      guard let path = Configuration.paths.randomElement(using: &random),
        let value = values.randomElement(using: &random)
      else { continue }
      let names = path.split(separator: ".", maxSplits: 1).map(String.init)
      if names.count == 2 {
        parts[names[0], default: []].append("\(names[1]): \(value)")
      } else {
        parts["", default: []].append("\(path): \(value)")
      }
    }
    let members = parts.sorted { $0.key < $1.key }.map { name, members in
      let list = members.joined(separator: random.pick(", ", ",\n", ", // x\n"))
      return name.isEmpty ? list : "\(name): { \(list) }"
    }
    return "{ " + members.joined(separator: ",\n") + random.pick("", ",") + " }"
  }

  @Test func `a file is a configuration that reads as itself, or all its mistakes have a place`()
    throws
  {
    var accepted = 0
    var refused = 0
    try Fuzz.run(
      "configuration", usual: 300,
      make: { random in
        var bytes = Array(Self.file(&random).utf8)
        Damage.apply(to: &bytes, words: Self.words, using: &random)
        return bytes
      },
      check: { bytes in
        var configuration = Configuration()
        do throws(ConfigurationError) {
          try configuration.apply(json5: String(decoding: bytes, as: UTF8.self), file: "file")
        } catch {
          refused += 1
          for line in "\(error)".split(separator: "\n") {
            try hold(line.hasPrefix("file") && line.contains(": "), "no place: \(line)")
          }
          return
        }
        accepted += 1
        var again = Configuration()
        do throws(ConfigurationError) {
          try again.apply(json5: configuration.json5, file: "again")
        } catch {
          throw Fault(description: "not read back: \(error)")
        }
        try hold(again == configuration, "reads as another configuration: \(configuration.json5)")
      })
    #expect(accepted > 0 && refused > 0)
  }
}
