// PrefetchReport: formats the progress and the summary of a prefetch.

import Core

/// The texts about a prefetch. Pure functions.
enum PrefetchReport {
  /// Returns the progress with a bar, in at most `width` columns.
  static func progress(_ status: PrefetchStatus, width: Int) -> String {
    var text = "\(status.done)/\(status.total)"
    if status.skipped > 0 { text += ", \(status.skipped) skipped" }
    if status.failed > 0 { text += ", \(status.failed) failed" }
    text += ", \(oneDecimal(status.rate))/s"
    if let left = status.secondsLeft, status.state == .running { text += ", \(clock(left)) left" }
    let room = min(width - text.count - 3, 40)
    guard room >= 5 else { return String(text.prefix(max(width, 0))) }
    let part = status.total > 0 ? Double(status.done) / Double(status.total) : 1
    let full = Int(Double(room) * min(max(part, 0), 1))
    return "[" + String(repeating: "#", count: full)
      + String(repeating: ".", count: room - full) + "] " + text
  }

  /// Returns the result in one line, then the reasons of failures, then the reported failures by
  /// line.
  static func summary(_ status: PrefetchStatus) -> String {
    var text = """
      \(status.state.rawValue) after \(oneDecimal(status.seconds)) s: \(status.total) images, \
      \(status.finished) loaded, \(status.skipped) skipped, \(status.failed) failed

      """
    // The numbers may be those of another program, so no sum of them may overflow.
    if status.done < status.total { text += "not tried: \(status.total &- status.done)\n" }
    for (code, count) in status.reasons.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
      text += "failed: \(count) \(printable(code))\n"
    }
    for failure in status.failures.sorted(by: { $0.line < $1.line }) {
      text += "line \(failure.line): \(printable(failure.code)): \(printable(failure.message))\n"
    }
    if status.failures.count < status.failed {
      text += "and \(status.failed &- status.failures.count) more failures\n"
    }
    return text
  }

  /// Formats seconds as `0:45`, `12:03` or `1:02:03`.
  static func clock(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds, 0), 359_999).rounded(.up))
    let hours = whole / 3_600
    let minutes = whole / 60 % 60
    let rest = whole % 60
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(rest))" : "\(minutes):\(two(rest))"
  }

  private static func oneDecimal(_ value: Double) -> String {
    "\((min(max(value, 0), 1e9) * 10).rounded() / 10)"
  }

  /// Replaces control characters and characters that change the order or line of a terminal's text.
  /// Messages repeat text of the list.
  static func printable(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map(printable)))
  }

  /// Returns JSON with escapes in place of the characters that `printable` replaces, but for line
  /// breaks. The values stay the same: in JSON, such characters only occur in strings (RFC 8259).
  static func printableJSON(_ bytes: [UInt8]) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    var shown = ""
    for scalar in text.unicodeScalars {
      if scalar == "\n" || isPrintable(scalar) {
        shown.unicodeScalars.append(scalar)
      } else {
        for unit in String(scalar).utf16 { shown += "\\u" + unit.hexadecimal(4) }
      }
    }
    return shown
  }

  private static func printable(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    isPrintable(scalar) ? scalar : "\u{FFFD}"
  }

  private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }
}
