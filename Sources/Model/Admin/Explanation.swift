// Explanation: what a request would do and why, for `GET /admin/explain`.

/// One step of an explained request.
public struct ExplainedStep: Hashable, Sendable, Codable {
  /// How a step ends.
  public enum Outcome: String, Hashable, Sendable, Codable {
    /// The next step decides.
    case next
    /// The step answers.
    case answers
    /// The step ends the request with an error.
    case fails
  }

  /// The step's name.
  public let step: String
  /// How it ends.
  public let outcome: Outcome
  /// The reason, in a few words.
  public let why: String

  /// Creates a step.
  public init(_ step: String, _ outcome: Outcome, _ why: String) {
    self.step = step
    self.outcome = outcome
    self.why = why
  }
}

/// The answer that an explained request would get, as far as known without the origin.
public struct ExplainedAnswer: Hashable, Sendable, Codable {
  /// The start of the `Cache-Status` field; `nil` for an error.
  public var cacheStatus: String?
  /// The HTTP status of an error; `nil` for an image.
  public var status: Int?
  /// The error code; `nil` for an image.
  public var code: String?
  /// Whether the request joins work that another request started.
  public var isCollapsed = false

  private enum CodingKeys: String, CodingKey {
    case status, code
    case cacheStatus = "cache_status"
    case isCollapsed = "collapsed"
  }

  /// Creates the answer with an image.
  public init(cacheStatus: String) { self.cacheStatus = cacheStatus }

  /// Creates the answer with an error.
  public init(_ error: ImageError) {
    status = error.status
    code = error.code
  }
}

/// A stored entry as an explanation shows it.
public struct ExplainedEntry: Hashable, Sendable, Codable {
  /// How the request may use the entry.
  public enum Use: String, Hashable, Sendable, Codable {
    /// Without asking the origin.
    case fresh
    /// Stale, while a background request revalidates it.
    case whileRevalidating = "stale-while-revalidate"
    /// Stale, because the origin failed recently.
    case ifError = "stale-if-error"
    /// Stale, because the request accepts that.
    case accepted = "max-stale"
    /// Only after the origin is asked.
    case no
  }

  /// The bytes of the body.
  public var bytes: Int
  /// The age in seconds.
  public var age: Int
  /// The remaining lifetime in seconds; negative if stale.
  public var ttl: Int
  /// How the request may use the entry.
  public var use: Use
  /// Seconds for which the entry may still be served stale during a revalidation; 0: not at all.
  public var staleWhileRevalidate: Int
  /// Seconds for which the entry may still be served stale if the origin fails; 0: not at all.
  public var staleIfError: Int
  /// When the origin's response was received or last revalidated, in Unix seconds.
  public var received: Int
  /// The validator `ETag`: a source's from its origin, a variant's own.
  public var etag: String?
  /// The validator `Last-Modified`.
  public var lastModified: String?
  /// What the origin last said; `nil` for a variant.
  public var origin: ExplainedOrigin?

  private enum CodingKeys: String, CodingKey {
    case bytes, age, ttl, use, received, etag, origin
    case staleWhileRevalidate = "stale_while_revalidate"
    case staleIfError = "stale_if_error"
    case lastModified = "last_modified"
  }

  /// Creates an entry.
  ///
  /// - Parameter now: the time at which ages are taken.
  public init(_ entry: CacheEntryInfo, use: Use, at now: UnixTime) {
    let freshness = entry.freshness
    bytes = entry.bytes
    age = freshness.age(at: now)
    ttl = freshness.timeToLive(at: now)
    self.use = use
    // Stale times begin when the lifetime ends.
    let isStorable = freshness.isStorable && freshness.isOfThePast(at: now)
    staleWhileRevalidate = isStorable ? max(freshness.staleWhileRevalidate + min(ttl, 0), 0) : 0
    staleIfError = isStorable ? max(freshness.staleIfError + min(ttl, 0), 0) : 0
    received = freshness.receivedAt.seconds
    switch entry.stored {
    case .variant(let info):
      etag = info.etag.description
      lastModified = info.lastModified.map(HTTPDate.text)
    case .source(let response, _):
      etag = response.etag
      lastModified = response.lastModified
      origin = ExplainedOrigin(response)
    case nil: break
    }
  }
}

/// What an origin last said, as far as it is stored.
public struct ExplainedOrigin: Hashable, Sendable, Codable {
  /// The status of the response with the body.
  public let status: Int
  /// `Cache-Control`.
  public let cacheControl: String?
  /// `CDN-Cache-Control` or `Surrogate-Control`, which counts in place of `Cache-Control`.
  public let targetedControl: String?
  /// `Expires`.
  public let expires: String?
  /// `Date`.
  public let date: String?
  /// `Content-Type`.
  public let contentType: String?
  /// `Vary`.
  public let vary: String?

  private enum CodingKeys: String, CodingKey {
    case status, expires, date, vary
    case cacheControl = "cache_control"
    case targetedControl = "targeted_cache_control"
    case contentType = "content_type"
  }

  init(_ response: OriginResponse) {
    status = response.status
    cacheControl = response.cacheControl
    targetedControl = response.targetedControl
    expires = response.expires
    date = response.date
    contentType = response.contentType
    vary = response.vary
  }
}

/// What the manager would do with a request, and the state that decides it.
public struct Explanation: Hashable, Sendable, Codable {
  /// The requests that wait for work which the request would join.
  public struct Flights: Hashable, Sendable, Codable {
    /// Requests that wait for the same variant.
    public var variant = 0
    /// Flights and requests that wait for the same source.
    public var source = 0
    /// Whether a background revalidation of the source runs.
    public var isRevalidating = false

    private enum CodingKeys: String, CodingKey {
      case variant, source
      case isRevalidating = "revalidating"
    }

    /// Creates an empty count.
    public init() {}
  }

  /// The variant in memory.
  public var memory: ExplainedEntry?
  /// The variant on disk.
  public var disk: ExplainedEntry?
  /// The source on disk.
  public var source: ExplainedEntry?
  /// The remembered failures of the source and of the variant.
  public var failures: [FailedURL] = []
  /// Running work.
  public var flights = Flights()
  /// The state of the origin; `nil` for a local file.
  public var origin: LoadOutlook?
  /// The steps of the request, in order, up to the one that ends it.
  public var would: [ExplainedStep] = []
  /// How the last step ends the request.
  public var answer: ExplainedAnswer?

  /// Creates an empty explanation.
  public init() {}

  private enum CodingKeys: CodingKey {
    case memory, disk, source, failures, flights, origin, would, answer
  }

  /// Encodes missing members as null.
  public func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(memory, forKey: .memory)
    try members.encode(disk, forKey: .disk)
    try members.encode(source, forKey: .source)
    try members.encode(failures, forKey: .failures)
    try members.encode(flights, forKey: .flights)
    try members.encode(origin, forKey: .origin)
    try members.encode(would, forKey: .would)
    try members.encode(answer, forKey: .answer)
  }
}

/// Explains requests without performing them.
public protocol RequestExplainer: Sendable {
  /// Returns what a request would do now. Loads nothing, counts as no use of an entry, and changes
  /// nothing.
  func explain(_ request: ImageRequest) async -> Explanation
}
