// MemoryLeft: the memory that this process may still allocate.

import Glibc

/// Memory left below the worker's limits (RLIMIT_DATA): the soft one, which the server sets for
/// each job, and the hard one.
enum MemoryLeft {
  /// `/proc/self/statm`, kept open: a sealed worker could not open it again. Negative without
  /// /proc.
  private static let figures = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)

  /// Bytes that may still be allocated; `nil` without a limit.
  static var bytes: Int? { bytes(below: \.rlim_cur) }

  /// Whether `count` bytes are at most half of the memory left to this job (the soft limit). For
  /// memory that saves time and does not change the result.
  static func jobHasPlenty(for count: Int) -> Bool { bytes.map { count <= $0 / 2 } ?? true }

  private static func bytes(below which: KeyPath<rlimit, rlim_t>) -> Int? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit) == 0,
      let bound = Int(exactly: limit[keyPath: which])
    else { return nil }
    var line = [UInt8](repeating: 0, count: 128)
    let count = pread(figures, &line, line.count, 0)
    guard count > 0 else { return nil }
    // proc_pid_statm(5): the sixth number is data and stack, in pages.
    let numbers = String(decoding: line[..<count], as: UTF8.self).split { $0 == " " || $0 == "\n" }
    guard numbers.count > 5, let pages = Int(numbers[5]) else { return nil }
    return bound - pages * Int(getpagesize())
  }

  /// Whether `count` bytes are at most half of the memory left. Optional allocations leave the rest
  /// to required ones.
  ///
  /// The hard limit counts: a result must not depend on what a job was admitted with.
  static func hasPlenty(for count: Int) -> Bool {
    bytes(below: \.rlim_max).map { count <= $0 / 2 } ?? true
  }
}
