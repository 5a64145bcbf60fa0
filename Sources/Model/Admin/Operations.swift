// Operations: the services of a running server for operators.

/// An entry of the negative cache.
public struct FailedURL: Hashable, Sendable, Codable {
  /// The canonical URL of the source.
  public let url: String
  /// The transform, if only this variant failed.
  public let transform: String?
  /// The error code of the first failure.
  public let code: String
  /// The HTTP status of the response.
  public let status: Int
  /// Seconds until the entry expires.
  public let seconds: Int

  /// Creates an entry.
  public init(url: String, transform: String?, code: String, status: Int, seconds: Int) {
    self.url = url
    self.transform = transform
    self.code = code
    self.status = status
    self.seconds = seconds
  }
}

/// The manager's services for operators. No method blocks.
public protocol ManagerOperations: Sendable {
  /// Returns the failed URLs, oldest first.
  func failedURLs() -> [FailedURL]
  /// Removes the failures of one URL and its variants, or all failures for `nil`. Returns the
  /// number of removed entries.
  ///
  /// - Parameter url: the URL that cache keys are made of.
  func removeFailedURLs(_ url: SourceURL?) -> Int
  /// Cancels all work that requests wait for (SDWebImageManager's `cancelAll`). Returns the number
  /// of those requests.
  func cancelAll() -> Int
}

/// The result of a purge or a clear.
public struct PurgeReport: Hashable, Sendable, Codable {
  /// The number of variants removed from memory. `nil` while the search in a large tier continues.
  public var memory: Int? = 0
  /// The number of sources and variants removed from disk. `nil` while the search continues; purged
  /// entries are not served meanwhile.
  public var disk: Int? = 0
  /// The number of removed failures.
  public var failed = 0

  /// Creates an empty report.
  public init() {}

  /// Encodes a number as null if it is not known yet.
  public func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(memory, forKey: .memory)
    try members.encode(disk, forKey: .disk)
    try members.encode(failed, forKey: .failed)
  }
}

/// Where a removal takes entries from.
public enum CacheTier: String, CaseIterable, Sendable {
  /// The memory tier.
  case memory
  /// The disk tier.
  case disk
  /// What the machines of a fleet share.
  case shared
  /// All tiers.
  case all
}

/// The result of cleaning the disk tier.
public struct CleanReport: Hashable, Sendable, Codable {
  /// The number of expired entries.
  public var expired = 0
  /// The number of evicted entries (least recently used).
  public var evicted = 0

  /// Creates an empty report.
  public init() {}
}

/// The tiers that have a request's variant or source (SDWebImage's existence checks).
public struct CacheLookup: Hashable, Sendable {
  /// The variant in memory.
  public var memory: CacheEntryInfo?
  /// The variant on disk.
  public var disk: CacheEntryInfo?
  /// The source on disk, from which the variant can be rendered without its origin.
  public var source: CacheEntryInfo?

  /// Creates an empty result.
  public init() {}

  /// Whether no tier has an entry.
  public var isEmpty: Bool { memory == nil && disk == nil && source == nil }
}

/// The cache's services for operators (SDImageCache).
public protocol CacheOperations: Sendable {
  /// Purges matching entries from all tiers and from the negative cache. The purge applies to every
  /// later request.
  ///
  /// Running work still completes for its present participants, but is not stored.
  ///
  /// - Throws: `internal` if the purge cannot be made durable.
  func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport
  /// Removes matching entries from one tier. From all tiers this is a purge; from one it is not:
  /// work that runs, and another tier, may bring entries back.
  ///
  /// - Parameter filter: the rules with the tags.
  /// - Throws: as `purge`; `invalidParameter` for a tier that is absent or cannot find the entries.
  func remove(
    _ scope: PurgeScope, from tier: CacheTier, filter: CacheKeyFilter
  ) async throws(ImageError) -> PurgeReport
  /// Empties the given tiers. Clearing all tiers is a purge of everything.
  func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport
  /// Removes expired entries from disk, and evicts others if the tier is too full.
  func clean() async -> CleanReport
  /// Returns where the response to a request is cached, without serving it.
  func look(for request: ImageRequest) async -> CacheLookup
  /// Stores an uploaded image as the source of `url`, in place of the cached one (SDWebImage's
  /// `storeImage`).
  ///
  /// - Parameters:
  ///   - url: the URL that cache keys are made of.
  ///   - file: the image.
  ///   - origin: the origin response to assume, with freshness and validators.
  /// - Throws:
  ///   - `unsupportedFormat` if the file is not an image in an accepted format.
  ///   - `forbiddenSource` for a local file.
  ///   - `invalidParameter` if the response may not be stored.
  ///   - `overloaded` if the disk tier rejects the image.
  func put(
    _ url: SourceURL, file: FileRegion, origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport
}

/// The status of a running or ended transfer.
public struct DownloadStatus: Hashable, Sendable, Codable {
  /// The state of a transfer.
  public enum State: String, Hashable, Sendable, Codable {
    /// In the download queue.
    case waiting
    /// Connecting or transferring.
    case running
    /// The body is complete, or the origin responded with 304.
    case finished
    /// The transfer failed or was cancelled.
    case failed
  }

