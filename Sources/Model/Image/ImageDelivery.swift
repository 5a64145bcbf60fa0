// ImageDelivery: a variant for one client, or for all that joined a flight, with its cache status
// and timings.

import Synchronization

/// How a request was answered, in the terms of RFC 9211.
public enum CacheStatus: Hashable, Sendable {
  /// The tier of a hit.
  public enum Tier: String, Sendable {
    /// The memory tier.
    case memory
    /// The variant on disk.
    case disk
    /// The source on disk; the variant was rendered from it.
    case source
    /// A larger variant in either tier; the variant was derived from it.
    case variant
    /// The shared tier: another machine rendered the variant.
    case shared
  }

  /// Why the request was forwarded to the origin (RFC 9211, section 2.2).
  public enum Forward: String, Sendable {
    /// Nothing was cached.
    case uriMiss = "uri-miss"
    /// The cached entry was stale.
    case stale
    /// The request demanded it.
    case request
  }

  /// Why a stale response was served.
  public enum StaleReason: Hashable, Sendable {
    /// A revalidation is running (RFC 5861, section 3).
    case whileRevalidating
    /// The origin failed recently, and the back-off applies or a background request runs (RFC 5861,
    /// section 4).
    case ifError
    /// The request accepts it with `max-stale`.
    case accepted
  }

  /// A fresh cached response.
  case hit(Tier)
  /// A stale cached response. `ttl` is the remaining lifetime in seconds, 0 or negative (RFC 9211,
  /// section 2.4).
  case staleHit(Tier, StaleReason, ttl: Int)
  /// A forwarded request. `collapsed`: the request joined a flight that another one had started.
  case miss(Forward, stored: Bool, collapsed: Bool, originStatus: Int?)
  /// A forwarded request that failed and was answered with a stale response (RFC 5861, section 4).
  case staleIfError(collapsed: Bool, originStatus: Int?)

  /// The value of the `Cache-Status` header field.
  public var headerValue: String {
    switch self {
    case .hit(let tier):
      return "pictor; hit; detail=\(tier.rawValue)"
    case .staleHit(let tier, _, let ttl):
      return "pictor; hit; ttl=\(ttl); detail=\(tier.rawValue)"
    case .miss(let forward, let stored, let collapsed, let originStatus):
      return Self.forwarded(
        forward, originStatus: originStatus, stored: stored, collapsed: collapsed)
    case .staleIfError(let collapsed, let originStatus):
      return Self.forwarded(.stale, originStatus: originStatus, stored: false, collapsed: collapsed)
        + "; detail=stale-if-error"
    }
  }

  private static func forwarded(
    _ forward: Forward, originStatus: Int?, stored: Bool, collapsed: Bool
  ) -> String {
    var value = "pictor; fwd=\(forward.rawValue)"
    if let originStatus { value += "; fwd-status=\(originStatus)" }
    if stored { value += "; stored" }
    if collapsed { value += "; collapsed" }
    return value
  }
}

/// The durations of a request's phases; `nil` for phases that did not happen.
public struct Timings: Hashable, Sendable {
  /// Waiting in the download and imaging queues.
  public var queue: Duration?
  /// Reading from the disk tier.
  public var disk: Duration?
  /// Resolving the origin's name.
  public var dns: Duration?
  /// Connecting to the origin.
  public var connect: Duration?
  /// The TLS handshake.
  public var tls: Duration?
  /// From sending the request to the first byte of the response.
  public var ttfb: Duration?
  /// From the first byte of the body to the last.
  public var download: Duration?
  /// Opening the image. libvips decodes pixels during the transform.
  public var decode: Duration?
  /// Transforming, including most of the decoding.
  public var transform: Duration?
  /// Encoding.
  public var encode: Duration?

  /// Creates empty timings.
  public init() {}

  /// Adds the durations of `other`.
  public mutating func add(_ other: Timings) {
    // Spelled out instead of looping over key paths, because every miss calls this several times.
    func add(_ more: Duration?, to sum: inout Duration?) {
      if let more { sum = (sum ?? .zero) + more }
    }
    add(other.queue, to: &queue)
    add(other.disk, to: &disk)
    add(other.dns, to: &dns)
    add(other.connect, to: &connect)
    add(other.tls, to: &tls)
    add(other.ttfb, to: &ttfb)
    add(other.download, to: &download)
    add(other.decode, to: &decode)
    add(other.transform, to: &transform)
    add(other.encode, to: &encode)
  }

  /// A phase of a request.
  public enum Stage: String, CaseIterable, Sendable {
    case queue, disk, dns, connect, tls, ttfb, download, decode, transform, encode
  }

  /// Calls `body` for each measured phase, in the order of `Server-Timing`.
  public func forEachStage(_ body: (Stage, Duration) -> Void) {
    for stage in Stage.allCases {
      if let duration = self[stage] { body(stage, duration) }
    }
  }

  /// The duration of a phase.
  public subscript(stage: Stage) -> Duration? {
    switch stage {
    case .queue: queue
    case .disk: disk
    case .dns: dns
    case .connect: connect
    case .tls: tls
    case .ttfb: ttfb
    case .download: download
    case .decode: decode
    case .transform: transform
    case .encode: encode
    }
  }
}

/// The response to one request.
public final class ImageDelivery: Sendable {
  /// The variant.
  public let variant: Variant
  /// How the request was answered.
  public let cacheStatus: CacheStatus
  /// The durations of the phases.
  public let timings: Timings
  /// Whether more than one request may get this object.
  public let isShared: Bool
  /// The work that the timings are of; `nil` if no other delivery has them.
  public let work: SharedWork?
  /// What the responses of a shared delivery have in common, set by `Serving` and never replaced.
  public let prepared = PreparedPlace()

  /// Creates a response.
  public init(
    variant: Variant, cacheStatus: CacheStatus, timings: Timings, of work: SharedWork? = nil,
    isShared: Bool = false
  ) {
    self.variant = variant
    self.cacheStatus = cacheStatus
    self.timings = timings
    self.work = work
    self.isShared = isShared
  }

  /// Returns whether the timings are to be counted now: `true` for one response of shared work.
  public func takeTimings() -> Bool { work?.takeTimings() ?? true }
}

/// Work whose timings several deliveries have, and one of them counts.
public final class SharedWork: Sendable {
  private let isCounted = Atomic<Bool>(false)

  /// Creates work that is not counted yet.
  public init() {}

  fileprivate func takeTimings() -> Bool {
    !isCounted.exchange(true, ordering: .relaxed)
  }
}
