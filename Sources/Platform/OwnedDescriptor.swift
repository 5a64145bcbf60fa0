// OwnedDescriptor: an open descriptor that somebody is sure to close.

import Glibc

/// An open descriptor with one owner, closed at its end. A negative one is none. Bytes that several owners read from are
/// a `FileRegion` of Model's.
public struct OwnedDescriptor: ~Copyable, Sendable {
  /// The descriptor; valid as long as this.
  public let value: CInt

  /// Takes over `value`.
  public init(owning value: CInt) { self.value = value }

  deinit { if value >= 0 { close(value) } }

  /// Gives the descriptor to the caller, who closes it.
  public consuming func release() -> CInt {
    let value = value
    discard self
    return value
  }
}
