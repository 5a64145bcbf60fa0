// ConditionFuzzTests: If-None-Match and Accept against simple references.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ConditionFuzzTests {
  /// Returns the entity tags of a list, without `W/`, up to the first other text.
  private static func tags(_ text: String) -> [String] {
    var rest = Array(text.utf8)[...]
    var tags: [String] = []
    while true {
      rest = rest.drop { " ,\t".utf8.contains($0) }
      if rest.starts(with: "W/".utf8) { rest = rest.dropFirst(2) }
      guard rest.first == UInt8(ascii: "\"") else { return tags }
      let content = rest.dropFirst().prefix { $0 != UInt8(ascii: "\"") }
      rest = rest.dropFirst(1 + content.count)
      guard rest.popFirst() != nil else { return tags }
      tags.append(String(decoding: content, as: UTF8.self))
    }
  }

  /// A tag that is stored as text, and one that is stored as a digest.
  @Test(arguments: ["\"0123456789abcdef\"", "\"0123456789abcdef0123456789abcdef\""])
  func `a tag matches if the list has it`(tag: String) throws {
    let info = VariantInfo(
      .sourceDescription, etag: EntityTag(tag),
      freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: 0))
    let words = [
      tag, tag, "W/" + tag, "\"", "\"\"", "\"a\"", "W/\"a\"", "W/", "w/", "*", ",", ", ", " ",
      "\t", "a", "\"a,b\"", String(tag.dropLast()), "é",
    ]
    var matched = 0
    try Fuzz.texts(
      "tags", usual: 4_000, make: { $0.sentence(of: words, most: 8) },
      check: { text in
        let isMatch = Array(text.utf8).withUnsafeBytes {
          Preconditions.isNotModified(info, ifNoneMatch: $0, ifModifiedSince: nil)
        }
        let stars = text.filter { !" \t".contains($0) }
        let isAny = !stars.isEmpty && stars.allSatisfy { $0 == "*" }
        let isListed = Self.tags(text).contains { "\"\($0)\"" == tag }
        try hold(isMatch == (isAny || isListed), "\(text): \(isMatch)")
        if isMatch { matched += 1 }
      })
    #expect(matched > 0)
  }

  /// Splits at a separator outside of quotes.
  private static func split(_ text: [UInt8], at separators: [UInt8]) -> [[UInt8]] {
    var parts: [[UInt8]] = [[]]
    var isQuoted = false
    var isEscaped = false
    for byte in text {
      if !isQuoted, separators.contains(byte) {
        parts.append([])
        continue
      }
      parts[parts.count - 1].append(byte)
      if isEscaped {
        isEscaped = false
      } else if isQuoted, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      }
    }
    return parts
  }

  /// Returns the formats that a field names and does not refuse.
  private static func accepted(_ text: String) -> [ImageFormat] {
    var named: Set<ImageFormat> = []
    var refused: Set<ImageFormat> = []
    func trimmed(_ bytes: [UInt8]) -> String {
      var rest = bytes[...]
      while let first = rest.first, first == 0x20 || first == 0x09 { rest.removeFirst() }
      while let last = rest.last, last == 0x20 || last == 0x09 { rest.removeLast() }
      return String(decoding: rest, as: UTF8.self)
    }
    for element in split(Array(text.utf8), at: [UInt8(ascii: ",")]) {
      let parts = split(element, at: [UInt8(ascii: ";")]).map(trimmed)
      guard
        let format = ImageFormat.negotiable.first(where: { $0.mediaType == parts[0].lowercased() })
      else { continue }
      let weights = parts.dropFirst().filter { $0.lowercased().hasPrefix("q=") }
      guard let weight = weights.last?.dropFirst(2) else {
        named.insert(format)
        continue
      }
      guard isWeight(Array(weight.utf8)) else { continue }
      if weight.contains(where: { "123456789".contains($0) }) {
        named.insert(format)
      } else {
        refused.insert(format)
      }
    }
    return ImageFormat.negotiable.filter { named.contains($0) && !refused.contains($0) }
  }

  /// Returns whether a text is a weight (RFC 9110, section 12.4.2): 0 or 1, a point, three digits.
  private static func isWeight(_ text: [UInt8]) -> Bool {
    let digits = text.dropFirst(2)
    guard let first = text.first, text.count <= 5, text.count < 2 || text[1] == UInt8(ascii: ".")
    else { return false }
    return first == UInt8(ascii: "1")
      ? digits.allSatisfy { $0 == UInt8(ascii: "0") }
      : first == UInt8(ascii: "0") && digits.allSatisfy { (0x30...0x39).contains($0) }
  }

  @Test func `a format is accepted if it is named and not refused`() throws {
    let words = [
      "image/avif", "image/webp", "image/jxl", "IMAGE/WebP", "image/*", "*/*",
      "image/avif-sequence",
      ",", ",", ";", ";q=0", ";q=0.5", ";q=1", "; q=0.000", ";q=1.001", ";q=0.0000", ";q=", ";Q=0",
      ";v=b3", " ", "\t", "\"", "\\", "\"a,b;q=0\"", "é",
    ]
    var named = 0
    try Fuzz.texts(
      "accept", usual: 4_000, make: { $0.sentence(of: words, most: 10) },
      check: { text in
        var scanner = AcceptScanner()
        Array(text.utf8).withUnsafeBytes { scanner.read($0) }
        let found = ImageFormat.negotiable.filter(scanner.formats.contains)
        try hold(found == Self.accepted(text), "\(text): \(found), not \(Self.accepted(text))")
        if !found.isEmpty { named += 1 }
      })
    #expect(named > 0)
  }
}
