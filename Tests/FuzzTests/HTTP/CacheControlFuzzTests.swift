// CacheControlFuzzTests: Cache-Control and dates against simple references, and freshness within
// its bounds.

import Core
import TestSupport
import Testing

@testable import Caching
@testable import Serving

@Suite(.onOwnThreads) struct CacheControlFuzzTests {
  private static let words = [
    "no-store", "no-cache", "private", "public", "max-age", "s-maxage", "must-revalidate",
    "must-understand", "stale-while-revalidate", "stale-if-error", "immutable", "max-stale",
    "min-fresh", "only-if-cached", "MAX-Age", "=", "=", "=", ",", ",", ", ", "\"", "\"", "\\",
    "\\\"", " ", "\t", "0", "1", "60", "-1", "1.5", "2147483648", "99999999999999999999", "x", "é",
    ";", "set-cookie",
  ]

  private static func make(_ generator: inout SeededGenerator) -> String {
    generator.sentence(of: words, most: 16)
  }

  /// A directive as the reference splits it.
  private struct Directive: Equatable {
    var name: String
    var argument: String?
  }

  /// Splits character by character, with an explicit state: the rules of `CacheDirectives` in
  /// another way.
  private static func reference(_ text: String) -> [Directive] {
    let bytes = Array(text.utf8)
    var found: [Directive] = []
    var place = 0
    func trimmed(_ range: Range<Int>) -> String {
      var part = bytes[range]
      while let last = part.last, last == 0x20 || last == 0x09 { part.removeLast() }
      return String(decoding: part, as: UTF8.self)
    }
    while place < bytes.count {
      if [0x2c, 0x20, 0x09].contains(bytes[place]) {
        place += 1
        continue
      }
      let comma = bytes[place...].firstIndex(of: 0x2c) ?? bytes.count
      let sign = bytes[place..<comma].firstIndex(of: 0x3d) ?? comma
      let name = trimmed(place..<sign)
      var argument: String?
      var end = comma
      if sign < comma {
        var start = sign + 1
        while start < bytes.count, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        if let (content, closing) = quoted(bytes, at: start) {
          argument = content
          end = bytes[closing...].firstIndex(of: 0x2c) ?? bytes.count
        } else if start < comma {
          argument = trimmed(start..<comma)
          if argument == "" { argument = nil }
        }
      }
      if !name.isEmpty { found.append(Directive(name: name.lowercased(), argument: argument)) }
      place = end
    }
    return found
  }

  private static func quoted(_ bytes: [UInt8], at start: Int) -> (String, end: Int)? {
    guard start < bytes.count, bytes[start] == 0x22 else { return nil }
    var content: [UInt8] = []
    var index = start + 1
    while index < bytes.count, bytes[index] != 0x22 {
      if bytes[index] == 0x5c, index + 1 < bytes.count { index += 1 }
      content.append(bytes[index])
      index += 1
    }
    return index < bytes.count ? (String(decoding: content, as: UTF8.self), index + 1) : nil
  }

  @Test func `directives are those of a simple reference`() throws {
    try Fuzz.texts("directives", usual: 6_000, make: Self.make) { text in
      let found = CacheDirectives(text).map { Directive(name: $0.name, argument: $0.argument) }
      try hold(found == Self.reference(text), "\(text): \(found), not \(Self.reference(text))")
    }
  }

  @Test func `what forbids storing is found, and seconds are within their bounds`() throws {
    try Fuzz.texts("cache-control", usual: 3_000, make: Self.make) { text in
      let control = CacheControl(text)
      let names = Set(Self.reference(text).map(\.name))
      try hold(control.noStore == names.contains("no-store"), "no-store of \(text)")
      try hold(control.isPrivate == names.contains("private"), "private of \(text)")
      try hold(control.noCache == names.contains("no-cache"), "no-cache of \(text)")
      let times = [
        control.maxAge, control.sharedMaxAge, control.staleWhileRevalidate, control.staleIfError,
      ]
      try hold(
        times.allSatisfy { $0.map((0...CacheControl.maximumSeconds).contains) ?? true }, text)
      try hold(
        (control.maxAge == nil) == !names.contains("max-age"), "max-age of \(text)")
      var request = RequestCacheControl()
      request.read(cacheControl: text)
      try hold(request.noStore == control.noStore, "\(text) for a request")
      let demands = [request.age.maxAge, request.age.minFresh, request.age.maxStale]
      try hold(demands.allSatisfy { ($0 ?? 0) >= 0 }, "\(request.age) of \(text)")
      request.read(priority: text)
    }
  }

