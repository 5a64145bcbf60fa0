// WatermarkLoader: loads the watermark of a request like any other source.

import Model

/// Loads watermarks. A watermark is cached, coalesced, revalidated and negatively cached under its
/// own URL.
struct WatermarkLoader: Sendable {
  private let sources: SourceService
  private let failures: NegativeCache

  init(sources: SourceService, failures: NegativeCache) {
    self.sources = sources
    self.failures = failures
  }

  /// Returns the source of the request's watermark, or `nil` if the request has none.
  ///
  /// The request's load options apply, except the storage tiers: many images share one watermark,
  /// so all tiers may store it.
  ///
  /// - Throws: the failure, marked as a failure of the watermark.
  func watermark(
    of request: ImageRequest, for participant: FlightParticipant
  ) async throws(ImageError) -> LoadedSource? {
    guard let own = own(of: request) else { return nil }
    if let failure = failures.failure(of: own, at: .rendering) { throw failure.ofWatermark }
    do throws(ImageError) {
      return try await sources.source(for: own, participant: participant).0
    } catch {
      throw error.ofWatermark
    }
  }

  /// Returns what `watermark` would do.
  func plan(of request: ImageRequest) async -> PlannedOutcome {
    guard let own = own(of: request) else { return .next("") }
    do throws(ImageError) {
      if let failure = failures.failure(of: own, at: .rendering) { throw failure }
      return .next("watermark: " + (try await sources.plan(for: own).why))
    } catch {
      return .failure(error.ofWatermark, "no watermark: \(error.code)")
    }
  }

  /// Returns the request for the watermark of a request.
  private func own(of request: ImageRequest) -> ImageRequest? {
    guard let watermark = request.transform.watermark else { return nil }
    var options = request.options
    options.store = .all
    return ImageRequest(
      source: watermark.source, transform: Transform(), options: options,
      keyURL: watermark.keyURL)
  }
}
