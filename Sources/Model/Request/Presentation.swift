// Presentation: what a response says to its client beside the image.

/// The name under which a client saves an image, and how long it keeps it. No part of a cache key.
public struct Presentation: Hashable, Sendable {
  /// The file name without extension; `nil`: the source's.
  public var stem: String?
  /// Whether browsers save the image in place of showing it (RFC 6266, section 4.2).
  public var isAttachment = false
  /// The longest time in caches in seconds; `nil`: the image's.
  public var maximumAge: Int?

  /// The longest file name, in characters.
  public static let longestStem = 100
  /// The range of `maximumAge`: up to a year.
  public static let ages = 0...31_536_000

  /// Creates the presentation of a request that says nothing of it.
  public init() {}
}