  /// The transfer's number on this server.
  public let id: UInt64
  /// The requested URL.
  public let url: String
  /// The host and port of the current request, after redirects.
  public var host: String
  /// The state of the transfer.
  public var state = State.waiting
  /// The priority in the queue: `low`, `normal` or `high`.
  public var priority: String
  /// The number of requests that wait for the transfer.
  public var waiters = 1
  /// Bytes of the body received.
  public var received = 0
  /// Bytes of the whole body; −1 while unknown.
  public var expected = -1
  /// Seconds since the transfer was queued.
  public var seconds = 0.0
  /// Bytes per second since the first byte of the body, 0 before.
  public var bytesPerSecond = 0.0
  /// The error code of the failure.
  public var error: String?

  /// Creates the status of a queued transfer.
  public init(id: UInt64, url: String, host: String, priority: LoadPriority) {
    self.id = id
    self.url = url
    self.host = host
    self.priority = priority.rawValue
  }

  private enum CodingKeys: String, CodingKey {
    case id, url, host, state, priority, waiters, received, expected, seconds, error
    case bytesPerSecond = "bytes_per_second"
  }

  /// The completed fraction, 0 to 1; `nil` if the length of the body is unknown.
  public var fraction: Double? { expected > 0 ? Double(received) / Double(expected) : nil }
}

/// The downloader's services for operators. No method blocks.
public protocol DownloadOperations: Sendable {
  /// Pauses the queue: no further transfer starts, and running ones continue
  /// (SDWebImageDownloader's `suspended`).
  func pause()
  /// Resumes the queue.
  func resume()
  /// Returns queued and running transfers, in order of arrival.
  func downloads() -> [DownloadStatus]
  /// Calls `observer` for every step of each transfer, its end included, on any thread; must not
  /// block. The calls stop when the observation is released.
  func observeDownloads(_ observer: @escaping @Sendable (DownloadStatus) -> Void) -> Observation
}

/// One line of a prefetch list.
public struct PrefetchLine: Sendable {
  /// The maximum number of images in one list: lines times presets.
  public static let maximumCount = 100_000

  /// The line number in the list, from 1.
  public let number: Int
  /// The parsed request, or the error in the line.
  public let request: Result<ImageRequest, ImageError>

  /// Creates a line.
  public init(number: Int, request: Result<ImageRequest, ImageError>) {
    self.number = number
    self.request = request
  }
}

/// The progress of a prefetch list.
public struct PrefetchStatus: Hashable, Sendable, Codable {
  /// The state of a list.
  public enum State: String, Hashable, Sendable, Codable {
    /// Some lines are not done yet.
    case running
    /// All lines were tried.
    case finished
    /// An operator or a shutdown cancelled the list.
    case cancelled
  }

  /// A failed line.
  public struct Failure: Hashable, Sendable, Codable {
    /// The line number in the list, from 1.
    public let line: Int
    /// The error code.
    public let code: String
    /// The public error message.
    public let message: String

    /// Creates a failed line.
    public init(line: Int, code: String, message: String) {
      self.line = line
      self.code = code
      self.message = message
    }
  }

  /// The identifier, as used in URL paths.
  public let id: String
  /// The state of the list.
  public var state = State.running
  /// The number of images: lines times presets.
  public var total: Int
  /// The number of images downloaded or rendered.
  public var finished = 0
  /// The number of images that were already cached, and of repeated lines.
  public var skipped = 0
  /// The number of failed images.
  public var failed = 0
  /// The number of failures by error code.
  public var reasons: [String: Int] = [:]
  /// The first failures, up to a limit.
  public var failures: [Failure] = []
  /// Images per second, with any outcome.
  public var rate = 0.0
  /// Seconds since the start, up to the end of the list.
  public var seconds = 0.0
  /// The estimated seconds left; `nil` while there is no rate.
  public var secondsLeft: Double?

  /// Creates the status of a new list.
  public init(id: String, total: Int) {
    self.id = id
    self.total = total
  }

  private enum CodingKeys: String, CodingKey {
    case id, state, total, finished, skipped, failed, reasons, failures, rate, seconds
    case secondsLeft = "seconds_left"
  }

  /// The number of images done, with any outcome. Numbers that were decoded may be any, so a sum
  /// beyond `Int` wraps.
  public var done: Int { finished &+ skipped &+ failed }
}

/// The prefetcher's services for operators. No method blocks.
public protocol PrefetchOperations: Sendable {
  /// Starts a list and returns its identifier.
  ///
  /// - Throws: `overloaded` if too many lists run, `draining` when the server stops.
  func prefetch(_ lines: [PrefetchLine]) throws(ImageError) -> String
  /// Returns running lists and the most recent ended ones, in order of arrival.
  func prefetches() -> [PrefetchStatus]
  /// Returns the progress of a list, or `nil` if the list is unknown or forgotten.
  func prefetchStatus(_ id: String) -> PrefetchStatus?
  /// Cancels a list. Returns `false` if no such list runs.
  func cancelPrefetch(_ id: String) -> Bool
  /// Calls `observer` for every step of a list, its end included, as `observeDownloads` does.
  /// Returns `nil` if the list is unknown.
  func observePrefetch(
    _ id: String, observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation?
}
