// SystemError: an errno value as an error.

import Glibc

/// The `errno` of a failed system call.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The `errno` value.
  public let code: CInt

  /// Creates an error from a code, by default the calling thread's `errno`.
  public init(_ code: CInt = errno) { self.code = code }

  /// `No such file or directory (2)`.
  public var description: String { errnoText(code) }
}

/// Returns the text of an errno value for log lines: `No such file or directory (2)`.
public func errnoText(_ code: CInt = errno) -> String {
  "\(String(cString: strerror(code))) (\(code))"
}
