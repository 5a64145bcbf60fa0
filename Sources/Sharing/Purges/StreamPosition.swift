// StreamPosition: a place in the purge stream.

/// The id of a stream entry: milliseconds of the server's clock, and a number within them.
struct StreamPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
  let milliseconds: UInt64
  let number: UInt64

  /// Before the first entry.
  static let start = StreamPosition(milliseconds: 0, number: 0)

  init(milliseconds: UInt64, number: UInt64) {
    self.milliseconds = milliseconds
    self.number = number
  }

  /// Parses `1700000000000-0`.
  init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let first = UInt64(parts[0]), let last = UInt64(parts[1]) else {
      return nil
    }
    self.init(milliseconds: first, number: last)
  }

  var description: String { "\(milliseconds)-\(number)" }

  static func < (left: Self, right: Self) -> Bool {
    (left.milliseconds, left.number) < (right.milliseconds, right.number)
  }
}
