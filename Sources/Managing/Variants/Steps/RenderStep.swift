// RenderStep: renders the variant in an imaging worker.

import Model

/// Renders the variant, and remembers a failure to render it.
struct RenderStep: MissStep {
  private let processor: any ImageProcessor
  private let sources: SourceStore
  private let failures: NegativeCache
  private let freshness: FreshnessEvaluator

  init(
    processor: any ImageProcessor, sources: SourceStore, failures: NegativeCache,
    freshness: FreshnessEvaluator
  ) {
    self.processor = processor
    self.sources = sources
    self.failures = failures
    self.freshness = freshness
  }

  let name = "render"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    .next(plan.renewable == nil ? "a worker renders the variant" : "")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard miss.made == nil, let source = miss.loaded?.source else { return .next }
    let request = miss.request
    let image: ProcessedImage
    do throws(ImageError) {
      image = try await processor.process(
        ImageJob(
          file: source.file, transform: request.transform, density: request.source.density,
          overlay: overlay(of: miss), priority: miss.participant,
          source: SourceIdentity(key: source.key, version: source.version),
          client: request.key.variation))
    } catch {
      throw await failure(error, of: miss, source: source)
    }
    miss.timings.add(image.report.timings)
    var info = VariantInfo(image, of: source, watermark: miss.watermark)
    if image.report.isDamaged {
      // Forces a new download, because the origin may soon have an intact image.
      await sources.remove(source)
      info.isDamaged = true
      info.freshness = freshness.limited(info.freshness)
    }
    miss.made = NewVariant(
      variant: Variant(key: request.key, info: info, body: image.body),
      making: .rendered(image))
    return .next
  }

  private func overlay(of miss: Miss) -> ImageOverlay? {
    guard let watermark = miss.request.transform.watermark, let source = miss.watermark else {
      return nil
    }
    return ImageOverlay(file: source.file, density: watermark.source.density)
  }

  /// Adds a failure to the negative cache, for the watermark if that is to blame. Returns the error
  /// for the client.
  private func failure(_ error: ImageError, of miss: Miss, source: Source) async -> ImageError {
    if case .watermark(let cause) = error, let overlay = miss.watermark,
      let watermark = miss.request.transform.watermark
    {
      return failures.add(
        cause, of: watermark.key, since: overlay.generation, freshness: overlay.freshness
      ).ofWatermark
    }
    if case .undecodable = error.cause { await sources.remove(source) }
    return failures.add(error, rendering: miss.request, of: source)
  }
}
