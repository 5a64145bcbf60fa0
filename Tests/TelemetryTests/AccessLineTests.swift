// AccessLineTests: a request is one line in every format, and the line parses back.

import FoundationEssentials
import TestSupport
import Testing

@testable import Core

struct AccessLineTests {
  /// Returns a text of bytes that a client may send, most of them awkward.
  private func text(_ random: inout SeededGenerator) -> String {
    let awkward: [UInt8] = [
      0, 1, 8, 9, 10, 11, 12, 13, 27, 0x20, 0x22, 0x3d, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xc2, 0x85,
      0xe2, 0xa8, 0xff,
    ]
    let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ -> UInt8 in
      Bool.random(using: &random)
        ? awkward.randomElement(using: &random) ?? 0 : .random(in: 0...255, using: &random)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private func onlyLine(_ bytes: [UInt8]) throws -> String {
    #expect(bytes.last == 0x0a)
    let line = bytes.dropLast()
    #expect(!line.contains { $0 < 0x20 || $0 == 0x7f })
    return try #require(String(validating: line, as: UTF8.self))
  }

  @Test func `random values are one line of JSON and parse back`() throws {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<2_000 {
      let value = text(&random)
      let line = try onlyLine(
        LogLine(.info, message: "request", fields: ["target": .string(value)], format: .json).bytes)
      let parsed = try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
      #expect(parsed["target"] == LogLine.shown(value))
      #expect(parsed.count == 4)
    }
  }

  @Test(arguments: [LogFormat.logfmt, .text])
  func `random values add no field to a line, which parses back`(format: LogFormat) throws {
    var random = SeededGenerator(seed: 2)
    for _ in 0..<2_000 {
      let (target, agent) = (text(&random), text(&random))
      let line = try onlyLine(
        LogLine(
          .info, message: "request",
          fields: ["target": .string(target), "status": .int(200), "user_agent": .string(agent)],
          format: format
        ).bytes)
      // A text has its time and level without names.
      let words = line.split(separator: " ", maxSplits: 3)
      #expect(words.count == 4 && words[2].hasSuffix("request"))
      let pairs = try Self.logfmt(String(words[3]))
      #expect(pairs.map(\.name) == ["target", "status", "user_agent"], "\(line)")
      #expect(pairs[1].value == "200")
      if format == .logfmt {
        #expect(pairs[0].value == LogLine.shown(target) && pairs[2].value == LogLine.shown(agent))
      }
    }
  }

  @Test func `no value has a sign that a terminal obeys, or that turns text around`() throws {
    let signs = "\u{1b}[2J\u{9b}31m\u{1b}]0;x\u{7}\u{202e}\u{2066}\u{61c}\u{2028}\u{85}\u{8}"
    for format in LogFormat.allCases {
      for value in [signs, "a" + signs + "b", String(repeating: signs, count: 100)] {
        let line = try onlyLine(
          LogLine(.info, message: value, fields: ["target": .string(value)], format: format).bytes)
        // `onlyLine` looks at those of ASCII.
        #expect(
          !line.unicodeScalars.contains {
            !$0.isASCII && signs.unicodeScalars.contains($0)
          }, "\(line)")
      }
    }
  }

