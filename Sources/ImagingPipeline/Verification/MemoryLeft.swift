// MemoryLeft: the memory that this process may still allocate.

import Glibc

/// Memory left below the worker's limit (RLIMIT_DATA).
enum MemoryLeft {
  /// Bytes that may still be allocated; `nil` without a limit.
  static var bytes: Int? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit) == 0,
      let bound = Int(exactly: limit.rlim_cur), let file = fopen("/proc/self/statm", "r")
    else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, CInt(line.count), file) != nil else { return nil }
    // proc_pid_statm(5): the sixth number is data and stack, in pages.
    let text = line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
    let numbers = String(decoding: text, as: UTF8.self).split(separator: " ")
    guard numbers.count > 5, let pages = Int(numbers[5]) else { return nil }
    return bound - pages * Int(getpagesize())
  }

  /// Whether `count` bytes are at most half of the memory left. Optional allocations leave the rest to required ones.
  static func hasPlenty(for count: Int) -> Bool { bytes.map { count <= $0 / 2 } ?? true }
}
