// ProcessTimes: how much time has passed, and how much of it the process spent on a processor.

import Glibc

/// Times in s, counted from a moment of no meaning.
struct ProcessTimes {
  /// On the wall's clock.
  var wall = 0.0
  /// On a processor, of all threads, in user and system mode (getrusage(2)).
  var cpu = 0.0

  static var now: ProcessTimes {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return ProcessTimes(
      wall: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9,
      cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime))
  }

  static func - (later: ProcessTimes, earlier: ProcessTimes) -> ProcessTimes {
    ProcessTimes(wall: later.wall - earlier.wall, cpu: later.cpu - earlier.cpu)
  }

  private static func seconds(_ time: timeval) -> Double {
    Double(time.tv_sec) + Double(time.tv_usec) / 1e6
  }
}
