// OwnedDescriptor: a file descriptor with one owner that closes it.

import Glibc

/// A file descriptor with one owner, closed on deinitialization. A negative value means no
/// descriptor. For shared read access use `FileRegion`.
public struct OwnedDescriptor: ~Copyable, Sendable {
  /// The descriptor, valid as long as this value.
  public let value: CInt

  /// Takes ownership of `value`.
  public init(owning value: CInt) { self.value = value }

  deinit { if value >= 0 { close(value) } }

  /// Transfers ownership of the descriptor to the caller.
  public consuming func release() -> CInt {
    let value = value
    discard self
    return value
  }
}
