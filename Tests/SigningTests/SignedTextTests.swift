// SignedTextTests: tests of the text that a signature covers.

import TestSupport
import Testing

@testable import Core

@Suite struct SignedTextTests {
  private func text(_ query: String, path: String = "/image") -> String? {
    SignedText(path: path, query: Array(query.utf8))?.text
  }

  @Test func `parameters are sorted and percent-encoded in one way`() {
    #expect(text("w=3&url=http://h/a%2fb&q=") == "/image?q=&url=http%3A%2F%2Fh%2Fa%2Fb&w=3")
    #expect(text("%77=%33") == "/image?w=3")
    #expect(text("a=é~-._*") == "/image?a=%C3%A9~-._%2A")
    // A plus is a plus; empty pieces say nothing; a name without `=` has an empty value.
    #expect(text("a=b+c") == "/image?a=b%2Bc")
    #expect(text("&&a=1&") == "/image?a=1")
    #expect(text("a") == text("a="))
    #expect(text("", path: "/info") == "/info?")
  }

  @Test func `names and values count as written`() {
    for (left, right) in [
      ("w=3", "width=3"), ("w=3", "w=03"), ("w=3", "W=3"), ("a=1&b=2", "a=1&b=3"),
      ("a=1", "a=1&b=2"), ("a=1&a=2", "a=1"), ("a=b%3D1", "a%3Db=1"), ("a=1%26b=2", "a=1&b=2"),
      ("a=e%CC%81", "a=%C3%A9"), ("a=%2520", "a=%20"), ("a=+", "a=%20"),
    ] {
      #expect(text(left) != text(right), "\(left) \(right)")
    }
    #expect(text("w=3") != text("w=3", path: "/info"))
  }

  @Test func `sig is left out, and exp is not`() throws {
    let query = Array("w=3&%73ig=a%2Eb&exp=5".utf8)
    let signed = try #require(SignedText(path: "/image", query: query))
    #expect(signed.text == "/image?exp=5&w=3")
    #expect(signed.signature == "a.b" && signed.hasExpiry)
    let plain = try #require(SignedText(path: "/image", query: Array("w=3".utf8)))
    #expect(plain.signature == nil && !plain.hasExpiry)
  }

  @Test(arguments: ["a=%", "a=%zz", "a=%00", "a=%ff", "%=1", "sig=a&sig=a", "sig=a&s%69g=b"])
  func `a query that no request may have has no text`(query: String) {
    #expect(text(query) == nil)
  }

  @Test func `any order and any percent-encoding of the same parameters have one text`() {
    var generator = SeededGenerator(seed: 7)
    let characters = Array("abz019-._~ %&=+/?#'(é€😀".unicodeScalars)
    func word() -> String {
      let length = Int.random(in: 1...6, using: &generator)
      return String(
        String.UnicodeScalarView(
          (0..<length).map { _ in characters.randomElement(using: &generator) ?? "a" }))
    }
    /// Percent-encodes what has to be, and some of the rest, in either case.
    func written(_ text: String) -> String {
      text.utf8.map { byte in
        let mustEncode = "%&=#".utf8.contains(byte) || byte > 0x7e || byte <= 0x20
        guard mustEncode || Bool.random(using: &generator) else {
          return String(Unicode.Scalar(byte))
        }
        let digits = (byte < 16 ? "0" : "") + String(byte, radix: 16)
        return "%" + (Bool.random(using: &generator) ? digits : digits.uppercased())
      }.joined()
    }
    for _ in 0..<500 {
      let items = (0..<Int.random(in: 1...5, using: &generator)).map { number in
        ("p\(number)" + word(), word())
      }
      let texts = (0..<4).map { _ in
        text(
          items.shuffled(using: &generator).map { written($0.0) + "=" + written($0.1) }
            .joined(separator: "&"))
      }
      #expect(Set(texts).count == 1 && texts[0] != nil, "\(items)")
    }
  }
}
