// WorkerProcess+Shared: the memory of a worker that RLIMIT_DATA does not count.

import Glibc

extension WorkerProcess {
  /// Memory in bytes that the worker holds beside its private memory: all that it maps, touched or not, and the files
  /// without a name that it keeps open, mapped or not.
  var sharedBytes: Int {
    // proc_pid_statm(5): all that is mapped, and private memory with the stack.
    let mapped = (pages(at: 0) ?? 0) - (pages(at: 5) ?? 0)
    return max(mapped, 0) * Int(getpagesize()) + bytesOfOpenFiles
  }

  /// As many as a worker can have (`ResourceLimits`).
  private static var mostDescriptors: Int { 16 }

  /// The kernel shows them to a server that is root. Else their number and RLIMIT_FSIZE are their only limits.
  private var bytesOfOpenFiles: Int {
    (0..<Self.mostDescriptors).reduce(0) { bytes, descriptor in
      var status = stat()
      // Follows the link, which leads to the open file itself.
      guard stat("/proc/\(pid)/fd/\(descriptor)", &status) == 0, status.st_nlink == 0,
        status.st_mode & S_IFMT == S_IFREG
      else { return bytes }
      return bytes + Int(status.st_blocks) * 512
    }
  }
}
