// DescriptorLimit: raises the limit of open descriptors and derives the connection limit from it.

import Glibc

/// The limit of open descriptors (getrlimit(2), RLIMIT_NOFILE). At the limit, nothing can be
/// accepted, loaded or sent. The usual soft limit is 1,024, far too low for 4,096 connections.
enum DescriptorLimit {
  /// Descriptors for anything but connections and the files sent over them: transfers and their
  /// memory files, connections to origins, imaging workers, the disk tier.
  private static let reserve = 512

  /// Raises the soft limit to the hard limit. This is safe for a program without select(2)
  /// (systemd.exec(5), LimitNOFILE). Workers inherit the limit.
  ///
  /// - Returns: the limit in force.
  static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 1_024 }
    let soft = limit.rlim_cur
    limit.rlim_cur = limit.rlim_max
    // If the kernel refuses, the old limit stays.
    return Int(clamping: setrlimit(resource, &limit) == 0 ? limit.rlim_cur : soft)
  }

  /// Returns the number of connections that the limit allows, at most `wanted`. A connection needs
  /// a socket, and a file while one is sent over it.
  static func connections(wanted: Int, limit: Int) -> Int {
    min(wanted, max((limit - min(reserve, limit / 2)) / 2, 16))
  }

  /// Returns the number of files that the disk tier may keep open: half of what the connections and
  /// the reserve leave. Each takes about 2.5 KiB, most of it the kernel's.
  static func keptFiles(connections: Int, limit: Int) -> Int {
    min(mostKept, max(limit - reserve - 2 * min(connections, limit), 0) / 2)
  }

  private static let mostKept = 4_096
}
