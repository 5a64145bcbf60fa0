// HTTPDate: parses and formats HTTP dates (RFC 9110, section 5.6.7).

/// Parses the three forms of an HTTP date and writes the preferred form.
public enum HTTPDate {
  /// The length of a formatted date, in bytes.
  public static let length = 29

  private static let dayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let longDayNames = [
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
  ]
  private static let monthNames = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Returns the time as an IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Clamps to the years 0 to
  /// 9999.
  public static func text(of time: UnixTime) -> String {
    String(unsafeUninitializedCapacity: length) { buffer in
      buffer.baseAddress.map { write(time, into: $0) }
      return length
    }
  }

  /// Writes the `length` bytes of `text(of:)` without allocating.
  public static func write(_ time: UnixTime, into place: UnsafeMutablePointer<UInt8>) {
    let seconds = min(max(time.seconds, -62_167_219_200), 253_402_300_799)
    let (days, second) = seconds.quotientAndRemainder(floorDividingBy: 86_400)
    let (year, month, day) = civilDate(daysSinceEpoch: days)
    var place = place
    // 1970-01-01 was a Thursday.
    put(dayNames[(days + 4).quotientAndRemainder(floorDividingBy: 7).remainder], at: &place)
    put(", ", at: &place)
    put(day, at: &place)
    put(" ", at: &place)
    put(monthNames[month - 1], at: &place)
    put(" ", at: &place)
    put(year / 100, at: &place)
    put(year % 100, at: &place)
    put(" ", at: &place)
    put(second / 3_600, at: &place)
    put(":", at: &place)
    put(second / 60 % 60, at: &place)
    put(":", at: &place)
    put(second % 60, at: &place)
    put(" GMT", at: &place)
  }

  private static func put(_ text: String, at place: inout UnsafeMutablePointer<UInt8>) {
    for byte in text.utf8 {
      place.pointee = byte
      place += 1
    }
  }

  /// Writes two digits.
  private static func put(_ number: Int, at place: inout UnsafeMutablePointer<UInt8>) {
    place[0] = UInt8(ascii: "0") + UInt8(number / 10)
    place[1] = UInt8(ascii: "0") + UInt8(number % 10)
    place += 2
  }

