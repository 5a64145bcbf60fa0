// StepSamples: misses, variants and sources for tests of single steps.

import Glibc
import Model
import Platform
import TestSupport

@testable import Managing

extension Miss {
  /// A miss of an image at the origin, with options changed by `change`.
  static func sample(
    accepting formats: [ImageFormat] = [], _ change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> Miss {
    let source = try SourceURL(parsing: "http://origin/a.jpg")
    var request = ImageRequest(source: source, transform: Transform())
    if !formats.isEmpty { request = request.accepting(formats) }
    change(&request.options)
    return Miss(request, participant: .ofFlight())
  }

  /// A variant of the miss, rendered from the source with `version`.
  func variant(
    version: UInt64, lifetime: Int = 60, isDamaged: Bool = false, inFile: Bool = false
  ) -> Variant {
    var info = VariantInfo(
      .image(
        RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: "\"1\"",
      freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: lifetime),
      sourceVersion: version)
    info.isDamaged = isDamaged
    return Variant(
      key: request.key, info: info,
      body: inFile
        ? .file(emptyFile()) : .memory([0].withUnsafeBytes { ImageBytes(copying: $0) }))
  }

  /// A source of the miss.
  func source(version: UInt64, lifetime: Int = 60, isStorable: Bool = true) -> Source {
    Source(
      key: request.key.source, file: emptyFile(), origin: OriginResponse(status: 200),
      freshness: Freshness(
        receivedAt: UnixTime(seconds: 0), lifetime: lifetime, isStorable: isStorable),
      version: version)
  }
}

extension LoadedSource {
  /// A source from the disk tier.
  init(cached source: Source, stale: CacheStatus.StaleReason? = nil) {
    self.init(
      source: source, forward: nil, originStatus: nil, stale: stale, isStored: true,
      timings: Timings())
  }
}

extension StepOutcome {
  /// Whether the next step continues.
  var isNext: Bool { if case .next = self { true } else { false } }
  /// The response, if there is one.
  var response: VariantResult? { if case .response(let result) = self { result } else { nil } }
  /// The fallback request, if there is one.
  var fallback: ImageRequest? { if case .fallback(let request, _) = self { request } else { nil } }
}
