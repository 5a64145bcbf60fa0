// WireError: what can go wrong between the server and a worker.

import Model

/// Why nothing could be said or understood. Whoever gets one gives the other side up.
public enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The other side is gone.
  case closed
  /// Nothing to receive, or no room to send, on a socket that does not wait.
  case wouldBlock
  /// A message that breaks the rules: of another version, cut, too long, or with a value out of range.
  case malformed(String)
  /// A system call failed.
  case system(call: String, code: CInt)

  /// One line for the log.
  public var description: String {
    switch self {
    case .closed: "the other side is gone"
    case .wouldBlock: "the other side is not listening"
    case .malformed(let what): "malformed message: \(what)"
    case .system(let call, let code): "\(call): \(errnoText(code))"
    }
  }
}
