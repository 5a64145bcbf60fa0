// ImageManager: decides where a picture comes from. It reads as a table of contents; flights live beside it.

import Model
import Telemetry

/// The one manager between everyone who wants a picture and everyone who has one (SDWebImageManager).
///
/// Memory tier → disk tier → source on disk → origin. Two levels of flights: however many ask, one variant is made
/// once and one source is loaded once.
public final class ImageManager: ImageProvider {
  private let memory: any MemoryCache
  private let disk: any DiskCache
  private let loader: any ImageLoader
  private let processor: any ImageProcessor
  private let freshnessPolicy: any FreshnessPolicy
  private let now: @Sendable () -> UnixTime

  private let variantFlights = Flights<MadeVariant>()
  private let sourceFlights = Flights<LoadedSource>()

  /// A manager over its tiers, its loader and its workers. `now` is the wall clock.
  public init(
    memory: any MemoryCache, disk: any DiskCache, loader: any ImageLoader,
    processor: any ImageProcessor, freshnessPolicy: any FreshnessPolicy,
    now: @escaping @Sendable () -> UnixTime = { .now }
  ) {
    self.memory = memory
    self.disk = disk
    self.loader = loader
    self.processor = processor
    self.freshnessPolicy = freshnessPolicy
    self.now = now
  }

  /// What memory holds and is fresh.
  public func cachedVariant(for key: CacheKey) -> Variant? {
    guard let variant = memory.variant(for: key), isFresh(variant) else { return nil }
    return variant
  }

  /// What the disk tier can give without waiting, if it is fresh; it is in memory from then on.
  public func deliveryAtOnce(for request: ImageRequest) -> Delivery? {
    let start = ContinuousClock.now
    let now = now()
    guard
      let variant = disk.variantAtOnce(
        for: request.key, where: { $0.freshness.isFresh(at: now) })
    else { return nil }
    _ = memory.store(variant)
    var timings = Timings()
    timings.disk = .now - start
    return Delivery(variant: variant, cacheStatus: .hit(.disk), timings: timings)
  }

  /// The answer to a request that neither of these had: from the first place that has it, else made, once
  /// for all who ask meanwhile.
  public func variant(for request: ImageRequest) async throws(ImageError) -> Delivery {
    let (made, joined) = try await variantFlights.value(for: request.key) {
      () async throws(ImageError) in try await self.findOrMake(request)
    }
    return Delivery(
      variant: made.variant, cacheStatus: joined ? made.status.collapsed : made.status,
      timings: made.timings)
  }

  /// Flights as they are now, and counts since the start.
  public var figures: FlightFigures {
    var figures = FlightFigures()
    variantFlights.add(to: &figures, running: \.variants)
    sourceFlights.add(to: &figures, running: \.sources)
    return figures
  }
}

// MARK: - One variant flight

extension ImageManager {
  /// What a variant flight ends with.
  private struct MadeVariant: Sendable {
    let variant: Variant
    let status: CacheStatus
    let timings: Timings
  }

  private func findOrMake(_ request: ImageRequest) async throws(ImageError) -> MadeVariant {
    // Another flight may have ended between this request's look into memory and its own flight.
    if let variant = memory.peek(request.key), isFresh(variant) {
      return MadeVariant(variant: variant, status: .hit(.memory), timings: Timings())
    }
    var timings = Timings()
    let kept = await measured(&timings.disk) { await disk.variant(for: request.key) }
    if let kept, isFresh(kept) {
      if case .memory = kept.body { _ = memory.store(kept) }
      return MadeVariant(variant: kept, status: .hit(.disk), timings: timings)
    }

    let (loaded, joined) = try await sourceFlights.value(for: request.key.source) {
      () async throws(ImageError) in try await self.findOrLoad(request.source)
    }
    timings.add(loaded.timings)
    let image = try await processor.process(
      ImageJob(
        file: loaded.source.file, transform: request.transform, density: request.source.density))
    timings.add(image.timings)

    let variant = Variant(
      key: request.key, info: VariantInfo(image, of: loaded.source), body: .memory(image.bytes))
    let isStored = variant.info.freshness.isStorable && store(variant)
    let status =
      loaded.isFromDisk
      ? CacheStatus.hit(.source)
      : .miss(
        stale: kept != nil || loaded.wasStale, stored: isStored, collapsed: joined,
        originStatus: loaded.originStatus)
    return MadeVariant(variant: variant, status: status, timings: timings)
  }
}

// MARK: - One source flight

extension ImageManager {
  /// What a source flight ends with.
  private struct LoadedSource: Sendable {
    let source: Source
    /// Whether nobody had to be asked for it.
    let isFromDisk: Bool
    /// Whether something too old was there.
    let wasStale: Bool
    /// The origin's status; `nil` where there is no origin.
    let originStatus: Int?
    let timings: Timings
  }

  private func findOrLoad(_ url: SourceURL) async throws(ImageError) -> LoadedSource {
    let key = CacheKey(source: url)
    var timings = Timings()
    // A local file is read from where it is; a copy in the disk tier would only age.
    let isKept = url.scheme != .local
    let kept = isKept ? await measured(&timings.disk) { await disk.source(for: key) } : nil
    if let kept, kept.freshness.isFresh(at: now()) {
      return LoadedSource(
        source: kept, isFromDisk: true, wasStale: false, originStatus: nil, timings: timings)
    }

    let download = try await loader.load(url)
    timings.add(download.timings)
    let source = Source(
      key: key, file: download.file, origin: download.origin,
      freshness: freshnessPolicy.freshness(of: download.origin, receivedAt: now()))
    if isKept && source.freshness.isStorable { _ = disk.store(source) }
    return LoadedSource(
      source: source, isFromDisk: false, wasStale: kept != nil,
      originStatus: isKept ? download.origin.status : nil, timings: timings)
  }
}

// MARK: - Small things

extension ImageManager {
  /// In both tiers; tells whether either keeps it.
  private func store(_ variant: Variant) -> Bool {
    let isInMemory = memory.store(variant)
    return disk.store(variant) || isInMemory
  }

  private func isFresh(_ variant: Variant) -> Bool { variant.info.freshness.isFresh(at: now()) }

  private func measured<Value>(
    _ duration: inout Duration?, _ work: () async -> Value
  ) async -> Value {
    let start = ContinuousClock.now
    let value = await work()
    duration = (duration ?? .zero) + (.now - start)
    return value
  }
}

extension CacheStatus {
  /// The same, for a request that joined a flight: only a forwarded request can be collapsed (RFC 9211, section 2.6).
  fileprivate var collapsed: CacheStatus {
    guard case .miss(let stale, let stored, _, let originStatus) = self else { return self }
    return .miss(stale: stale, stored: stored, collapsed: true, originStatus: originStatus)
  }
}

extension VariantInfo {
  /// What a worker made, with what its source passes on: validator and freshness.
  fileprivate init(_ image: ProcessedImage, of source: Source) {
    self.init(
      format: image.format, size: image.size, frames: image.frames, density: image.density,
      scaledDownFrom: image.scaledDownFrom, etag: "\"\(image.digest)\"",
      lastModified: source.origin.lastModified.flatMap { HTTPDate.parse($0) }.map(HTTPDate.text),
      freshness: source.freshness)
  }
}
