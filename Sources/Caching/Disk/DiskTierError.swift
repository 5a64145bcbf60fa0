// DiskTierError: why the disk tier cannot start.

/// Why the disk tier cannot start: one line for whoever started the program.
public enum DiskTierError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The folder cannot be created or written to; the reason is the system's.
  case unusable(path: String, reason: String)
  /// Something other than a file is in place of the lock.
  case noLock(path: String, found: String)
  /// Another process keeps its cache in this folder.
  case inUse(path: String)
  /// The system gives no thread.
  case noThread(reason: String)

  /// The line.
  public var description: String {
    switch self {
    case .unusable(let path, let reason): "the cache folder '\(path)' cannot be used: \(reason)"
    case .noLock(let path, let found):
      """
      '\(path)/lock' is \(found) and must be a file: remove it, or name another folder in \
      disk.path
      """
    case .inUse(let path):
      """
      the cache folder '\(path)' is in use by another process: stop it, or name another folder in \
      disk.path
      """
    case .noThread(let reason): "no thread for the disk cache: \(reason)"
    }
  }
}
