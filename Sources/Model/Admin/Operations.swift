// Operations: what operators can ask a running server for.

/// A source on the list of failed URLs.
public struct FailedURL: Hashable, Sendable, Codable {
  /// Its canonical address.
  public let url: String
  /// What was wanted of it, where only that failed.
  public let transform: String?
  /// The contract's code of its first failure.
  public let code: String
  /// The status that failure is answered with.
  public let status: Int
  /// Seconds until it is forgotten.
  public let seconds: Int

  /// A listed source.
  public init(url: String, transform: String?, code: String, status: Int, seconds: Int) {
    (self.url, self.transform) = (url, transform)
    (self.code, self.status, self.seconds) = (code, status, seconds)
  }
}

/// What operators can ask of the manager. None of it waits.
public protocol ManagerOperations: Sendable {
  /// The failed URLs, first listed first.
  func failedURLs() -> [FailedURL]
  /// Forgets one failed URL, with all that failed of it, or every one for `nil`; tells how many there were. The URL is
  /// what keys are made of.
  func removeFailedURLs(_ url: SourceURL?) -> Int
  /// Ends all work that requests wait for (SDWebImageManager's cancelAll); tells how many requests that were.
  func cancelAll() -> Int
}

/// What a purge or a clear removed.
public struct PurgeReport: Hashable, Sendable, Codable {
  /// Variants in memory.
  public var memory = 0
  /// Sources and variants on disk; `nil` where they are still being looked for: they are served no more.
  public var disk: Int? = 0
  /// Failures that were remembered.
  public var failed = 0

  /// Nothing removed.
  public init() {}

  /// With `disk` as null where it is not known yet.
  public func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(memory, forKey: .memory)
    try members.encode(disk, forKey: .disk)
    try members.encode(failed, forKey: .failed)
  }
}

/// What a clean of the disk tier removed.
public struct CleanReport: Hashable, Sendable, Codable {
  /// Entries that were too old.
  public var expired = 0
  /// Entries that were least recently used.
  public var evicted = 0

  /// Nothing removed.
  public init() {}
}

/// Where a request's answer is kept (SDWebImage's existence checks).
public struct CacheLookup: Hashable, Sendable {
  /// The variant in memory.
  public var memory: CacheEntryInfo?
  /// The variant on disk.
  public var disk: CacheEntryInfo?
  /// The source, which the variant can be made from without its origin.
  public var source: CacheEntryInfo?

  /// Kept nowhere.
  public init() {}

  /// Whether anything is kept.
  public var isEmpty: Bool { memory == nil && disk == nil && source == nil }
}

/// What operators can ask of the cache (SDImageCache).
public protocol CacheOperations: Sendable {
  /// Takes everything that is meant out of all tiers and off the list of failed URLs. It holds for each request that
  /// comes afterwards; work under way ends for those who wait for it already and is not stored.
  ///
  /// - Throws: `internal` where it would not outlive this run.
  func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport
  /// Empties tiers; both: as a purge of everything.
  func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport
  /// Removes from disk what is too old or too much.
  func clean() async -> CleanReport
  /// Where the answer to a request is kept, without serving it.
  func look(for request: ImageRequest) async -> CacheLookup
  /// Keeps an image as the source of `url`, in place of whatever is kept of it (SDWebImage's storeImage).
  ///
  /// - Parameters:
  ///   - url: what keys are made of.
  ///   - file: the image.
  ///   - origin: what is to hold for it as if an origin had said so: its lifetime, its validators.
  /// - Throws: `unsupportedFormat` for what is no image, `forbiddenSource` for a local file, `overloaded` where the disk
  ///   tier does not take it.
  func put(
    _ url: SourceURL, _ file: FileRegion, _ origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport
}

/// A transfer from an origin, as it is or as it ended.
public struct DownloadStatus: Hashable, Sendable, Codable {
  /// What becomes of it.
  public enum State: String, Hashable, Sendable, Codable {
    /// For a place.
    case waiting
    /// Connected, or about to be.
    case running
    /// The body is whole, or the origin said that what is kept still is right.
    case finished
    /// It ended without.
    case failed
  }

  /// Its number among all of this server.
  public let id: UInt64
  /// The address that was asked for.
  public let url: String
  /// Host and port of the request under way, which redirects may have changed.
  public var host: String
  /// What becomes of it.
  public var state: State
  /// Its place in the queue: `low`, `normal` or `high`.
  public var priority: String
  /// Requests that wait for it.
  public var waiters: Int
  /// Bytes of the body so far.
  public var received: Int
  /// Bytes of the whole body; −1 while nobody has said.
  public var expected: Int
  /// Seconds since its beginning, those in the queue included.
  public var seconds: Double
  /// Bytes a second since the first byte of the body, 0 before.
  public var bytesPerSecond: Double
  /// The contract's code of its failure.
  public var error: String?

