// FailOn: how much damage a source may have before nothing is made of it.

/// The mildest damage for which a source is refused, in libvips's terms; each value refuses what those before it do.
public enum FailOn: String, CaseIterable, Comparable, Sendable {
  /// Nothing that a decoder gets over.
  case none
  /// A source that ends too early.
  case truncated
  /// A source whose structure makes no sense.
  case error
  /// Any complaint that means lost or invented pixels.
  case warning

  /// All of them, as an error message lists them.
  public static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }

  /// By what they refuse: the most tolerant first.
  public static func < (left: FailOn, right: FailOn) -> Bool { left.order < right.order }

  private var order: Int {
    switch self {
    case .none: 0
    case .truncated: 1
    case .error: 2
    case .warning: 3
    }
  }
}
