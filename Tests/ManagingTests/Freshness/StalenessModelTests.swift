// StalenessModelTests: tests staleness with random steps against a naive model.

import Core
import TestSupport
import Testing

@testable import Managing

/// The outcome of a request with regard to freshness.
private enum Outcome: Equatable {
  /// A fresh cached image with these bytes.
  case fresh(bytes: Int)
  /// A stale cached image.
  case stale(bytes: Int, CacheStatus.StaleReason, ttl: Int)
  /// An image after a request to the origin.
  case asked(bytes: Int, status: Int?)
  /// A stale cached image, because the origin failed.
  case stoodIn(bytes: Int)
  /// No image, with the status of the response.
  case failed(Int)
}

/// The behaviour of the origin.
private enum OriginState: CaseIterable {
  case well, failing, gone
}

/// A naive model of the manager, without flights and tiers. Background work happens immediately
/// after the response.
private struct Model {
  struct Kept {
    var bytes: Int
    var received: Int
  }

  static let lifetime = 3_600
  static let whileRevalidate = 100
  static let ifError = 2_000

  var now = 1_000
  var origin = OriginState.well
  var bytes = 1
  var loads = 0
  private var source: Kept?
  private var variants: [Int: Kept] = [:]
  private var failingUntil: Int?
  private var listedUntil: Int?

  mutating func dropAll() {
    source = nil
    variants = [:]
  }
  mutating func dropVariant(_ size: Int) { variants[size] = nil }

  mutating func ask(_ size: Int, use: CacheUse) -> Outcome {
    let (outcome, isRenewed) = answer(size, use: use, takesStale: true)
    let mayAsk = now >= failingUntil ?? 0 && now >= listedUntil ?? 0
    if isRenewed, use == .normal, mayAsk { _ = answer(size, use: .normal, takesStale: false) }
    return outcome
  }

  /// Returns how a cached entry may satisfy a request, or `nil` if it may not. Ignore the reason if
  /// the entry is fresh.
  private func use(
    _ kept: Kept, for use: CacheUse, takesStale: Bool
  ) -> (isFresh: Bool, reason: CacheStatus.StaleReason, ttl: Int)? {
    let ttl = kept.received + Self.lifetime - now
    guard use != .refresh else { return nil }
    if ttl > 0 { return (true, .accepted, ttl) }
    guard takesStale else { return nil }
    if -ttl < Self.whileRevalidate { return (false, .whileRevalidating, ttl) }
    guard -ttl < Self.ifError, let failingUntil, now < failingUntil + 60 else { return nil }
    return (false, .ifError, ttl)
  }

  private mutating func answer(
    _ size: Int, use wish: CacheUse, takesStale: Bool
  ) -> (Outcome, isRenewed: Bool) {
    if let variant = variants[size], let use = use(variant, for: wish, takesStale: takesStale) {
      return use.isFresh
        ? (.fresh(bytes: variant.bytes), false)
        : (.stale(bytes: variant.bytes, use.reason, ttl: use.ttl), true)
    }
    if let source, let use = use(source, for: wish, takesStale: takesStale) {
      variants[size] = source
      return use.isFresh
        ? (.fresh(bytes: source.bytes), false)
        : (.stale(bytes: source.bytes, use.reason, ttl: use.ttl), true)
    }
    if wish == .only { return (.failed(504), false) }
    if now < listedUntil ?? 0 { return (.failed(404), false) }
    return (load(size, mayStandIn: wish == .normal && takesStale), false)
  }

  private mutating func load(_ size: Int, mayStandIn: Bool) -> Outcome {
    loads += 1
    switch origin {
    case .well:
      let status = source?.bytes == bytes ? 304 : 200
      if status == 200, source != nil { variants = [:] }
      source = Kept(bytes: bytes, received: now)
      variants[size] = source
      failingUntil = nil
      return .asked(bytes: bytes, status: status)
    case .gone:
      listedUntil = now + 600
      if source != nil || variants[size] != nil {
        source = nil
        variants = [:]
        failingUntil = nil
      }
      return .failed(404)
    case .failing:
      if source != nil || variants[size] != nil { failingUntil = now + 10 }
      for (kept, isSource) in [(source, true), (variants[size], false)] {
        guard mayStandIn, let kept, now - kept.received - Self.lifetime < Self.ifError else {
          continue
        }
        if isSource { variants[size] = kept }
        return .stoodIn(bytes: kept.bytes)
      }
      return .failed(502)
    }
  }
}