  /// A transfer that waits for its place.
  public init(id: UInt64, url: String, host: String, priority: LoadPriority) {
    (self.id, self.url, self.host, self.priority) = (id, url, host, priority.rawValue)
    (state, waiters, received, expected) = (.waiting, 1, 0, -1)
    (seconds, bytesPerSecond, error) = (0, 0, nil)
  }

  private enum CodingKeys: String, CodingKey {
    case id, url, host, state, priority, waiters, received, expected, seconds, error
    case bytesPerSecond = "bytes_per_second"
  }

  /// What is done of the whole, 0 to 1; `nil` where the whole is not known.
  public var fraction: Double? { expected > 0 ? Double(received) / Double(expected) : nil }
}

/// What operators can ask of the downloader. None of it waits.
public protocol DownloadOperations: Sendable {
  /// Starts no further transfer; running ones end (SDWebImageDownloader's suspended).
  func pause()
  /// Starts those that wait.
  func resume()
  /// Transfers that wait or run, first come first.
  func downloads() -> [DownloadStatus]
  /// Has `observer` told of each transfer's every step from now on, its end included, on whatever thread makes it; it
  /// must not wait. It is told nothing more once the observation is released.
  func observeDownloads(_ observer: @escaping @Sendable (DownloadStatus) -> Void) -> Observation
}

/// Keeps an observer; released, it lets go of it.
public final class Observation: Sendable {
  private let end: @Sendable () -> Void

  /// `end` lets go of the observer.
  public init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// One line of what is to be prefetched.
public struct PrefetchLine: Sendable {
  /// Most images of one list: lines, times the presets.
  public static let most = 100_000

  /// Its number in the list, from 1.
  public let number: Int
  /// What it asks for, or what is wrong with it.
  public let request: Result<ImageRequest, ImageError>

  /// One line.
  public init(number: Int, request: Result<ImageRequest, ImageError>) {
    (self.number, self.request) = (number, request)
  }
}

/// How far a prefetch is.
public struct PrefetchStatus: Hashable, Sendable, Codable {
  /// What becomes of it.
  public enum State: String, Hashable, Sendable, Codable {
    /// Some of it is still to be done.
    case running
    /// Everything was tried.
    case finished
    /// Somebody ended it.
    case cancelled
  }

  /// A line that has no image.
  public struct Failure: Hashable, Sendable, Codable {
    /// Its number in the list, from 1.
    public let line: Int
    /// The contract's code.
    public let code: String
    /// What was wrong, in public words.
    public let message: String

    /// A line that has no image.
    public init(line: Int, code: String, message: String) {
      (self.line, self.code, self.message) = (line, code, message)
    }
  }

  /// Its name, for the paths.
  public let id: String
  /// What becomes of it.
  public var state = State.running
  /// Images asked for: lines, times the presets.
  public var total: Int
  /// Images that are kept now because of it.
  public var finished = 0
  /// Images that were kept and fresh already.
  public var skipped = 0
  /// Images that cannot be had.
  public var failed = 0
  /// How many failed for each of the contract's codes.
  public var reasons: [String: Int] = [:]
  /// The first of those that failed.
  public var failures: [Failure] = []
  /// Images done a second, however they ended.
  public var rate = 0.0
  /// Seconds since it began; until its end, where it has one.
  public var seconds = 0.0
  /// Seconds until its end at this rate; `nil` where there is no rate yet.
  public var secondsLeft: Double?

  /// One that has not begun.
  public init(id: String, total: Int) { (self.id, self.total) = (id, total) }

  private enum CodingKeys: String, CodingKey {
    case id, state, total, finished, skipped, failed, reasons, failures, rate, seconds
    case secondsLeft = "seconds_left"
  }

  /// Images done, however they ended.
  public var done: Int { finished + skipped + failed }
}

/// What operators can ask of the prefetcher. None of it waits.
public protocol PrefetchOperations: Sendable {
  /// Begins with a list; returns its name.
  ///
  /// - Throws: `overloaded` where as many lists as may are being worked on.
  func prefetch(_ lines: [PrefetchLine]) throws(ImageError) -> String
  /// Those that run, and the last of those that ended; first begun first.
  func prefetches() -> [PrefetchStatus]
  /// How far one is; `nil` where there is none of this name (any more).
  func prefetchStatus(_ id: String) -> PrefetchStatus?
  /// Ends one; `false` where there is none of this name that runs.
  func cancelPrefetch(_ id: String) -> Bool
  /// Has `observer` told of each step of one, its end included, as `observeDownloads` does; `nil` where there is none.
  func observePrefetch(
    _ id: String, _ observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation?
}
