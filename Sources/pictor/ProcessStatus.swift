// ProcessStatus: what the kernel says of this process, for /stats.

import Glibc
import Telemetry

extension ProcessFigures {
  /// The figures now, from /proc (proc_pid_statm(5), proc_pid_fd(5)) and getrusage(2).
  static var now: ProcessFigures {
    var figures = ProcessFigures()
    let words = contents(of: "/proc/self/statm").split(separator: " ")
    figures.residentBytes = words.count > 1 ? (Int(words[1]) ?? 0) * Int(getpagesize()) : 0
    // Without `.`, `..` and the descriptor the listing itself opens.
    figures.descriptors = max(entryCount(of: "/proc/self/fd") - 3, 0)
    figures.threads = max(entryCount(of: "/proc/self/task") - 2, 0)
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

  private static func entryCount(of folder: String) -> Int {
    guard let stream = opendir(folder) else { return 0 }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    return count
  }
}
