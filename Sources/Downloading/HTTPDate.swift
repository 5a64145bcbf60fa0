// HTTPDate: moments as HTTP headers write them.

import Glibc

/// IMF-fixdate (RFC 9110, section 5.6.7).
enum HTTPDate {
  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// `Sun, 06 Nov 1994 08:49:37 GMT`; `nil` for years that have no four digits.
  static func text(of seconds: time_t) -> String? {
    var seconds = seconds
    var parts = tm()
    guard gmtime_r(&seconds, &parts) != nil, (0...9_999).contains(parts.tm_year + 1_900) else {
      return nil
    }
    func digits(_ value: CInt, _ width: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(width - text.count, 0)) + text
    }
    let date =
      "\(digits(parts.tm_mday, 2)) \(months[Int(parts.tm_mon)]) \(digits(parts.tm_year + 1_900, 4))"
    let time = "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
    return "\(days[Int(parts.tm_wday)]), \(date) \(time) GMT"
  }
}
