// ImageRequest: what a client asks for, parsed. Past the parser there are no strings and no dictionaries.

/// One request for a picture.
public struct ImageRequest: Hashable, Sendable {
  /// Where the picture comes from.
  public let source: SourceURL
  /// What is to be made of it.
  public let transform: Transform
  /// The key its answer is kept under.
  public let key: CacheKey
  /// How it wants to be served.
  public var options: LoadOptions

  /// A request for what `transform` makes of `source`.
  public init(source: SourceURL, transform: Transform, options: LoadOptions = LoadOptions()) {
    (self.source, self.transform, self.options) = (source, transform, options)
    key = CacheKey(source: source, transform: transform)
  }
}
