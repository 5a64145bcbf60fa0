// LogTests: tests both formats, levels, and that untrusted text cannot forge lines.

import FoundationEssentials
import Glibc
import Testing

@testable import Core

struct LogTests {
  /// Returns the output of a log of `format` in `body`.
  private func written(
    _ format: Log.Format, level: LogLevel = .info, body: (Log) -> Void
  ) throws -> String {
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    body(Log(level: level, format: format, descriptor: ends[1]))
    close(ends[1])
    defer { close(ends[0]) }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = read(ends[0], &buffer, buffer.count)
    return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
  }

  @Test func `a JSON line is an object with typed fields`() throws {
    struct Line: Decodable {
      let time, level, message, url: String
      let status: Int
      let total: Double
      let cached: Bool
    }
    let text = try written(.json) {
      $0.warning(
        "request \"x\"",
        fields: [
          "url": "http://a/\nlevel=error", "status": 404, "total": .milliseconds(.milliseconds(5)),
          "cached": true,
        ])
    }
    #expect(text.hasSuffix("\n") && text.dropLast().contains("\n") == false)
    let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
    #expect((line.level, line.message) == ("warning", "request \"x\""))
    #expect((line.url, line.status, line.total) == ("http://a/\nlevel=error", 404, 5))
    #expect(line.time.hasSuffix("Z") && line.time.utf8.count == 24)
  }

  @Test func `a text line names its fields and cannot be forged`() throws {
    let text = try written(.text) {
      $0.info("started\nfake", fields: ["port": 8080, "path": "/a b", "bad": "x\r\nlevel=error"])
    }
    #expect(text.split(separator: "\n").count == 1)
    #expect(text.contains(" info    started\\nfake port=8080 path=\"/a b\""))
  }

  @Test(arguments: [
    ("a \u{301}b=\u{338}c", "\"a \u{301}b=\u{338}c\""), ("\u{9b}2J", "\\u009b2J"),
    ("back\\slash", "\"back\\\\slash\""), ("plain/é", "plain/é"), ("", "\"\""),
  ])
  func `values that contain separators or control characters are quoted or escaped`(
    value: String, shown: String
  ) throws {
    let text = try written(.text) { $0.info("x", fields: ["url": .string(value), "status": 200]) }
    #expect(text.hasSuffix(" url=\(shown) status=200\n"))
  }

  @Test func `secrets in URLs are redacted from messages and fields`() throws {
    for format in Log.Format.allCases {
      let text = try written(format) {
        $0.info(
          "to http://me:m4rk@h/",
          fields: ["url": "http://me:\(String(repeating: "m4rk", count: 200))@h/"])
        $0.info("x", fields: ["url": "https://h/a?sig=m4rk&w=3"])
      }
      #expect(!text.contains("m4rk") && text.contains("http://***@h/"))
      #expect(text.contains("https://h/a?sig=***&w=3"))
    }
  }

  @Test func `absent fields are omitted, and durations are plain numbers`() throws {
    let fields: KeyValuePairs<String, LogValue> = [
      "error": .string(ifPresent: nil), "duration_ms": .milliseconds(.microseconds(1_500)),
      "cache": .string(ifPresent: "hit"),
    ]
    #expect(
      try written(.text) { $0.info("x", fields: fields) }.hasSuffix(
        " x duration_ms=1.500 cache=hit\n"))
    #expect(
      try written(.json) { $0.info("x", fields: fields) }
        .hasSuffix(#""message":"x","duration_ms":1.500,"cache":"hit"}"# + "\n"))
  }

  @Test func `messages below the level are neither written nor built`() throws {
    let text = try written(.text, level: .warning) { log in
      log.info("\({ Issue.record("the message was made"); return "x" }())")
      log.error("seen")
    }
    #expect(text.contains("seen"))
  }
}
