// HitRatios: traces replayed against the memory tier and against other orders of eviction.

import Caching
import Core

/// One trace with one size of cache; ratios are hits ÷ requests.
struct HitRatio: Encodable {
  let trace: String
  /// The cache, as a share of the objects that are asked for again, or of their bytes.
  let share: Double
  let tier: Double
  let lru: Double
  let sieve: Double
  let s3fifo: Double
  /// `nil` where nobody can tell: for objects of several sizes the best is not computed by any fast algorithm.
  let optimum: Double?
}

enum HitRatios {
  static func measure(requests: Int, objects: Int) -> [HitRatio] {
    Trace.all(requests: requests, objects: objects).flatMap { trace in
      let variants = Variants(trace)
      return [0.001, 0.01, 0.1].map { share in
        let capacity = Int(Double(variants.costs[..<trace.objects].reduce(0, +)) * share)
        return HitRatio(
          trace: trace.name, share: share,
          tier: ratio(of: trace, variants.tier(capacity)),
          lru: ratio(of: trace, LRU(capacity: capacity, costs: variants.costs)),
          sieve: ratio(of: trace, Sieve(capacity: capacity, costs: variants.costs)),
          s3fifo: ratio(of: trace, S3FIFO(capacity: capacity, costs: variants.costs)),
          optimum: trace.sizes.isEmpty
            ? Optimum.ratio(of: trace.requests, capacity: capacity) : nil)
      }
    }
  }

  private static func ratio(of trace: Trace, _ policy: some Policy) -> Double {
    var policy = policy
    var hits = 0
    for object in trace.requests where policy.ask(for: object) { hits += 1 }
    return Double(hits) / Double(trace.requests.count)
  }

  private static func ratio(of trace: Trace, _ cache: TierUnderTest) -> Double {
    var hits = 0
    for object in trace.requests where cache.ask(for: object) { hits += 1 }
    return Double(hits) / Double(trace.requests.count)
  }
}

/// The objects of a trace as the memory tier knows them.
private struct Variants {
  private let keys: [CacheKey]
  private let bytes: [UInt8]
  private let trace: Trace
  /// What each of them costs: 1 where objects are counted, else what the tier counts for it.
  let costs: [Int]

  init(_ trace: Trace) {
    self.trace = trace
    let count = max(trace.objects, (trace.requests.max() ?? 0) + 1)
    let keys = (0..<count).map { CacheKey(text: "https://origin.example/\($0)/image.jpg w=300") }
    self.keys = keys
    bytes = [UInt8](repeating: 0, count: trace.sizes.max() ?? 0)
    guard !trace.sizes.isEmpty else {
      costs = [Int](repeating: 1, count: count)
      return
    }
    // The tier says itself what it counts beside the body and the key.
    let probe = MemoryTier()
    probe.store(
      Self.variant(keys[0], ImageBytes(copying: UnsafeRawBufferPointer(start: nil, count: 0))))
    let besides = probe.figures.bytes.whole - keys[0].text.utf8.count
    costs = zip(keys, trace.sizes).map { $0.text.utf8.count + $1 + besides }
  }

  func tier(_ capacity: Int) -> TierUnderTest {
    var configuration = MemoryTierConfiguration()
    configuration.limit = trace.sizes.isEmpty ? .max : capacity
    configuration.countLimit = trace.sizes.isEmpty ? capacity : nil
    return TierUnderTest(tier: MemoryTier(configuration), variants: self)
  }

  func key(of object: Int) -> CacheKey { keys[object] }

  func variant(of object: Int) -> Variant {
    let size = trace.sizes.isEmpty ? 0 : trace.sizes[object]
    return Self.variant(
      keys[object],
      bytes.withUnsafeBytes { ImageBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<size])) })
  }

  private static func variant(_ key: CacheKey, _ body: ImageBytes) -> Variant {
    let info = VariantInfo(
      .image(RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: EntityTag("\"e\""),
      freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: 60))
    return Variant(key: key, info: info, body: .memory(body))
  }
}

/// The server's own memory tier, asked as the server asks it.
private struct TierUnderTest {
  let tier: MemoryTier
  let variants: Variants

  func ask(for object: Int) -> Bool {
    let now = UnixTime(seconds: 0)
    if tier.variant(for: variants.key(of: object), freshAt: now) != nil { return true }
    tier.store(variants.variant(of: object))
    return false
  }
}
