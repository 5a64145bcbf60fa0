// SmallerFallbackStep: replaces an AVIF by its cached fallback if the AVIF is not smaller.

import Model

/// Replaces a rendered AVIF by the variant in the fallback format, if a tier has that and it is not
/// larger.
struct SmallerFallbackStep: MissStep {
  private let policy: AVIFPolicy
  private let cache: VariantCache
  private let files: FileReader

  init(policy: AVIFPolicy, cache: VariantCache, files: FileReader) {
    self.policy = policy
    self.cache = cache
    self.files = files
  }

  let name = "smaller-fallback"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome { .next("") }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard case .rendered(let image) = miss.made?.making, !image.report.isDamaged,
      let source = miss.loaded?.source,
      let fallback = policy.replaceableFallback(for: miss.request),
      let found = await cache.variant(for: fallback.key), found.isRendered(from: source),
      found.info.watermarkVersion == miss.watermark?.version ?? 0,
      found.body.count <= image.body.count,
      let variant = await files.copy(
        of: found, as: miss.request.key,
        freshness: source.freshness.combined(with: miss.watermark))
    else { return .next }
    miss.made = NewVariant(variant: variant, making: .substituted)
    return .next
  }
}
