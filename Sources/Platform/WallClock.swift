// WallClock: reads the system's clock.

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
}
