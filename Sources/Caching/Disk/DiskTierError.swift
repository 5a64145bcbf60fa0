// DiskTierError: the reasons why the disk tier cannot start.

/// A reason why the disk tier cannot start, as one line for the operator.
public enum DiskTierError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The folder cannot be created or written to. `reason` is the system's error text.
  case unusable(path: String, reason: String)
  /// The path of the lock file is not a regular file.
  case lockIsNotAFile(path: String, found: String)
  /// Another user may change the folder or one inside it. `reason` says how, and what to do.
  case untrusted(path: String, reason: String)
  /// Another process uses this folder.
  case inUse(path: String)
  /// A thread cannot be created.
  case noThread(reason: String)

  /// The error as one line.
  public var description: String {
    switch self {
    case .unusable(let path, let reason): "the cache folder '\(path)' cannot be used: \(reason)"
    case .lockIsNotAFile(let path, let found):
      """
      '\(path)/lock' is \(found) and must be a file: remove it, or name another folder in \
      disk.path
      """
    case .untrusted(let path, let reason): "the cache folder '\(path)' is not safe: \(reason)"
    case .inUse(let path):
      """
      the cache folder '\(path)' is in use by another process: stop it, or name another folder in \
      disk.path
      """
    case .noThread(let reason): "cannot start a thread for the disk cache: \(reason)"
    }
  }
}
