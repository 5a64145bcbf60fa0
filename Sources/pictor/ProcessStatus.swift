// ProcessStatus: the kernel's figures of this process, for `/stats`.

import Glibc
import Telemetry

extension ProcessFigures {
  private static let openDescriptors = OpenDescriptors()

  /// The figures now, from /proc (proc_pid_statm(5), proc_pid_task(5)) and getrusage(2).
  ///
  /// An event loop asks for them. /proc is the kernel's memory, so no disk is waited for, and none
  /// of these calls takes longer with more connections.
  static var now: ProcessFigures {
    var figures = ProcessFigures()
    let words = contents(of: "/proc/self/statm").split(separator: " ")
    figures.residentBytes = words.count > 1 ? (Int(words[1]) ?? 0) * Int(getpagesize()) : 0
    figures.descriptors = openDescriptors.count
    var task = stat()
    // A link for each thread, `.` and `..` (fs/proc/base.c, `proc_task_getattr`).
    if stat("/proc/self/task", &task) == 0 { figures.threads = max(Int(task.st_nlink) - 2, 0) }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      figures.descriptorLimit = Int(clamping: limit.rlim_cur)
    }
    var usage = rusage()
    if getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
      figures.cpuSeconds = [usage.ru_utime, usage.ru_stime].reduce(0) {
        $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6
      }
    }
    return figures
  }

  private static func contents(of path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 256)
    return String(decoding: buffer[..<max(read(descriptor, &buffer, 256), 0)], as: UTF8.self)
  }
}
