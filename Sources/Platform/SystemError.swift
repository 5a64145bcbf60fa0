// SystemError: what a failed call of the system said.

import Glibc
import Model

/// A call that failed and its `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The function, as its manual page is called.
  public let call: String
  /// The `errno` value.
  public let code: CInt

  /// A failed call; `errno` is read when no code is given.
  public init(_ call: String, code: CInt = errno) {
    (self.call, self.code) = (call, code)
  }

  /// `open: No such file or directory (2)`.
  public var description: String { "\(call): \(errnoText(code))" }
}
