// NegativeCache: remembers the failures of sources and variants, and forgets them with a purge.

import Core

/// The negative cache, shared by all flights.
final class NegativeCache: Sendable {
  /// The work that failed.
  enum Stage {
    case loading
    case rendering
  }

  private let entries: Lock<FailedURLs>
  private let purges: any PurgeList
  private let now: @Sendable () -> UnixTime

  /// Creates an empty negative cache.
  init(
    settings: FailureSettings, purges: any PurgeList, now: @escaping @Sendable () -> UnixTime
  ) {
    entries = Lock(FailedURLs(settings: settings))
    self.purges = purges
    self.now = now
  }

  func apply(_ settings: FailureSettings) { entries.withLock { $0.apply(settings) } }

  /// The number of entries, including expired ones that are not removed yet.
  var count: Int { entries.withLock { $0.count } }

  /// Returns the remembered failure of a request's source or variant at `stage`, unless the request
  /// retries failures.
  func failure(of request: ImageRequest, at stage: Stage) -> ImageError? {
    guard !request.options.retriesFailed else { return nil }
    return entries.withLock { entries in
      // A load failure of the source must not hide a render failure of the variant, or the reverse.
      [request.key.source, request.key].compactMap { entries.failure(of: $0, now: now()) }
        .first { $0.cause.stage == stage }
    }
  }

  /// Adds a failure unless a purge covers it. Returns the error for the client.
  ///
  /// - Parameter freshness: that of the failed response, which limits the lifetime; `nil`
  ///   if no response arrived.
  func add(
    _ error: ImageError, of key: CacheKey, since generation: Int, freshness: Freshness?
  ) -> ImageError {
    // Checks and adds in one critical section: a purge clears failures after it is published.
    entries.withLock { entries in
      purges.covers(key, generation: generation)
        ? error : entries.add(key, after: error, originFreshness: freshness, now: now())
    }
  }

  // MARK: Rendering

  /// Adds a render failure and returns the error for the client.
  ///
  /// Only failures of the source itself (`ImageError.isOfSource`, as the imaging worker reports)
  /// are listed for the source. Failures of one variant are listed for that variant, and all others
  /// are not listed.
  func add(
    _ error: ImageError, rendering request: ImageRequest, of source: Source
  ) -> ImageError {
    // `BackgroundQueue` remembers this failure, and no client waited for it.
    guard !request.options.awaitsAVIF else { return error }
    let key: CacheKey
    switch error {
    case .ofVariant: key = request.key
    case _ where error.isOfSource: key = request.key.source
    default: return error
    }
    return add(error, of: key, since: source.generation, freshness: source.freshness)
  }

  /// Removes the failures of a request's source, variant and watermark.
  func removeFailures(of request: ImageRequest) {
    entries.withLock { entries in
      _ = entries.remove(request.key.source)
      _ = entries.remove(request.key)
      if let watermark = request.transform.watermark { _ = entries.remove(watermark.key) }
    }
  }

  /// Removes matching entries and returns their number.
  func removeAll(where matches: (CacheKey) -> Bool) -> Int {
    entries.withLock { $0.removeAll(where: matches) }
  }

  /// Removes the entries of one URL, or all entries. Returns their number.
  func removeAll(of url: SourceURL?) -> Int {
    entries.withLock { entries in
      guard let url else { return entries.removeAll() }
      return entries.removeAll { $0.url == url.text }
    }
  }

  /// Returns the unexpired entries, oldest first.
  func all() -> [FailedURL] { entries.withLock { $0.all(now: now()) } }
}

extension ImageError {
  /// The work that reports this failure.
  fileprivate var stage: NegativeCache.Stage {
    switch self {
    case .sourceNotFound, .sourceTooLarge: .loading
    default: .rendering
    }
  }
}

extension FailureSettings {
  /// Returns how many seconds a failure is cached; 0 means not at all.
  ///
  /// Time-outs, DNS and connection errors, cancellation, 429 and 5xx are never cached, even if
  /// `lifetimes` lists them.
  fileprivate func lifetime(of error: ImageError) -> Int {
    switch error {
    case .sourceNotFound(let status): lifetimes[status]?.flooredSeconds ?? 0
    case .sourceTooLarge, .unsupportedFormat, .unsupportedKind, .undecodable, .tooManyPixels,
      .tooManyFrames, .tooCostly:
      lifetimes[error.status]?.flooredSeconds ?? 0
    case .ofVariant(let cause): lifetime(of: cause)
    default: 0
    }
  }
}

