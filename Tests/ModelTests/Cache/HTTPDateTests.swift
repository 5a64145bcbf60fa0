// HTTPDateTests: tests parsing three forms of HTTP dates and formatting one.

import Testing

@testable import Core

struct HTTPDateTests {
  static let now = UnixTime(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

  @Test(arguments: [
    "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    "sun, 6 nov 1994 08:49:37 gmt",
  ])
  func `all three forms of an HTTP date are parsed`(text: String) {
    #expect(HTTPDate.parse(text, now: Self.now) == Self.now)
  }

  @Test(arguments: [
    "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
    "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
    "Sun, 06 Nov 1994 8:49:37 GMT", "Xyz, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT extra", "Sun, 99999999999999999999 Nov 1994 08:49:37 GMT",
    "1994-11-06T08:49:37Z", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT",
  ])
  func `malformed dates are refused`(text: String) {
    #expect(HTTPDate.parse(text, now: Self.now) == nil)
  }

  @Test(arguments: [
    ("Sun, 06 Nov 1994 08:49:37 GMT", true), ("Sunday, 06-Nov-94 08:49:37 GMT", true),
    ("Sun Nov  6 08:49:37 1994", true), ("Sun Nov 16 08:49:37 1994", true),
    ("Sun, 06 Nov 1994 08:49:37 UTC", false), ("Sun 06 Nov 1994 08:49:37 GMT", false),
    ("Sun,06 Nov 1994 08:49:37 GMT", false), ("Sun, 06  Nov 1994 08:49:37 GMT", false),
    (" Sun, 06 Nov 1994 08:49:37 GMT", false), ("Sun, 06 Nov 1994 08:49:37 GMT ", false),
    ("Sun, 6 Nov 1994 08:49:37 GMT", false), ("Sun, 06 nov 1994 08:49:37 GMT", false),
    ("sun, 06 Nov 1994 08:49:37 GMT", false), ("Sun, 06 Nov 1994 08:49:37 gmt", false),
    ("Sun, 06-Nov-94 08:49:37 GMT", false), ("Sunday, 06 Nov 1994 08:49:37 GMT", false),
    ("Sunday, 6-Nov-94 08:49:37 GMT", false), ("Sunday, 06-Nov-1994 08:49:37 GMT", false),
    ("Sun Nov 6 08:49:37 1994", false), ("Sun Nov 06 08:49:37 1994", true),
    ("Sun, 06 Nov 1994 08:49 GMT", false), ("Sun, 31 Nov 1994 08:49:37 GMT", false),
    ("Sun, 06 Nov 94 08:49:37 GMT", false), ("Sun,, 06 Nov 1994 08:49:37 GMT", false),
    ("Sun, 06 Nov 1994, 08:49:37 GMT", false), ("Sun, 06 Nov 1994 08:49:37, GMT", false),
    ("Sun Nov  6 08:49:37, 1994", false), ("Sunday, 06-Nov-94, 08:49:37 GMT", false),
    ("Sun, Nov  6 08:49:37 1994", false), ("784111777", false), ("0", false), ("", false),
    ("-1", false),
  ])
  func `only a date in the exact grammar is parsed exactly`(text: String, isExact: Bool) {
    #expect((HTTPDate.parseExactly(text, now: Self.now) != nil) == isExact)
  }

  @Test func `two-digit years are at most 50 years ahead`() throws {
    let now = try #require(HTTPDate.parse("Sun, 01 Jan 2026 00:00:00 GMT"))
    func year(_ text: String) -> String? {
      HTTPDate.parse("Sunday, 01-Jan-\(text) 00:00:00 GMT", now: now).map {
        String(HTTPDate.text(of: $0).split(separator: " ")[3])
      }
    }
    #expect(year("76") == "2076")
    #expect(year("77") == "1977")
    #expect(year("26") == "2026")
  }

  @Test func `dates are formatted and parsed back over four hundred years`() {
    #expect(HTTPDate.text(of: Self.now) == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(HTTPDate.text(of: UnixTime(seconds: 0)) == "Thu, 01 Jan 1970 00:00:00 GMT")
    #expect(HTTPDate.text(of: UnixTime(seconds: 951_782_400)) == "Tue, 29 Feb 2000 00:00:00 GMT")
    #expect(HTTPDate.text(of: UnixTime(seconds: -1)) == "Wed, 31 Dec 1969 23:59:59 GMT")
    #expect(HTTPDate.text(of: UnixTime(seconds: .min)) == "Sat, 01 Jan 0000 00:00:00 GMT")
    #expect(HTTPDate.text(of: UnixTime(seconds: .max)) == "Fri, 31 Dec 9999 23:59:59 GMT")
    for seconds in stride(from: -2_000_000_000, to: 11_000_000_000, by: 86_399 * 7) {
      let time = UnixTime(seconds: seconds)
      #expect(HTTPDate.parse(HTTPDate.text(of: time), now: Self.now) == time)
    }
  }

  private func written(_ text: String) -> UnixTime? {
    Array(text.utf8).withUnsafeBytes { HTTPDate.parseWritten($0) }
  }

  @Test func `a date that was written is read back`() {
    for seconds in stride(from: -62_167_219_200, through: 253_402_300_799, by: 86_399 * 997) {
      let time = UnixTime(seconds: seconds)
      #expect(written(HTTPDate.text(of: time)) == time)
    }
    for seconds in [Int.min, -62_167_219_201, 253_402_300_800, .max] {
      let clamped = written(HTTPDate.text(of: UnixTime(seconds: seconds)))
      #expect(clamped?.seconds == (seconds < 0 ? -62_167_219_200 : 253_402_300_799))
    }
  }

  @Test(arguments: [
    "", "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 Nov 1994 08:49:37 UTC",
    "Mon, 06 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 gmt",
    "Sun, 06 Nov 1994 08:49:60 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
    "Sun, 36 Nov 1994 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
    "Sun, p6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov ???? 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GM",
  ])
  func `a date in another form was not written`(text: String) { #expect(written(text) == nil) }
}