  @Test func `random values are one combined line and parse back`() throws {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<2_000 {
      let values = (0..<4).map { _ in text(&random) }
      let line = try onlyLine(
        CombinedLine(
          client: "198.51.100.7", user: values[0], method: "GET", target: values[1],
          version: "HTTP/1.1", status: 200, bytes: 12,
          referer: values[2], userAgent: values[3]
        ).encoded(at: 1_795_000_000))
      #expect(line.utf8.allSatisfy { $0 < 0x80 })
      let parts = try Self.combined(line)
      #expect(
        parts == [
          Array("198.51.100.7".utf8), Array("-".utf8),
          Array((values[0].isEmpty ? "-" : values[0]).utf8),
          Array("18/Nov/2026:11:06:40 +0000".utf8),
          Array("GET \(LogLine.shown(values[1])) HTTP/1.1".utf8),
          Array("200".utf8), Array("12".utf8), Array(LogLine.shown(values[2]).utf8),
          Array(LogLine.shown(values[3]).utf8),
        ])
    }
  }

  @Test func `a combined line has the form that Apache writes`() throws {
    var line = CombinedLine(
      client: "2001:db8::1", user: nil, method: "GET",
      target: "/image?url=http://u:p@h/a.jpg", version: "HTTP/1.1",
      status: 304, bytes: 0, referer: nil, userAgent: "a \"b\" \\ \u{1b}é")
    #expect(
      String(decoding: line.encoded(at: 0), as: UTF8.self)
        == "2001:db8::1 - - [01/Jan/1970:00:00:00 +0000] "
        + #""GET /image?url=http://***@h/a.jpg HTTP/1.1" 304 - "-" "a \"b\" \\ \x1b\xc3\xa9""#
        + "\n")
    line.client = nil
    line.user = "cd n"
    line.bytes = 5
    #expect(
      String(decoding: line.encoded(at: 0), as: UTF8.self).hasPrefix("- - cd\\x20n [01/Jan"))
  }

  // MARK: Parsers

  private struct Malformed: Error {}

  private static func logfmt(_ line: String) throws -> [(name: String, value: String)] {
    var pairs: [(String, String)] = []
    var rest = Array(line.unicodeScalars)[...]
    while !rest.isEmpty {
      let name = rest.prefix { $0 != "=" }
      rest = rest.dropFirst(name.count + 1)
      var value = String.UnicodeScalarView()
      if rest.first == "\"" {
        rest = rest.dropFirst()
        while let scalar = rest.popFirst(), scalar != "\"" {
          guard scalar == "\\" else {
            value.append(scalar)
            continue
          }
          guard let mark = rest.popFirst() else { throw Malformed() }
          switch mark {
          case "n": value.append("\n")
          case "r": value.append("\r")
          case "t": value.append("\t")
          case "u":
            let digits = String(String.UnicodeScalarView(rest.prefix(4)))
            guard let number = UInt32(digits, radix: 16), let found = Unicode.Scalar(number) else {
              throw Malformed()
            }
            value.append(found)
            rest = rest.dropFirst(4)
          default: value.append(mark)
          }
        }
      } else {
        let plain = rest.prefix { $0 != " " }
        value.append(contentsOf: plain)
        rest = rest.dropFirst(plain.count)
      }
      pairs.append((String(String.UnicodeScalarView(name)), String(value)))
      guard rest.isEmpty || rest.popFirst() == " " else { throw Malformed() }
    }
    return pairs
  }

  /// Returns the nine parts of a combined line, without their escapes.
  private static func combined(_ line: String) throws -> [[UInt8]] {
    var parts: [[UInt8]] = []
    var rest = Array(line.utf8)[...]
    while !rest.isEmpty {
      let close: UInt8 = rest.first == 0x22 ? 0x22 : rest.first == 0x5b ? 0x5d : 0x20
      if close != 0x20 { rest = rest.dropFirst() }
      var part: [UInt8] = []
      while let byte = rest.popFirst(), byte != close {
        guard byte == UInt8(ascii: "\\") else {
          part.append(byte)
          continue
        }
        guard let mark = rest.popFirst() else { throw Malformed() }
        switch mark {
        case UInt8(ascii: "b"): part.append(8)
        case UInt8(ascii: "t"): part.append(9)
        case UInt8(ascii: "n"): part.append(10)
        case UInt8(ascii: "v"): part.append(11)
        case UInt8(ascii: "r"): part.append(13)
        case UInt8(ascii: "x"):
          guard let byte = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
            throw Malformed()
          }
          part.append(byte)
          rest = rest.dropFirst(2)
        default: part.append(mark)
        }
      }
      parts.append(part)
      if close != 0x20 { rest = rest.dropFirst() }
    }
    return parts
  }
}