/// The negative cache (SDWebImage's blacklist, but with lifetimes). A pure state machine: the
/// caller passes the time.
struct FailedURLs {
  private struct Entry {
    let error: ImageError
    let until: UnixTime
    /// The freshness of the origin's error response.
    let originFreshness: Freshness?

    /// How long clients and shared caches may keep a failure that may heal, in seconds. A page of
    /// maintenance is no image for a minute, and a purge does not reach their copies.
    private static let healingTime = 60

    /// Whether the same URL may soon be an image: its bytes failed, and not the request for one
    /// variant.
    private var mayHeal: Bool {
      switch error {
      case .sourceNotFound, .ofVariant: false
      default: true
      }
    }

    func told(isRepeated: Bool, now: UnixTime) -> ImageError {
      var seconds = until.seconds - now.seconds
      if mayHeal, originFreshness?.isStated != true { seconds = min(seconds, Self.healingTime) }
      let forClients = originFreshness?.bounding(clientFailure: seconds, at: now) ?? seconds
      return .remembered(
        error, seconds: seconds, clientSeconds: forClients == seconds ? nil : forClients,
        isRepeated: isRepeated)
    }
  }

  private var settings: FailureSettings
  private var entries: BoundedTable<CacheKey, Entry>

  init(settings: FailureSettings = FailureSettings()) {
    self.settings = settings
    entries = BoundedTable(limit: settings.limit)
  }

  /// Changes how long failures are remembered from now on, but not how many, and forgets those that
  /// limits decided: the limits may have changed as well.
  mutating func apply(_ settings: FailureSettings) {
    self.settings = settings
    _ = entries.removeAll { _, entry in
      switch entry.error.cause {
      case .sourceTooLarge, .tooManyPixels, .tooManyFrames, .tooCostly, .unsupportedFormat,
        .undecodable:
        true
      default: false
      }
    }
  }

  /// The number of entries, including expired ones that are not removed yet.
  var count: Int { entries.count }

  /// Returns the cached failure of a source or a variant.
  mutating func failure(of key: CacheKey, now: UnixTime) -> ImageError? {
    guard let entry = entries[key] else { return nil }
    guard now < entry.until else {
      entries[key] = nil
      return nil
    }
    return entry.told(isRepeated: true, now: now)
  }

  /// Adds a failure of a source or a variant if the policy caches it. An unexpired entry keeps its
  /// first failure.
  ///
  /// - Parameter originFreshness: the freshness of the origin's error response, which limits the
  ///   lifetime (RFC 9111); `nil` if there was none.
  /// - Returns: the error for the client.
  mutating func add(
    _ key: CacheKey, after error: ImageError, originFreshness: Freshness? = nil, now: UnixTime
  ) -> ImageError {
    let configured = settings.lifetime(of: error)
    let lifetime = originFreshness?.bounding(failure: configured, at: now) ?? configured
    guard lifetime > 0, settings.limit > 0 else { return error }
    if let entry = entries[key], now < entry.until { return error }
    let until = UnixTime(seconds: now.seconds + lifetime)
    let entry = Entry(error: error, until: until, originFreshness: originFreshness)
    entries.setNewest(entry, for: key)
    return entry.told(isRepeated: false, now: now)
  }

  /// Removes an entry and returns whether it existed.
  mutating func remove(_ key: CacheKey) -> Bool { entries.removeValue(forKey: key) != nil }

  /// Removes matching entries and returns their number.
  mutating func removeAll(where isMatch: (CacheKey) -> Bool) -> Int {
    entries.removeAll { key, _ in isMatch(key) }
  }

  /// Removes all entries and returns their number.
  mutating func removeAll() -> Int {
    defer { entries.removeAll() }
    return entries.count
  }

  /// Returns the unexpired entries, oldest first.
  func all(now: UnixTime) -> [FailedURL] {
    entries.compactMap { key, entry in
      guard now < entry.until else { return nil }
      return FailedURL(
        url: SecretMask.withoutUsers(key.url),
        transform: key.isSource ? nil : String(key.text.dropFirst(key.source.text.count + 1)),
        code: entry.error.code, status: entry.error.status,
        seconds: entry.until.seconds - now.seconds)
    }
  }
}
