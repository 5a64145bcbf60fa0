// LoaderPorts: what a loader is asked for and returns, and bodies while they are downloaded.

/// The result of reading from a streaming body.
public enum PartialRead: Hashable, Sendable {
  /// The number of bytes read, at least one.
  case bytes(Int)
  /// No bytes are available yet.
  case notYet
  /// The body is complete and read to its end.
  case end
  /// The transfer failed; the rest will not arrive.
  case failed
}

/// A body that is being downloaded. Any reader may start at the first byte.
public protocol StreamingBody: AnyObject, Sendable {
  /// The origin's response.
  var origin: OriginResponse { get }
  /// The length of the whole body in bytes; `nil` if unknown.
  var expected: Int? { get }
  /// The future `Download.version` of the whole body.
  var version: UInt64 { get }
  /// Whether all expected bytes have arrived. The loader may not have validated the end yet.
  var isComplete: Bool { get }
  /// Copies available bytes from `position` on. Never blocks.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead
  /// Calls `observer` on any thread when a read that returned `notYet` may now succeed.
  func observe(_ observer: @escaping @Sendable () -> Void) -> Observation
}

/// A downloaded body with its metadata.
public struct Download: Sendable {
  /// The complete body.
  public let file: FileRegion
  /// The origin's response.
  public let origin: OriginResponse
  /// `queue`, `dns`, `connect`, `tls`, `ttfb` and `download`.
  public let timings: Timings
  /// Identifies these bytes: a random number, or for a local file a number from its date and size.
  /// Never 0.
  public let version: UInt64

  /// Creates a download.
  public init(
    file: FileRegion, origin: OriginResponse, timings: Timings,
    version: UInt64 = .random(in: 1...(.max))
  ) {
    self.file = file
    self.origin = origin
    self.timings = timings
    self.version = version
  }
}

/// The priority of shared work: the highest of its participants' priorities, and whom it works for.
/// Both may grow while the work waits.
public protocol WorkPriority: AnyObject, Sendable {
  /// Calls `observer` for each raise, on any thread; must not block.
  ///
  /// - Returns: the current priority.
  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority
  /// Calls `observer` for each further client that the work is for, on any thread; must not block.
  ///
  /// - Returns: the clients, including those that left; empty before the first participant.
  func observeClients(
    _ observer: @escaping @Sendable (LoadClient) -> Void
  ) -> Set<LoadClient>
  /// The number of requests that wait for the work.
  var waiters: Int { get }
}

/// The validators of a response (RFC 9110, section 8.8), as the origin sent them.
public struct Validators: Hashable, Sendable {
  /// `ETag`.
  public let etag: String?
  /// `Last-Modified`.
  public let lastModified: String?

  /// Returns the validators of a response, or `nil` if it has none.
  public init?(_ origin: OriginResponse) {
    guard origin.etag != nil || origin.lastModified != nil else { return nil }
    etag = origin.etag
    lastModified = origin.lastModified
  }
}

/// How far a load came, for a diagnosis.
public struct LoadProgress: Hashable, Sendable {
  /// The times of all hops so far. Those of a hop that failed are incomplete.
  public var timings = Timings()
  /// The addresses of the last hop's host or proxy; `nil` before it is resolved, empty if the URL
  /// has the address itself.
  public var addresses: [IPAddress]?
  /// The URL of the last hop: another one after a redirect, and for an object of a store.
  public var url: SourceURL
  /// Whether the last hop has a connection.
  public var isConnected = false
  /// Whether the connection has TLS.
  public var isSecured = false
  /// The status of the last response; `nil` before its head is complete.
  public var status: Int?
  /// Redirects that were followed.
  public var redirects = 0
  /// Attempts that were repeated.
  public var retries = 0

  /// Creates the progress of a load that has not begun.
  public init(url: SourceURL) { self.url = url }
}

