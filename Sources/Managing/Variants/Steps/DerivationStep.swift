// DerivationStep: renders a small variant from a larger cached variant.

import Model
import Platform

/// Answers a miss with a variant derived from a larger one, if the source is not cached.
///
/// A derived variant looks the same as one from the source but has other bytes. So this step only
/// replaces a download.
struct DerivationStep: MissStep {
  private let isEnabled: Lock<Bool>
  private let candidates: Lock<DerivationCandidates>
  private let cache: VariantCache
  private let sources: SourceStore
  private let staleness: Staleness
  private let processor: any ImageProcessor
  private let storage: VariantStorage
  private let counters: SubstitutionCounters

  /// - Parameter isEnabled: whether small variants may be derived from larger ones.
  init(
    isEnabled: Lock<Bool>, candidates: Lock<DerivationCandidates>, cache: VariantCache,
    sources: SourceStore,
    staleness: Staleness, processor: any ImageProcessor, storage: VariantStorage,
    counters: SubstitutionCounters
  ) {
    self.storage = storage
    self.isEnabled = isEnabled
    self.candidates = candidates
    self.cache = cache
    self.sources = sources
    self.staleness = staleness
    self.processor = processor
    self.counters = counters
  }

  let name = "derivation"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    let request = plan.request
    guard applies(to: request), !plan.hasEntry else { return .next("") }
    let candidates = self.candidates.withLock { $0.candidates(for: request) }
    guard !candidates.isEmpty, await sources.entry(of: request.key.source) == nil else {
      return .next("")
    }
    for (candidate, _) in candidates {
      let entries = await cache.lookUp(candidate.key)
      guard let larger = entries.memory ?? entries.disk, !larger.isDamaged,
        staleness.use(of: larger.freshness, by: request) == .fresh
      else { continue }
      let status = CacheStatus.hit(.variant).headerValue
      return .response(status, "derives it from the variant \(candidate.transform.canonicalText)")
    }
    return .next("no larger variant to derive from")
  }

  /// Whether a request may be answered from a larger variant.
  private func applies(to request: ImageRequest) -> Bool {
    isEnabled.withLock { $0 } && request.options.cache.readsCache && !request.options.isRevalidation
      && request.source.scheme != .local
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let request = miss.request
    guard applies(to: request), !miss.hasEntry, miss.heldSource == nil else { return .next }
    let candidates = self.candidates.withLock { $0.candidates(for: request) }
    guard !candidates.isEmpty, await sources.entry(of: request.key.source) == nil else {
      return .next
    }
    for (candidate, rest) in candidates {
      guard let larger = await cache.variant(for: candidate.key) else {
        self.candidates.withLock { $0.remove(candidate.key) }
        continue
      }
      guard !larger.info.isDamaged,
        staleness.use(of: larger.info.freshness, by: request) == .fresh,
        let file = larger.file(storage)
      else { continue }
      let image: ProcessedImage
      do throws(ImageError) {
        image = try await processor.process(
          ImageJob(
            file: file, transform: rest, density: request.source.density,
            priority: miss.participant, client: request.key.variation))
      } catch .cancelled {
        throw .cancelled
      } catch {
        // Falls back to the source.
        return .next
      }
      miss.timings.add(image.report.timings)
      counters.derived.add()
      let variant = Variant(
        key: request.key, info: VariantInfo(image, derivedFrom: larger.info),
        body: image.body)
      cache.store(variant, in: request.options.store, for: request.options.demand())
      return .response(
        VariantResult(variant: variant, status: .hit(.variant), timings: miss.timings))
    }
    return .next
  }
}

extension CacheEntryInfo {
  /// Whether a variant was rendered from a damaged source.
  fileprivate var isDamaged: Bool {
    if case .variant(let info) = stored { info.isDamaged } else { false }
  }
}
