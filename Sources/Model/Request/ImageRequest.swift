// ImageRequest: a parsed request for an image.

/// A request for an image.
public struct ImageRequest: Hashable, Sendable {
  /// The URL of the source.
  public let source: SourceURL
  /// The transform to apply.
  public private(set) var transform: Transform
  /// The cache key of the variant.
  public private(set) var key: CacheKey
  /// The client's header fields to forward to the origin.
  public private(set) var forwarded: [HeaderField] = []
  /// The source itself, if it came with the request.
  public private(set) var body: FileRegion?
  /// Whether the client's credentials are forwarded, which restricts shared caches (RFC 9111,
  /// section 3.5).
  public var isAuthorized: Bool {
    forwarded.contains { $0.name.lowercased() == "authorization" }
  }
  /// How to serve the request.
  public var options: LoadOptions

  /// Creates a request.
  ///
  /// - Parameter keyURL: the URL for the cache key; `nil`: `source`. See `CacheKeyFilter`.
  public init(
    source: SourceURL, transform: Transform, options: LoadOptions = LoadOptions(),
    keyURL: SourceURL? = nil
  ) {
    self.source = source
    self.transform = transform
    self.options = options
    key = CacheKey(source: keyURL ?? source, transform: transform)
  }

  /// Returns this request for a client that accepts these formats, the preferred first; see
  /// `OutputOptions.accepted`.
  public func accepting(_ formats: [ImageFormat]) -> ImageRequest {
    var request = self
    request.transform.output.accepted = formats
    request.key = CacheKey(source: key.source, transform: request.transform)
    return request
  }

  /// Returns this request with an explicit format.
  public func naming(_ format: ImageFormat) -> ImageRequest {
    var request = self
    request.transform.output.format = format
    request.transform.output.accepted = []
    request.key = CacheKey(source: key.source, transform: request.transform)
    return request
  }

  /// Returns this request with another transform. Call before `forwarding`.
  public func changing(_ change: (inout Transform) -> Void) -> ImageRequest {
    var request = self
    change(&request.transform)
    request.key = CacheKey(source: key.source, transform: request.transform)
    return request
  }

  /// Returns this request for a source that came with it. Call before `forwarding`.
  ///
  /// - Parameter digest: names the bytes, so that equal ones share their variants.
  public func loading(_ body: FileRegion, named digest: String) -> ImageRequest {
    var request = ImageRequest(
      source: SourceURL(bodyWith: digest), transform: transform, options: options)
    request.body = body
    return request
  }

  /// Returns this request with forwarded header fields, on which the origin's response may depend.
  /// Call at most once.
  ///
  /// - Parameter variation: a digest of the fields, which becomes part of the key.
  public func forwarding(_ fields: [HeaderField], variation: String) -> ImageRequest {
    var request = self
    request.key = key.varied(by: variation)
    request.forwarded = fields
    return request
  }
}
