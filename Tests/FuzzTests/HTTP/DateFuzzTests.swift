// DateFuzzTests: HTTP dates in all forms, and texts that almost are some.

import Model
import TestSupport
import Testing

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
