// Watermarking: loads the watermark of a request like any other source.

import Model

extension ImageManager {
  /// Returns the source of the request's watermark, or `nil` if the request has none.
  ///
  /// The watermark is cached, coalesced, revalidated and negatively cached under its own URL. The
  /// request's load options apply, except the storage tiers: many images share one watermark, so
  /// all tiers may store it.
  ///
  /// - Throws: the failure, marked as a failure of the watermark.
  func watermark(
    of request: ImageRequest, _ share: FlightParticipant, _ timings: inout Timings
  ) async throws(ImageError) -> Source? {
    guard let watermark = request.transform.watermark else { return nil }
    var options = request.options
    options.store = .all
    let own = ImageRequest(
      source: watermark.source, transform: Transform(), options: options,
      keyURL: watermark.keyURL)
    if let failure = rememberedFailure(of: own, ofLoading: false) { throw failure.ofWatermark }
    do throws(ImageError) {
      let (loaded, _) = try await source(for: own, share)
      timings.add(loaded.timings)
      return loaded.source
    } catch {
      throw error.ofWatermark
    }
  }

  /// Adds a failure of the watermark to the negative cache, under the watermark's key. Returns the
  /// error for the client.
  func remembering(
    _ error: ImageError, of watermark: Watermark, from source: Source
  ) -> ImageError {
    remember(error, of: watermark.key, since: source.generation, said: source.freshness)
      .ofWatermark
  }
}
