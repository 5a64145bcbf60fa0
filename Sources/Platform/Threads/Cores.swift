// Cores: the cores on which threads may run (sched_setaffinity(2)).

import CLinux
import Glibc

/// Cores by the kernel's numbers, in ascending order.
public struct Cores: Hashable, Sendable {
  /// The most cores of a Linux kernel (NR_CPUS of x86-64), as bytes of a mask.
  private static let maskBytes = 8_192 / 8

  /// The kernel's numbers.
  public let numbers: [Int]

  /// Creates a set of these cores.
  public init(_ numbers: some Sequence<Int>) { self.numbers = numbers.sorted() }

  /// Returns those on which a thread may run, by default the calling one.
  public static func allowed(for thread: pid_t = 0) throws(SystemError) -> Cores {
    var mask = [UInt8](repeating: 0, count: maskBytes)
    let count = pictor_linux_get_affinity(thread, &mask, mask.count)
    guard count >= 0 else { throw SystemError() }
    // The mask is an array of longs. On a little-endian machine that is an array of bits.
    return Cores((0..<count * 8).filter { mask[$0 / 8] & 1 << ($0 % 8) != 0 })
  }

  /// How many cores the process can keep busy: those on which it may run, at most its quota of
  /// them, rounded up. Read once.
  public static let usable = usable(
    of: (try? allowed(for: getpid()))?.numbers.count ?? 1, quota: quota())

  static func usable(of count: Int, quota: Double?) -> Int {
    quota.map { min(Int($0.rounded(.up)), count) } ?? count
  }

  /// Returns how many cores' time the process's control groups allow: the least quota of all groups
  /// (`cpu.max` of version 2); `nil` without one.
  ///
  /// - Parameter root: empty, or a folder with `proc` and `sys` trees for tests.
  static func quota(root: String = "") -> Double? {
    ControlGroups.folders(in: .unified, root: root).compactMap { folder in
      // `$MAX $PERIOD` in microseconds; `max` for no limit.
      let numbers = (ControlGroups.text(folder + "/cpu.max") ?? "").split { " \n".contains($0) }
        .map { Double($0) ?? 0 }
      guard numbers.count == 2, numbers[0] > 0, numbers[1] > 0 else { return nil }
      return numbers[0] / numbers[1]
    }.min()
  }

  /// Lets all threads of a process run here only. Threads that they start later inherit it.
  ///
  /// - Throws: a thread cannot be changed: it is another user's, or no core is allowed (cpuset(7)),
  ///   or the threads cannot be listed.
  public func confine(_ process: pid_t) throws(SystemError) {
    let mask = mask
    var confined: Set<pid_t> = []
    // A thread that another one starts meanwhile is found in the next round.
    for _ in 0..<4 {
      let new = try Self.threads(of: process).subtracting(confined)
      guard !new.isEmpty else { return }
      for thread in new where pictor_linux_set_affinity(thread, mask, mask.count) < 0 {
        // It has ended.
        guard errno == ESRCH else { throw SystemError() }
      }
      confined.formUnion(new)
    }
  }

  /// The mask of sched_setaffinity(2).
  var mask: [UInt8] {
    var mask = [UInt8](repeating: 0, count: Self.maskBytes)
    for number in numbers where number >= 0 && number / 8 < mask.count {
      mask[number / 8] |= 1 << (number % 8)
    }
    return mask
  }

  /// The threads of a process; empty if it has ended.
  private static func threads(of process: pid_t) throws(SystemError) -> Set<pid_t> {
    guard let folder = opendir("/proc/\(process)/task") else {
      let error = SystemError()
      // Without /proc, a process that lives has no list.
      guard kill(process, 0) < 0, errno == ESRCH else { throw error }
      return []
    }
    defer { closedir(folder) }
    var found: Set<pid_t> = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        // The name ends with a zero byte (readdir(3)).
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if let thread = pid_t(name) { found.insert(thread) }
    }
    return found
  }
}