  @Test func `freshness of any response is within its bounds`() throws {
    let rules = FreshnessRules()
    let url = try SourceURL(parsing: "https://h/a.png")
    let now = UnixTime(seconds: 1_800_000_000)
    let moment = Moment(now)
    let dates = [
      HTTPDate.text(of: now), "Thu, 01 Jan 1970 00:00:00 GMT", "Sat, 01 Jan 0000 00:00:00 GMT",
      "Fri, 31 Dec 9999 23:59:60 GMT", "0", "-1", "", "Sunday, 06-Nov-94 08:49:37 GMT",
    ]
    func response(_ generator: inout SeededGenerator) -> OriginResponse {
      var response = OriginResponse(status: 200)
      if generator.isOne(of: 2) { response.cacheControl = Self.make(&generator) }
      if generator.isOne(of: 2) { response.expires = dates.randomElement(using: &generator) }
      if generator.isOne(of: 2) { response.date = dates.randomElement(using: &generator) }
      if generator.isOne(of: 2) { response.lastModified = dates.randomElement(using: &generator) }
      if generator.isOne(of: 2) {
        response.age = generator.pick("0", "7, 9", "-1", "99999999999999999999", "x")
      }
      if generator.isOne(of: 2) {
        let received = moment.instant - .seconds(generator.number(-10...100))
        response.exchange = Exchange(
          requestedAt: received - .seconds(generator.number(-10...100)), receivedAt: received)
      }
      if generator.isOne(of: 3) { response.vary = generator.pick("*", "Accept", "Cookie, *", "") }
      return response
    }
    for seed in FuzzSeeds.run(usual: 2_000) {
      var generator = SeededGenerator(seed: seed)
      var origin = response(&generator)
      origin.redirects = (0..<generator.number(0...2)).map { _ in response(&generator) }
      let freshness = rules.freshness(
        of: origin, from: url, isAuthorized: generator.isOne(of: 2), at: moment)
      let most = Freshness.maximumSeconds
      let seconds = [
        freshness.lifetime, freshness.initialAge, freshness.staleIfError, freshness.clientLifetime,
        freshness.staleWhileRevalidate, freshness.clientTime,
      ]
      #expect(seconds.allSatisfy { (0...most).contains($0) }, "seed \(seed): \(origin)")
      let all = ([origin] + origin.redirects).compactMap(\.cacheControl).map(CacheControl.init)
      let isForbidden = all.contains(where: \.forbidsStoring)
      #expect(!isForbidden || !freshness.isStorable, "seed \(seed): \(origin)")
    }
  }
}

@Suite(.onOwnThreads) struct DateFuzzTests {
  private static let now = UnixTime(seconds: 1_800_000_000)
  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let longDays = [
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
  ]
  private static let words =
    days + longDays + [
      "Jan", "Feb", "Dec", "GMT", "UTC", " ", " ", ", ", ":", "-", "29", "31", "00", "60", "1994",
      "2000", "0", "９", "\0", "+1",
    ]

  /// The seconds of the years 0 to 9999.
  private static let range = -62_167_219_200...253_402_300_799

  /// Returns the three forms of a time (RFC 9110, section 5.6.7), from the preferred one. The day
  /// of the third may have a zero or a space in front.
  private static func forms(of time: UnixTime, day: Int) -> [String] {
    let parts = HTTPDate.text(of: time).split(separator: " ").map(String.init)
    let date = parts[1]
    let month = parts[2]
    let year = parts[3]
    let clock = parts[4]
    let padded = (date.hasPrefix("0") ? " " : "") + String(Int(date) ?? 0)
    return [
      "\(days[day]), \(date) \(month) \(year) \(clock) GMT",
      "\(longDays[day]), \(date)-\(month)-\(year.suffix(2)) \(clock) GMT",
      "\(days[day]) \(month) \(padded) \(clock) \(year)",
      "\(days[day]) \(month) \(date) \(clock) \(year)",
    ]
  }

  private static func make(_ generator: inout SeededGenerator) -> [UInt8] {
    if generator.isOne(of: 4) { return Array(generator.sentence(of: words, most: 12).utf8) }
    let time = UnixTime(seconds: generator.number(range))
    var bytes = Array(
      (forms(of: time, day: generator.number(0...6)).randomElement(using: &generator) ?? "").utf8)
    Damage.apply(to: &bytes, words: words.map { Array($0.utf8) }, using: &generator)
    return bytes
  }

  @Test func `a date is within its bounds, and an exact one is one of its three forms`() throws {
    var exact = 0
    try Fuzz.run("dates", usual: 6_000, make: Self.make) { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      let parsed = HTTPDate.parse(text, now: Self.now)
      if let parsed {
        // A leap second may be the last of the year 9999.
        let last = Self.range.upperBound + 1
        try hold((Self.range.lowerBound...last).contains(parsed.seconds), "\(parsed) of \(text)")
      }
      guard let time = HTTPDate.parseExactly(text, now: Self.now) else { return }
      exact += 1
      try hold(time == parsed, "\(text) is two times")
      // The day of the week is not compared, and the second 60 is the next minute's first.
      let isLeap = text.contains(":60")
      let written = isLeap ? text.replacing(":60", with: ":59") : text
      let second = UnixTime(seconds: time.seconds - (isLeap ? 1 : 0))
      let forms = (0...6).flatMap { Self.forms(of: second, day: $0) }
      try hold(forms.contains(written), "\(text) is no form of \(HTTPDate.text(of: second))")
    }
    #expect(exact > 0)
  }

  @Test func `each form of a time is that time`() throws {
    try Fuzz.run(
      "times", usual: 1_000, make: { Array("\($0.number(Self.range))".utf8) },
      check: { bytes in
        let time = UnixTime(seconds: Int(String(decoding: bytes, as: UTF8.self)) ?? 0)
        for (index, form) in Self.forms(of: time, day: 3).enumerated() {
          // A year of two digits is one of the hundred years around now.
          let isNear = (Self.now.seconds - 1_000_000_000...Self.now.seconds + 1_000_000_000)
            .contains(time.seconds)
          guard index != 1 || isNear else { continue }
          try hold(HTTPDate.parseExactly(form, now: Self.now) == time, form)
        }
      })
  }
}
