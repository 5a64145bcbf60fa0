// Watermarking: the second source of a request, which comes the way of any other.

import Model

extension ImageManager {
  /// The source of a request's watermark, where it has one: kept, shared with all who load it, renewed and remembered as
  /// failed under its own URL. What a request says of its source holds for this one too, but for where it is kept: many
  /// other images have the same.
  ///
  /// - Throws: the failure as one of the watermark.
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

  /// Remembers a failure of the watermark itself, as if it had been asked for, and returns it as it is to be told. Whatever
  /// it is laid on is not to blame.
  func remembering(
    _ error: ImageError, of watermark: Watermark, from source: Source
  ) -> ImageError {
    remember(error, of: watermark.key, since: source.generation, said: source.freshness)
      .ofWatermark
  }
}
