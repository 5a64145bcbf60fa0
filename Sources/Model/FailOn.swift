// FailOn: how much damage a source may have before it is rejected.

/// The mildest damage that rejects a source, in libvips's terms. Each level also rejects what the
/// levels below it list.
public enum FailOn: String, CaseIterable, Comparable, Sendable {
  /// Accepts all damage that a decoder tolerates.
  case none
  /// Rejects truncated sources.
  case truncated
  /// Rejects sources with an invalid structure.
  case error
  /// Rejects sources with any warning about lost or made-up pixels.
  case warning

  /// Orders by strictness, the most tolerant first.
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