@Suite(.onOwnThreads) final class StalenessModelTests: ManagedTests {
  private static let sizes: [Double?] = [nil, 0.5]

  /// Returns the number of the bytes of a variant, which the origin encodes in their date.
  private func bytes(of variant: Variant) -> Int {
    variant.info.lastModified?.seconds ?? -1
  }

  private func outcome(of request: ImageRequest) async -> Outcome {
    var delivery = manager.cachedVariant(for: request.key).flatMap { variant in
      request.options.cache.readsCache
        ? ImageDelivery(variant: variant, cacheStatus: .hit(.memory), timings: Timings()) : nil
    }
    delivery = delivery ?? manager.deliveryAtOnce(for: request)
    do throws(ImageError) {
      let delivery = if let delivery { delivery } else { try await manager.variant(for: request) }
      let bytes = bytes(of: delivery.variant)
      return switch delivery.cacheStatus {
      case .hit: .fresh(bytes: bytes)
      case .staleHit(_, let reason, let ttl): .stale(bytes: bytes, reason, ttl: ttl)
      case .miss(_, _, _, let status): .asked(bytes: bytes, status: status)
      case .staleIfError: .stoodIn(bytes: bytes)
      }
    } catch {
      return .failed(error.status)
    }
  }

  private func set(_ origin: OriginState, bytes: Int) {
    loader.failure.withLock {
      $0 =
        switch origin {
        case .well: nil
        case .failing: .sourceError(status: 503)
        case .gone: .sourceNotFound(status: 404)
        }
    }
    loader.etag.withLock { $0 = "\"\(bytes)\"" }
    loader.lastModified.withLock { $0 = HTTPDate.text(of: UnixTime(seconds: bytes)) }
  }

  @Test func `random steps return the model's responses and ask the origin as often`()
    async throws
  {
    freshness.staleWhileRevalidate.withLock { $0 = Model.whileRevalidate }
    freshness.staleIfError.withLock { $0 = Model.ifError }
    openAll()
    var model = Model()
    var random = SeededGenerator(seed: 5861)
    var seen: [String: Int] = [:]
    for step in 0..<20_000 {
      let size = Int.random(in: 0...1, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        model.origin = OriginState.allCases.randomElement(using: &random) ?? .well
      case 1: model.origin = .well
      case 2: model.bytes += 1
      case 3:
        model.dropAll()
        let source = try request().key.source
        await disk.remove(source)
        await disk.removeVariants(of: source)
        memory.removeVariants(of: source)
      case 4:
        model.dropVariant(size)
        let key = try request(scale: Self.sizes[size]).key
        memory.remove(key)
        await disk.remove(key)
      case 5: memory.remove(try request(scale: Self.sizes[size]).key)
      case 6...10:
        let seconds = [1, 9, 50, 600, 1_000, 3_595].randomElement(using: &random) ?? 1
        model.now += seconds
        pass(seconds: seconds)
      default:
        set(model.origin, bytes: model.bytes)
        let use =
          [CacheUse.normal, .normal, .normal, .normal, .only, .refresh]
          .randomElement(using: &random) ?? .normal
        let expected = model.ask(size, use: use)
        let found = await outcome(of: try request(scale: Self.sizes[size]) { $0.cache = use })
        try await eventually { [manager] in manager.freshnessFigures.revalidating == 0 }
        try #require(found == expected, "step \(step): \(use), \(model)")
        try #require(loader.started.value == model.loads, "step \(step): \(use), \(model)")
        seen["\(found)".prefix { $0 != "(" } + "\(use)", default: 0] += 1
      }
    }
    // Every outcome occurred, so the random walk covered the model.
    for kind in ["fresh", "stale", "asked", "stoodIn", "failed"] {
      #expect(seen["\(kind)normal", default: 0] > 20, "\(seen)")
    }
  }
}
