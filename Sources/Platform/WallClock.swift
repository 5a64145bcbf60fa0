// WallClock: reads the system's clock, and writes times.

import Glibc

/// The system's real-time clock, which an operator or NTP may set (clock_gettime(2)).
public enum WallClock {
  /// Whole seconds since 1970-01-01 UTC.
  public static var seconds: Int { time(nil) }

  /// Microseconds since 1970-01-01 UTC.
  public static var microseconds: Int { nanoseconds / 1_000 }

  /// Nanoseconds since 1970-01-01 UTC.
  public static var nanoseconds: Int {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  /// Appends a time in UTC, in seconds since 1970, in a form of strftime(3) of at most 63 bytes.
  public static func append(_ seconds: Int, as form: String, to bytes: inout [UInt8]) {
    var seconds = seconds
    var time = tm()
    gmtime_r(&seconds, &time)
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
      // Debian 13's header takes no nil.
      guard let start = text.baseAddress else { return }
      let count = strftime(start, text.count, form, &time)
      bytes += text[..<count].lazy.map { UInt8(bitPattern: $0) }
    }
  }
}

extension Duration {
  /// Whole nanoseconds, rounded toward zero.
  public var wholeNanoseconds: Int {
    Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
  }
}
