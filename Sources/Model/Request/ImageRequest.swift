// ImageRequest: what a client asks for, parsed. Past the parser there are no strings and no dictionaries.

/// One request for an image.
public struct ImageRequest: Hashable, Sendable {
  /// Where the image comes from.
  public let source: SourceURL
  /// What is to be made of it.
  public private(set) var transform: Transform
  /// The key its answer is kept under.
  public private(set) var key: CacheKey
  /// What of the client's own header the origin is sent.
  public private(set) var forwarded: [HeaderField] = []
  /// Whether the origin is sent its client's credentials, which shared caches have a rule for (RFC 9111, section 3.5).
  public var isAuthorized: Bool {
    forwarded.contains { $0.name.lowercased() == "authorization" }
  }
  /// How it wants to be served.
  public var options: LoadOptions

  /// A request for what `transform` makes of `source`.
  ///
  /// - Parameter keyURL: what the key is made of; `nil`: of `source` itself. See `CacheKeyFilter`.
  public init(
    source: SourceURL, transform: Transform, options: LoadOptions = LoadOptions(),
    keyURL: SourceURL? = nil
  ) {
    (self.source, self.transform, self.options) = (source, transform, options)
    key = CacheKey(source: keyURL ?? source, transform: transform)
  }

  /// The same request of a client who takes these formats, the best first; see `Transform.accepted`.
  public func accepting(_ formats: [ImageFormat]) -> ImageRequest {
    var request = self
    request.transform.accepted = formats
    request.key = CacheKey(source: key.source, transform: request.transform)
    return request
  }

  /// The same request with the format named.
  public func naming(_ format: ImageFormat) -> ImageRequest {
    var request = self
    (request.transform.format, request.transform.accepted) = (format, [])
    request.key = CacheKey(source: key.source, transform: request.transform)
    return request
  }

  /// The same request with fields of its client's header, which the origin's answer may depend on. To be asked once.
  ///
  /// - Parameter variation: a digest of the fields, which becomes part of the key.
  public func forwarding(_ fields: [HeaderField], variation: String) -> ImageRequest {
    var request = self
    request.key = key.varied(by: variation)
    request.forwarded = fields
    return request
  }
}
