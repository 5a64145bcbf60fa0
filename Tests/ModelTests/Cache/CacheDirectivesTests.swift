// CacheDirectivesTests: tests of the tokenizer of Cache-Control.

import Core
import TestSupport
import Testing

struct CacheDirectivesTests {
  private typealias Directive = (name: String, argument: String?)

  private func parse(_ text: String) -> [String] {
    CacheDirectives(text).map { directive in
      directive.argument.map { "\(directive.name)=\($0)" } ?? directive.name
    }
  }

  @Test(arguments: [
    ("no-store", ["no-store"]), ("", []), (",, ,", []), ("=", []), ("=5, a", ["a"]),
    (" No-Cache\t, MAX-age = 60 ", ["no-cache", "max-age=60"]), ("max-age=", ["max-age"]),
    ("a=\"b, c\",d", ["a=b, c", "d"]), ("a=\"b\\\"c\\\\\"", ["a=b\"c\\"]),
    ("a=\"\"", ["a="]), ("a=\"b\" junk, c", ["a=b", "c"]), ("\"no-store\"", ["\"no-store\""]),
    ("a=\"never ends, b=1", ["a=\"never ends", "b=1"]), ("a=b=c", ["a=b=c"]),
    ("max-age=60 ;x,y", ["max-age=60 ;x", "y"]),
  ])
  func `directives are split at commas outside quotes`(text: String, directives: [String]) {
    #expect(parse(text) == directives)
  }

  @Test func `seconds are digits, and an overflow becomes the maximum`() {
    func seconds(_ text: String) -> Int? {
      CacheDirectives("a=" + text).first { _ in true }?.seconds
    }
    #expect(seconds("0") == 0)
    #expect(seconds("\"60\"") == 60)
    #expect(seconds("99999999999999999999") == .max)
    for wrong in ["", "-1", "+1", "1.5", "1 2", "٣", "x", "\"\""] { #expect(seconds(wrong) == nil) }
  }

  @Test func `written directives are parsed back unchanged`() {
    var random = SeededGenerator(seed: 83)
    let names = ["max-age", "no-cache", "x", "stale-if-error"]
    let characters = Array("ab01,=\"\\ ;")
    func blank() -> String { ["", "", " ", "\t "].randomElement(using: &random) ?? "" }
    for _ in 0..<5_000 {
      // Given random directives, some with an argument
      let directives: [Directive] = (0..<Int.random(in: 0...4, using: &random)).map { _ in
        let length = Int.random(in: 0...5, using: &random)
        let argument = String(
          (0..<length).compactMap { _ in characters.randomElement(using: &random) })
        return (
          names.randomElement(using: &random) ?? "x", Bool.random(using: &random) ? argument : nil
        )
      }
      // When they are written with quotes, escapes, blanks and empty elements
      let text = directives.map { name, argument in
        let name = Bool.random(using: &random) ? name : name.uppercased()
        guard let argument else { return blank() + name + blank() }
        let escaped = argument.map { "\"\\".contains($0) ? "\\\($0)" : "\($0)" }.joined()
        return blank() + name + blank() + "=" + blank() + "\"\(escaped)\"" + blank()
      }.joined(separator: Bool.random(using: &random) ? "," : ",,")
      // Then the same directives are read.
      #expect(
        CacheDirectives(text).elementsEqual(directives) {
          $0.name == $1.name && $0.argument == $1.argument
        }, "\(text)")
    }
  }

  @Test func `random bytes are parsed to their end`() {
    var random = SeededGenerator(seed: 84)
    let characters = Array("aB1,=\"\\ \té")
    for _ in 0..<5_000 {
      let length = Int.random(in: 0...24, using: &random)
      let text = String((0..<length).compactMap { _ in characters.randomElement(using: &random) })
      for directive in CacheDirectives(text) {
        #expect(!directive.name.isEmpty && !directive.name.contains(","))
        #expect(directive.name == directive.name.lowercased())
      }
    }
  }
}