  /// Parses an IMF-fixdate, an RFC 850 date (`Sunday, 06-Nov-94 08:49:37 GMT`) or an asctime date
  /// (`Sun Nov  6 08:49:37 1994`). Returns `nil` for anything else.
  ///
  /// Names are case-insensitive. The day of the week is not compared with the date.
  ///
  /// - Parameter now: a two-digit year more than 50 years after `now` belongs to the previous
  ///   century.
  public static func parse(_ text: String, now: UnixTime = .now) -> UnixTime? {
    let words = text.utf8.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: ",") }
    guard let first = words.first, isDayName(first) else { return nil }
    switch words.count {
    case 6 where isGreenwich(words[5]):
      return time(
        year: number(words[3], digits: 4...4), month: month(words[2]),
        day: number(words[1], digits: 1...2), clock: words[4])
    case 4 where isGreenwich(words[3]):
      let parts = words[1].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      guard parts.count == 3, let short = number(parts[2], digits: 2...2) else { return nil }
      return time(
        year: fullYear(of: short, now: now), month: month(parts[1]),
        day: number(parts[0], digits: 1...2), clock: words[2])
    case 5:
      return time(
        year: number(words[4], digits: 4...4), month: month(words[1]),
        day: number(words[2], digits: 1...2), clock: words[3])
    default:
      return nil
    }
  }

  /// Parses a date that `write(_:into:)` wrote. Returns `nil` for any other form. Allocates
  /// nothing, for dates that this server has stored.
  public static func parseWritten(_ text: UnsafeRawBufferPointer) -> UnixTime? {
    guard text.count == length else { return nil }
    func number(_ places: Range<Int>) -> Int {
      text[places].reduce(0) { $0 * 10 + Int($1 & 0xf) }
    }
    guard let month = monthNames.firstIndex(where: { text[8..<11].elementsEqual($0.utf8) }) else {
      return nil
    }
    let days = daysSinceEpoch(year: number(12..<16), month: month + 1, day: number(5..<7))
    let time = UnixTime(
      seconds: days * 86_400 + number(17..<19) * 3_600 + number(20..<22) * 60 + number(23..<25))
    // The other bytes are compared by writing the date again: another form differs.
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length) { written in
      guard let start = written.baseAddress else { return nil }
      write(time, into: start)
      return text.elementsEqual(written) ? time : nil
    }
  }

  /// Parses only what the grammar allows: single spaces, `GMT`, exact letter case. For fields where
  /// an invalid value has its own meaning, such as `Expires` (RFC 9111, section 5.3).
  public static func parseExactly(_ text: String, now: UnixTime = .now) -> UnixTime? {
    hasExactForm(Substring(text).utf8) ? parse(text, now: now) : nil
  }

  private typealias Word = Substring.UTF8View

  private static func hasExactForm(_ text: Word) -> Bool {
    // The empty word before a one-digit asctime day counts as a word.
    let words = text.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    // `parse` takes a comma for a space.
    let commas = text.count { $0 == UInt8(ascii: ",") }
    guard commas == (words[0].hasSuffix(",") ? 1 : 0) else { return false }
    switch words.count {
    case 6:
      if words[0].hasSuffix(",") {
        return dayNames.contains { "\($0)," == words[0] } && monthNames.contains(words[2])
          && words[1].utf8.count == 2 && words[5] == "GMT"
      }
      return dayNames.contains(words[0]) && monthNames.contains(words[1]) && words[2].isEmpty
        && words[3].utf8.count == 1
    case 5:
      return dayNames.contains(words[0]) && monthNames.contains(words[1])
        && words[2].utf8.count == 2
    case 4:
      let date = words[1].split(separator: "-")
      return longDayNames.contains { "\($0)," == words[0] } && date.count == 3
        && date[0].utf8.count == 2 && monthNames.contains(String(date[1])) && words[3] == "GMT"
    default: return false
    }
  }

  private static func time(year: Int?, month: Int?, day: Int?, clock: Word) -> UnixTime? {
    let parts = clock.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard let year, let month, let day, parts.count == 3,
      (1...daysInMonth(month, year: year)).contains(day),
      let hour = number(parts[0], digits: 2...2), hour < 24,
      let minute = number(parts[1], digits: 2...2), minute < 60,
      // A leap second (60) becomes the first second of the next minute, because Unix time has none.
      let second = number(parts[2], digits: 2...2), second <= 60
    else { return nil }
    let days = daysSinceEpoch(year: year, month: month, day: day)
    return UnixTime(seconds: days * 86_400 + hour * 3_600 + minute * 60 + second)
  }

  private static func fullYear(of short: Int, now: UnixTime) -> Int {
    let days = now.seconds.quotientAndRemainder(floorDividingBy: 86_400).quotient
    let thisYear = civilDate(daysSinceEpoch: days).year
    let year = thisYear - thisYear % 100 + short
    return year > thisYear + 50 ? year - 100 : year
  }

  private static func isDayName(_ word: Word) -> Bool {
    dayNames.contains { equal(word.prefix(3), $0) }
  }

  private static func isGreenwich(_ word: Word) -> Bool { equal(word, "GMT") || equal(word, "UTC") }

  private static func month(_ word: Word) -> Int? {
    monthNames.firstIndex { equal(word, $0) }.map { $0 + 1 }
  }

  /// Compares ASCII letters case-insensitively.
  private static func equal(_ word: Word, _ name: String) -> Bool {
    word.count == name.utf8.count && zip(word, name.utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
  }

  private static func number(_ word: Word, digits: ClosedRange<Int>) -> Int? {
    guard digits.contains(word.count), word.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    return word.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  private static func daysInMonth(_ month: Int, year: Int) -> Int {
    switch month {
    case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Returns days of the proleptic Gregorian calendar since 1970-01-01. Years start in March, so
  /// the leap day is the last day of a year.
  private static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
    let marchYear = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = marchYear.quotientAndRemainder(floorDividingBy: 400)
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// Returns the date of a day in the Gregorian calendar, counted from 1970-01-01.
  private static func civilDate(daysSinceEpoch days: Int) -> (year: Int, month: Int, day: Int) {
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(floorDividingBy: 146_097)
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
  }
}

extension Int {
  /// Divides, rounding toward negative infinity. The remainder is in `0..<divisor` for a positive
  /// divisor.
  fileprivate func quotientAndRemainder(floorDividingBy divisor: Int) -> (
    quotient: Int, remainder: Int
  ) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
