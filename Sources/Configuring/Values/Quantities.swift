// Quantities: parses and formats sizes in bytes and durations.

/// Parses and formats sizes in bytes.
enum ByteSize {
  private static let units: [(name: String, bytes: Int)] = [
    ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
  ]

  /// Parses `64MiB` to 67,108,864. Returns `nil` for invalid texts, including a missing unit and an
  /// overflow.
  static func parse(_ text: String) -> Int? {
    for unit in units where text.hasSuffix(unit.name) {
      guard let count = wholeNumber(text.dropLast(unit.name.count)) else { return nil }
      let (bytes, overflow) = count.multipliedReportingOverflow(by: unit.bytes)
      return overflow ? nil : bytes
    }
    return text == "0" ? 0 : nil
  }

  /// Returns the bytes of a number or a text; `nil` for any other value and outside the range.
  static func bytes(_ value: RawValue, in range: ClosedRange<Int>) -> Int? {
    (value.integer ?? value.text.flatMap(parse)).flatMap { range.contains($0) ? $0 : nil }
  }

  /// Returns the shortest exact form.
  static func text(_ bytes: Int) -> String {
    let unit = units.first { bytes != 0 && bytes % $0.bytes == 0 }
    return unit.map { "\(bytes / $0.bytes)\($0.name)" } ?? "0B"
  }
}

/// Parses and formats durations.
enum TimeSpan {
  private static let units: [(name: String, milliseconds: Int)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("ms", 1), ("s", 1_000),
  ]

  /// Parses `15s` to 15 seconds. Returns `nil` for invalid texts, including a missing unit and an
  /// overflow.
  static func parse(_ text: String) -> Duration? {
    for unit in units where text.hasSuffix(unit.name) {
      guard let count = wholeNumber(text.dropLast(unit.name.count)) else { continue }
      let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit.milliseconds)
      return overflow ? nil : .milliseconds(milliseconds)
    }
    return text == "0" ? .zero : nil
  }

  /// Returns the allowed values, as text for error messages.
  static func allowed(_ range: ClosedRange<Duration>) -> String {
    "a time such as \"15s\" (ms, s, m, h, d), from \(text(range.lowerBound)) to "
      + text(range.upperBound)
  }

  /// Returns the shortest exact form, with millisecond precision.
  static func text(_ duration: Duration) -> String {
    let parts = duration.components
    let milliseconds = Int(parts.seconds) * 1_000 + Int(parts.attoseconds / 1_000_000_000_000_000)
    let byLength = units.sorted { $0.milliseconds > $1.milliseconds }
    let unit = byLength.first { milliseconds != 0 && milliseconds % $0.milliseconds == 0 }
    return unit.map { "\(milliseconds / $0.milliseconds)\($0.name)" } ?? "0s"
  }
}

/// Parses digits only: no sign, space or exponent.
private func wholeNumber(_ text: Substring) -> Int? { text.isDigits ? Int(text) : nil }
