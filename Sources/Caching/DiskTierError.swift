// DiskTierError: why the disk tier cannot start.

/// Why the disk tier cannot start: one line for whoever started the program.
public enum DiskTierError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The folder cannot be created or written to; the reason is the system's.
  case unusable(path: String, reason: String)
  /// Another process keeps its cache in this folder.
  case inUse(path: String)
  /// The system gives no thread.
  case noThread(reason: String)

  /// The line.
  public var description: String {
    switch self {
    case .unusable(let path, let reason): "the cache folder '\(path)' cannot be used: \(reason)"
    case .inUse(let path): "the cache folder '\(path)' is in use by another process"
    case .noThread(let reason): "no thread for the disk cache: \(reason)"
    }
  }
}