/// A request to a loader.
public struct LoadRequest: Sendable {
  /// The URL to load.
  public let url: SourceURL
  /// The source itself, if it came with the request.
  public let body: FileRegion?
  /// The validators of the cached source, for a conditional request (RFC 9110, section 13).
  public let validators: Validators?
  /// The priority in the queue and the clients; `nil`: always normal, without a client's share.
  public let priority: (any WorkPriority)?
  /// Forwarded header fields of the client, sent only to the origin of `url`.
  public let forwarded: [HeaderField]
  /// The servers that the request came through. They are forwarded to the origin (RFC 8586).
  public let trail: ServerTrail
  /// The trace that the load belongs to; `nil`: none.
  public let trace: TraceContext?
  /// Called with the head of each final response of any status, before its body, on the loader's
  /// thread. Must not block. Loaders without an origin never call it.
  public let onHead: (@Sendable (OriginResponse) -> Void)?
  /// Called with a body of acceptable status before its first byte. Loaders that cannot stream
  /// never call it.
  ///
  /// Runs on the loader's thread and must not block.
  public let onBody: (@Sendable (any StreamingBody) -> Void)?
  /// Called with the progress of a load that had its turn, before its result, on the loader's
  /// thread. Must not block. Such a load has a connection of its own, so that each step is seen.
  /// Loaders without an origin never call it.
  public let onEnd: (@Sendable (LoadProgress) -> Void)?

  /// Creates a request.
  public init(
    url: SourceURL, body: FileRegion? = nil, validators: Validators? = nil,
    priority: (any WorkPriority)? = nil,
    forwarded: [HeaderField] = [], trail: ServerTrail = ServerTrail(),
    trace: TraceContext? = nil,
    onHead: (@Sendable (OriginResponse) -> Void)? = nil,
    onBody: (@Sendable (any StreamingBody) -> Void)? = nil,
    onEnd: (@Sendable (LoadProgress) -> Void)? = nil
  ) {
    self.url = url
    self.body = body
    self.trail = trail
    self.trace = trace
    self.validators = validators
    self.priority = priority
    self.forwarded = forwarded
    self.onHead = onHead
    self.onBody = onBody
    self.onEnd = onEnd
  }
}

/// The result of a load.
public enum LoadResult: Sendable {
  /// A body.
  case fetched(Download)
  /// A 304 response to a conditional request, and the timings of the request.
  case notModified(OriginResponse, Timings)
}

/// Loads the bytes of a URL (SDImageLoader).
public protocol ImageLoader: Sendable {
  /// Loads the whole body. Cancelling the calling task cancels the transfer and throws
  /// `ImageError.cancelled`.
  func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult
  /// Returns what would happen to a load of `url` now, or `nil` for a loader without an origin.
  /// Loads nothing.
  func outlook(for url: SourceURL) async -> LoadOutlook?
}

extension ImageLoader {
  /// Returns `nil`.
  public func outlook(for url: SourceURL) async -> LoadOutlook? { nil }
}

/// Whose share of downloads a load takes (`download.limit_per_client`).
public enum LoadClient: Hashable, Sendable {
  /// A client with a share: an IPv4 address, or the first address of an IPv6 /64.
  case network(IPAddress)
  /// Clients without a share of their own: trusted proxies, the machine itself, operators.
  case unlimited
  /// Work that no client waits for: prefetches and revalidations. It has no share: it runs in
  /// places that clients do not need.
  case background
}

/// The account of clients without a share. It charges nothing.
public struct UnlimitedAccount: ImagingAccount {
  /// Creates an account.
  public init() {}

  /// `unlimited`.
  public var client: LoadClient { .unlimited }

  /// Does nothing.
  public func charge(_ time: Duration) {}
}

/// What the work of a client's requests is charged to: the time of imaging workers, and downloads.
public protocol ImagingAccount: Sendable {
  /// Whose share of downloads the loads take.
  var client: LoadClient { get }
  /// Charges time that a worker spent. Called on any thread; must not block.
  func charge(_ time: Duration)
}

/// The account of the current task.
public enum ImagingAccounts {
  /// The account of the client whose request the task works for; `nil` if no client waits.
  ///
  /// A flight has the account of the request that began it. Its imaging costs requests that join it
  /// nothing. Its download may count as that of any of them (`WorkPriority.observeClients`).
  @TaskLocal public static var current: (any ImagingAccount)?
}
