// HTTPDate: the dates of HTTP header fields (RFC 9110, section 5.6.7), read and written without a calendar library.

import Model

/// Reading and writing HTTP dates.
enum HTTPDate {
  /// Length of the preferred form, `Sun, 06 Nov 1994 08:49:37 GMT`.
  static let length = 29

  private static let dayNames: StaticString = "SunMonTueWedThuFriSat"
  private static let monthNames: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Writes the preferred form's 29 bytes; nothing is allocated.
  static func write(_ time: UnixTime, into buffer: UnsafeMutablePointer<UInt8>) {
    let days = floorDivide(time.seconds, 86_400)
    let second = time.seconds - days * 86_400
    let (year, month, day) = civil(fromDays: days)
    let weekday = (days % 7 + 11) % 7  // 1970-01-01 was a Thursday, day 4
    var position = 0
    func put(_ byte: UInt8) {
      buffer[position] = byte
      position += 1
    }
    func put(_ names: StaticString, _ index: Int) {
      names.withUTF8Buffer { text in for offset in 0..<3 { put(text[index * 3 + offset]) } }
    }
    func put(twoDigits value: Int) {
      put(UInt8(ascii: "0") + UInt8(value / 10 % 10))
      put(UInt8(ascii: "0") + UInt8(value % 10))
    }
    put(dayNames, weekday)
    put(UInt8(ascii: ","))
    put(UInt8(ascii: " "))
    put(twoDigits: day)
    put(UInt8(ascii: " "))
    put(monthNames, month - 1)
    put(UInt8(ascii: " "))
    put(twoDigits: year / 100)
    put(twoDigits: year % 100)
    put(UInt8(ascii: " "))
    put(twoDigits: second / 3_600)
    put(UInt8(ascii: ":"))
    put(twoDigits: second / 60 % 60)
    put(UInt8(ascii: ":"))
    put(twoDigits: second % 60)
    for byte in " GMT".utf8 { put(byte) }
  }

  /// The preferred form.
  static func text(_ time: UnixTime) -> String {
    String(unsafeUninitializedCapacity: length) { buffer in
      // The buffer was asked for with `length` > 0 bytes, so it has an address.
      if let start = buffer.baseAddress { write(time, into: start) }
      return length
    }
  }

  /// Reads any of the three forms a recipient must accept; `nil` for anything else, which is then ignored.
  static func parse(_ text: String) -> UnixTime? {
    let words = text.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "-" })
    switch words.count {
    case 6 where words[5] == "GMT":
      // `Sun, 06 Nov 1994 08:49:37 GMT`, or RFC 850's `Sunday, 06-Nov-94 08:49:37 GMT`.
      guard let year = number(words[3], in: 0...9_999) else { return nil }
      return make(year: fourDigits(year, words[3]), words[2], day: words[1], clock: words[4])
    case 5:
      // asctime's `Sun Nov  6 08:49:37 1994`.
      guard let year = number(words[4], in: 1_000...9_999) else { return nil }
      return make(year: year, words[1], day: words[2], clock: words[3])
    default: return nil
    }
  }

  /// Two digits of RFC 850 mean the last year ending so that is not more than 50 years ahead.
  private static func fourDigits(_ year: Int, _ word: Substring) -> Int {
    guard word.utf8.count == 2 else { return year }
    let now = civil(fromDays: UnixTime.now.seconds / 86_400).year
    let candidate = now - now % 100 + year
    return candidate > now + 50 ? candidate - 100 : candidate
  }

  private static func make(
    year: Int, _ monthName: Substring, day: Substring, clock: Substring
  ) -> UnixTime? {
    let parts = clock.split(separator: ":", omittingEmptySubsequences: false)
    guard let month = months.firstIndex(where: { $0 == monthName }),
      let day = number(day, in: 1...31), parts.count == 3,
      let hour = number(parts[0], in: 0...23), let minute = number(parts[1], in: 0...59),
      let second = number(parts[2], in: 0...60)
    else { return nil }
    let days = daysFromCivil(year: year, month: month + 1, day: day)
    return UnixTime(seconds: days * 86_400 + hour * 3_600 + minute * 60 + second)
  }

  private static func number(_ word: Substring, in range: ClosedRange<Int>) -> Int? {
    guard word.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let value = Int(word), range.contains(value)
    else { return nil }
    return value
  }

  private static func floorDivide(_ value: Int, _ divisor: Int) -> Int {
    value >= 0 ? value / divisor : (value - divisor + 1) / divisor
  }

  /// Days since 1970-01-01 of a Gregorian date. Years are counted from March, so that the leap day comes last, and a
  /// month's first day lies (153 × month + 2) ÷ 5 days into such a year; 400 years have 146,097 days.
  private static func daysFromCivil(year: Int, month: Int, day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = floorDivide(shifted, 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let index = (5 * dayOfYear + 2) / 153
    let month = index < 10 ? index + 3 : index - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * index + 2) / 5 + 1)
  }
}
