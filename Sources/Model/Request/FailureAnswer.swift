// FailureAnswer: what a client gets if its image cannot be had.

/// What a client gets if its image cannot be had. `ImageError.isOfImage` says for which failures.
public enum FailureAnswer: Hashable, Sendable {
  /// The error as JSON.
  case error
  /// A fallback image.
  case fallback(FallbackImage)
  /// A redirect to the source.
  case redirect
}

/// An image of the operator's that is sent in place of one that cannot be had.
public struct FallbackImage: Hashable, Sendable {
  /// The name in the configuration.
  public let name: String
  /// The URL of its source.
  public let source: SourceURL
  /// The URL for cache keys; see `CacheKeyFilter`.
  public let keyURL: SourceURL

  /// Creates a fallback image.
  public init(name: String, source: SourceURL, keyURL: SourceURL) {
    self.name = name
    self.source = source
    self.keyURL = keyURL
  }
}

/// The status of a response with a fallback image.
public enum FallbackStatus: String, CaseIterable, Hashable, Sendable {
  /// The status of the failure.
  case auto
  /// 200, for clients that show no image of another status.
  case ok = "200"
}

extension ImageError {
  /// Whether the image itself cannot be had: its source, its loading or its processing failed. A
  /// fallback image or a redirect may take its place.
  ///
  /// `false` for mistakes in the request, for a client beyond its share, for a server that has no
  /// capacity, and for `not_cached`, which answers the client's own question.
  public var isOfImage: Bool {
    switch cause {
    case .forbiddenSource, .sourceNotFound, .sourceTooLarge, .unsupportedFormat, .unsupportedKind,
      .undecodable,
      .tooManyPixels, .tooManyFrames, .tooCostly, .sourceUnreachable, .sourceError,
      .sourceIncomplete, .sourceTLS, .tooManyRedirects, .sourceTimeout, .deadlineExceeded,
      .imagingTimeout:
      true
    case .watermark(let cause): cause.isOfImage
    default: false
    }
  }

  /// Whether a client may load the source itself: a redirect leads to no source that this server
  /// refuses to load.
  public var allowsRedirect: Bool {
    if case .forbiddenSource = cause { return false }
    return isOfImage
  }
}
