// SystemError: what a failed call of the system said.

import Glibc
import Model

/// The `errno` of a call that failed.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The `errno` value.
  public let code: CInt

  /// The last failed call of this thread, unless a code is given.
  public init(_ code: CInt = errno) { self.code = code }

  /// `No such file or directory (2)`.
  public var description: String { errnoText(code) }
}
