// DescriptorLimit: how many files this process may have open, and how many connections that leaves room for.

import Glibc

/// The limit of open descriptors (getrlimit(2), RLIMIT_NOFILE). Out of them, nothing is accepted, loaded or sent, and
/// the usual soft limit is 1,024 beside 4,096 connections.
enum DescriptorLimit {
  /// What is open besides connections and what is sent over them: transfers and their memory files, kept connections to
  /// origins, workers, the disk tier.
  private static let reserve = 512

  /// Raises the soft limit to the hard one, which is meant to be used by whoever does not select(2) (systemd.exec(5)
  /// under LimitNOFILE); nothing here does. Workers inherit it and open next to nothing.
  ///
  /// - Returns: the limit now.
  static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 1_024 }
    let soft = limit.rlim_cur
    limit.rlim_cur = limit.rlim_max
    // A kernel that does not want to leaves the old one in force.
    return Int(clamping: setrlimit(resource, &limit) == 0 ? limit.rlim_cur : soft)
  }

  /// As many connections as are wanted, or as have room: each is a socket, and a file while one is sent over it.
  static func connections(wanted: Int, limit: Int) -> Int {
    min(wanted, max((limit - min(reserve, limit / 2)) / 2, 16))
  }
}
