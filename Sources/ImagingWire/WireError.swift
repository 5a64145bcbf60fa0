// WireError: the errors of the connection between the server and a worker.

/// A failure to send or receive a message. The receiver of this error closes the connection.
public enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The peer has closed the connection.
  case closed
  /// Nothing to receive, or no room to send, on a non-blocking socket.
  case wouldBlock
  /// An invalid message: of another version, truncated, too long, or with a value out of range.
  case malformed(String)
  /// A system call failed.
  case system(call: String, code: CInt)

  /// The error as one line for the log.
  public var description: String {
    switch self {
    case .closed: "the connection is closed"
    case .wouldBlock: "the other end is not reading"
    case .malformed(let what): "malformed message: \(what)"
    case .system(let call, let code): "\(call): \(errnoText(code))"
    }
  }
}
