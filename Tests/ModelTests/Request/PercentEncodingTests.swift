// PercentEncodingTests: tests of percent-encoding, beside a naive decoder.

import TestSupport
import Testing

@testable import Core

struct PercentEncodingTests {
  /// Decodes by splitting at `%`; `nil` if the result would not be text.
  private func naive(_ text: String) -> String? {
    var bytes: [UInt8] = []
    let pieces = Array(text.utf8).split(
      separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
    bytes += pieces[0]
    for piece in pieces.dropFirst() {
      let digits = String(decoding: piece.prefix(2), as: UTF8.self)
      guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
        let byte = UInt8(digits, radix: 16)
      else { return nil }
      bytes += [byte] + piece.dropFirst(2)
    }
    return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
  }

  @Test func `random text decodes as with the naive decoder`() {
    var random = SeededGenerator(seed: 81)
    let alphabet = Array("%%%%0124abAFgz+ -é".utf8)
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0...12, using: &random)).map { _ in
        alphabet[Int.random(in: alphabet.indices, using: &random)]
      }
      guard let text = String(validating: bytes, as: UTF8.self) else { continue }
      #expect(PercentEncoding.decode(text.utf8) == naive(text), "\(text)")
      if let decoded = naive(text) {
        #expect(PercentEncoding.decodeLeniently(text.utf8) == Array(decoded.utf8))
      }
    }
  }

  @Test func `encoded text decodes back and has only unreserved characters`() {
    var random = SeededGenerator(seed: 82)
    for _ in 0..<2_000 {
      let text = String(
        String.UnicodeScalarView(
          (0..<8).map { _ in
            Unicode.Scalar(UInt32.random(in: 1...0x2ff, using: &random)) ?? "x"
          }))
      let encoded = PercentEncoding.encode(text)
      #expect(PercentEncoding.decode(encoded.utf8) == text)
      #expect(
        encoded.utf8.allSatisfy {
          "%-._~".utf8.contains($0) || Character(Unicode.Scalar($0)).isLetter
            || Character(Unicode.Scalar($0)).isNumber
        })
    }
    #expect(PercentEncoding.encode("a b/ü~") == "a%20b%2F%C3%BC~")
  }

  @Test(arguments: ["%", "%4", "%4g", "%00", "a%ff", "\0"])
  func `text with invalid encoding is refused`(text: String) {
    #expect(PercentEncoding.decode(text.utf8) == nil)
  }

  @Test func `lenient decoding keeps malformed escapes`() {
    #expect(PercentEncoding.decodeLeniently("i%64=%zz%".utf8) == Array("id=%zz%".utf8))
    #expect(PercentEncoding.decodeLeniently("%ff%00".utf8) == [0xff, 0])
  }
}
