// ResourceLimits: the limits of a worker process (getrlimit(2)).

import CLinux
import Core
import Glibc

/// The limits of a worker. A lower limit that it inherited stays.
enum ResourceLimits {
  /// Open descriptors: the connection, three standard ones, the file of results, the figures of its
  /// memory, two of a job, and what libraries open.
  static let descriptors = 16
  /// Tasks of the user, of all its processes. A lower limit would count threads of the user's other
  /// programs against a worker, also in containers. A sealed worker starts no processes.
  private static let tasks: UInt = 16_384

  /// Applies all limits.
  static func apply(_ options: WorkerOptions) throws(SetupError) {
    // 1 disables core dumps to files and pipes; with 0 a piped core_pattern still gets a dump
    // (fs/coredump.c).
    try set(CInt(RLIMIT_CORE.rawValue), 1)
    try set(CInt(RLIMIT_NOFILE.rawValue), UInt(descriptors))
    try set(CInt(__RLIMIT_NPROC.rawValue), tasks)
    if let memory = options.memory { try set(CInt(RLIMIT_DATA.rawValue), UInt(memory)) }
    if let size = options.fileSize { try set(CInt(RLIMIT_FSIZE.rawValue), UInt(size)) }
  }

  private static func set(_ resource: CInt, _ value: UInt) throws(SetupError) {
    guard pictor_linux_set_limit(resource, value) == 0 else {
      throw SetupError(call: "setrlimit", code: errno)
    }
  }
}
