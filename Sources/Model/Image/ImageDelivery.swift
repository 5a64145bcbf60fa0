// Delivery: a variant on its way to one client, and how it came to be there.

/// How a request was answered, in the words of RFC 9211.
public enum CacheStatus: Hashable, Sendable {
  /// Where a hit was found.
  public enum Tier: String, Sendable {
    /// The memory tier.
    case memory
    /// The variant, on disk.
    case disk
    /// The source, on disk; the variant was made from it.
    case source
    /// A larger variant, in either tier; the variant was made from it.
    case variant
  }

  /// Why the origin was asked (RFC 9211, section 2.2).
  public enum Forward: String, Sendable {
    /// Nothing was kept.
    case uriMiss = "uri-miss"
    /// What was kept was too old.
    case stale
    /// The request wanted it so.
    case request
  }

  /// Why something stale was the answer.
  public enum StaleReason: Hashable, Sendable {
    /// The origin is asked meanwhile (RFC 5861, section 3).
    case whileRevalidating
    /// The origin failed lately, and is left alone or asked behind the answer's back (RFC 5861, section 4).
    case ifError
    /// The request takes it so: `max-stale`.
    case accepted
  }

  /// Answered from what was kept.
  case hit(Tier)
  /// Answered from what was kept though it is stale; `ttl`: for how many seconds it is fresh, which is none, so it is 0 or
  /// negative (RFC 9211, section 2.4).
  case staleHit(Tier, StaleReason, ttl: Int)
  /// The origin was asked; `collapsed`: by another request that this one joined.
  case miss(Forward, stored: Bool, collapsed: Bool, originStatus: Int?)
  /// The origin was asked and failed, so what was kept was the answer though it is stale (RFC 5861, section 4).
  case staleIfError(collapsed: Bool, originStatus: Int?)

  /// The value of the `Cache-Status` header.
  public var headerValue: String {
    switch self {
    case .hit(let tier):
      return "pictor; hit; detail=\(tier.rawValue)"
    case .staleHit(let tier, _, let ttl):
      return "pictor; hit; ttl=\(ttl); detail=\(tier.rawValue)"
    case .miss(let forward, let stored, let collapsed, let originStatus):
      return Self.forwarded(forward, originStatus, stored: stored, collapsed: collapsed)
    case .staleIfError(let collapsed, let originStatus):
      return Self.forwarded(.stale, originStatus, stored: false, collapsed: collapsed)
        + "; detail=stale-if-error"
    }
  }

  private static func forwarded(
    _ forward: Forward, _ originStatus: Int?, stored: Bool, collapsed: Bool
  ) -> String {
    var value = "pictor; fwd=\(forward.rawValue)"
    if let originStatus { value += "; fwd-status=\(originStatus)" }
    if stored { value += "; stored" }
    if collapsed { value += "; collapsed" }
    return value
  }
}

/// Where the time of a request went; `nil` for what did not happen.
public struct Timings: Hashable, Sendable {
  /// Waiting for a place in the download and work queues.
  public var queue: Duration?
  /// Reading from the disk tier.
  public var disk: Duration?
  /// Resolving the origin's name.
  public var dns: Duration?
  /// Connecting to the origin.
  public var connect: Duration?
  /// The TLS handshake.
  public var tls: Duration?
  /// From sending the request to the first byte of the answer.
  public var ttfb: Duration?
  /// From the first byte to the last.
  public var download: Duration?
  /// Reading the header and decoding; libvips decodes while it transforms, so this is the opening alone.
  public var decode: Duration?
  /// Turning and resizing, and the decoding that happens on the way.
  public var transform: Duration?
  /// Encoding.
  public var encode: Duration?
  /// The whole request.
  public var total: Duration?

  /// Nothing measured yet.
  public init() {}

  /// Takes over what `other` measured; a time both have is added up.
  public mutating func add(_ other: Timings) {
    // By name and not over a table of key paths: this is done several times a miss.
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
    add(other.total, to: &total)
  }

  /// The measured times in the order of the contract's `Server-Timing`.
  public var entries: [(name: String, duration: Duration)] {
    let all = [
      ("queue", queue), ("disk", disk), ("dns", dns), ("connect", connect), ("tls", tls),
      ("ttfb", ttfb), ("download", download), ("decode", decode), ("transform", transform),
      ("encode", encode), ("total", total),
    ]
    return all.compactMap { name, duration in duration.map { (name, $0) } }
  }
}

/// A variant for one request.
public struct ImageDelivery: Sendable {
  /// The image.
  public let variant: Variant
  /// How it came to be there.
  public let cacheStatus: CacheStatus
  /// Where the time went.
  public let timings: Timings

  /// A variant for one request.
  public init(variant: Variant, cacheStatus: CacheStatus, timings: Timings) {
    (self.variant, self.cacheStatus, self.timings) = (variant, cacheStatus, timings)
  }
}
