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
