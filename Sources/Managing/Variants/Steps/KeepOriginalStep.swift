// KeepOriginalStep: serves the source if re-encoding does not make it smaller.

import Model
import Platform

/// Replaces a rendered image by the source if that is no larger and looks the same. The source
/// needs the same pixel size, an accepted format, upright orientation, sRGB and no metadata.
///
/// Both tiers store this variant, unlike one that is passed through. Otherwise a restart would
/// lose the decision and encode the image again.
struct KeepOriginalStep: MissStep {
  private let policy: PassingPolicy
  private let files: FileReader
  private let counters: SubstitutionCounters

  init(policy: PassingPolicy, files: FileReader, counters: SubstitutionCounters) {
    self.policy = policy
    self.files = files
    self.counters = counters
  }

  let name = "keep-original"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome { .next("") }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let transform = miss.request.transform
    guard case .rendered(let result) = miss.made?.making, let source = miss.loaded?.source,
      let image = result.rendered,
      !result.report.isDamaged, source.version != 0, source.file.count <= result.body.count,
      source.file.count <= transform.output.maxBytes ?? .max,
      image.scaledDownFrom == nil, transform.keepsStoredPixels,
      // Copies the bytes: another process may truncate a mapped file.
      let (bytes, body) = await files.bytesAndBody(of: source.file),
      let format = format(of: bytes, insteadOf: image, transform: transform)
    else { return .next }
    counters.sourcesInstead.add()
    let own = RenderedImage(
      format: format, size: image.size, frames: image.frames, density: image.density)
    let info = VariantInfo(passingThrough: own, of: source)
    miss.made = NewVariant(
      variant: Variant(key: miss.request.key, info: info, body: body),
      making: .substituted)
    return .next
  }

  /// Returns the format of a source that looks like the rendered image, otherwise `nil`.
  private func format(
    of bytes: ImageBytes, insteadOf image: RenderedImage, transform: Transform
  ) -> ImageFormat? {
    bytes.withUnsafeBytes { bytes in
      guard let format = FormatSigns.format(of: bytes), policy.allows(format),
        transform.takes(format),
        PassThroughCheck.read(bytes, as: format) == .plain(image.size),
        TrailingDataCheck.isClean(bytes, as: format)
      else { return nil }
      return format
    }
  }
}
