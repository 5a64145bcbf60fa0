// ProcessStatus: the kernel's figures of this process, for `/stats`.

import Core
import Glibc

extension Figures {
  private static let openDescriptors = OpenDescriptors()

  /// The figures now, from /proc (proc_pid_statm(5), proc_pid_task(5)) and getrusage(2).
  ///
  /// An event loop asks for them. /proc is the kernel's memory, so no disk is waited for, and none
  /// of these calls takes longer with more connections.
  static var process: Figures {
    var figures = Figures()
    let words = (ControlGroups.text("/proc/self/statm") ?? "").split(separator: " ")
    figures.add(
      "resident_bytes", words.count > 1 ? (Int(words[1]) ?? 0) * Int(getpagesize()) : 0,
      "pictor_process_resident_memory_bytes", "Resident memory of the server process.")
    figures.add(
      "descriptors", openDescriptors.count, "pictor_process_open_fds", "Open file descriptors.")
    // A link for each thread, `.` and `..` (fs/proc/base.c, `proc_task_getattr`).
    var task = stat()
    let links = stat("/proc/self/task", &task) == 0 ? Int(task.st_nlink) : 0
    figures.add(
      "threads", max(links - 2, 0), "pictor_process_threads", "Threads of the server process.")
    var limit = rlimit()
    let hasLimit = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    figures.add(
      "descriptor_limit", hasLimit ? Int(clamping: limit.rlim_cur) : 0, "pictor_process_max_fds",
      "The limit of open file descriptors.")
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    figures.add(
      "cpu_seconds",
      [usage.ru_utime, usage.ru_stime].reduce(0) {
        $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6
      }, "pictor_process_cpu_seconds_total", "Processor time used, user and system.")
    return figures
  }
}

/// Counts open descriptors for `/stats`, which event loops answer.
///
/// Linux 6.2 and later report the number as the size of `/proc/self/fd`. Before, a thread lists the
/// folder, at most once a second: that takes 14 ms with 15,000 descriptors.
final class OpenDescriptors: Sendable {
  private struct State {
    var last: Int?
    var listedAt: ContinuousClock.Instant?
    var isListing = false
  }

  private static let folder = "/proc/self/fd"
  private static let interval = Duration.seconds(1)

  private let hasSize: Bool
  private let state = Lock(State())

  /// - Parameter hasSize: Whether to use the kernel's own number if it has one.
  init(hasSize: Bool = true) { self.hasSize = hasSize }

  /// The number, at most a few seconds old; 0 until it is known. Never lists on the calling thread.
  var count: Int {
    var status = stat()
    if hasSize, stat(Self.folder, &status) == 0, status.st_size > 0 { return Int(status.st_size) }
    let (last, mustList) = state.withLock { state in
      let isDue = state.listedAt.map { .now - $0 >= Self.interval } ?? true
      let mustList = isDue && !state.isListing
      if mustList { state.isListing = true }
      return (state.last, mustList)
    }
    if mustList { list() }
    return last ?? 0
  }

  private func list() {
    let isStarted: Void? = try? OwnThread.start(name: "pictor-count", rank: .background) { [self] in
      // Without the descriptor that the listing itself uses.
      let found = Self.entries - 1
      state.withLock { state in
        state.last = max(found, 0)
        state.listedAt = .now
        state.isListing = false
      }
    }
    if isStarted == nil { state.withLock { $0.isListing = false } }
  }

  /// Returns the number of entries of the folder, without `.` and `..`.
  private static var entries: Int {
    guard let stream = opendir(folder) else { return 0 }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    return count - 2
  }
}
