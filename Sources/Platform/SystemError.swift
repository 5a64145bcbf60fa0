// SystemError: an errno value as an error.

import Glibc
import Model

/// The `errno` of a failed system call.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The `errno` value.
  public let code: CInt

  /// Creates an error from a code, by default the calling thread's `errno`.
  public init(_ code: CInt = errno) { self.code = code }

  /// `No such file or directory (2)`.
  public var description: String { errnoText(code) }
}
