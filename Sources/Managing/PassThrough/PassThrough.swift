// PassThrough: streams images that need no processing while they download.

import Model

/// Answers requests with a stream if possible, otherwise with a whole variant.
struct PassThrough: Sendable {
  private let variants: VariantService
  private var parts: ManagerParts { variants.parts }

  init(_ variants: VariantService) { self.variants = variants }

  /// Returns the response to a request, as a stream if possible.
  ///
  /// The response streams if the request sets `progressive`, names the source's own format and asks
  /// for no other change (compare SDWebImage's ProgressiveDownload). The image's head must show
  /// that no processing is needed.
  func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    guard let format = variants.plainSources.format(for: request), await !isCached(request),
      parts.failures.failure(of: request, at: .rendering) == nil
    else { return .whole(try await variants.variant(for: request)) }
    let head = StreamingHead()
    let participant = FlightParticipant(request.options.priority) { head.begin($0) }
    // The participant stays in the flight until the client has the whole body or disconnects.
    let task = Task.immediate { await load(request, participant: participant, head: head) }
    await withTaskCancellationHandler {
      await head.wait(for: format)
    } onCancel: {
      task.cancel()
    }
    guard !Task.isCancelled else { throw .cancelled }
    if let (flight, size) = head.plain,
      let info = variants.plainSources.info(
        of: flight.body, format: format, size: size, for: request)
    {
      Task { await store(task.value, for: request, participant: participant) }
      return .coming(
        StreamingDelivery(
          body: StrippedBody(flight.body, format: format), info: info,
          cacheStatus: .miss(
            flight.forward, stored: false, collapsed: participant.hasJoined,
            originStatus: flight.body.origin.status),
          // The client may have the last byte before the load ends.
          end: { if !flight.body.isComplete { task.cancel() } }))
    }
    // Releases the source after the variant flight has used it.
    defer { task.cancel() }
    return .whole(
      try await variants.variant(
        for: request, holding: .loading(participant, task)))
  }

  /// Returns whether a tier has a variant. One in memory may be too stale: it can be renewed.
  private func isCached(_ request: ImageRequest) async -> Bool {
    if parts.cache.inMemory(request.key) != nil { return true }
    guard request.options.cache.readsCache else { return false }
    let found = variants.cached(await parts.cache.onDisk(request.key), in: .disk, for: request)
    return found?.use != nil
  }

  /// Waits for the source as a participant of its flight.
  private func load(
    _ request: ImageRequest, participant: FlightParticipant, head: StreamingHead
  ) async -> Result<LoadedSource, ImageError> {
    defer { head.end() }
    do throws(ImageError) {
      let (loaded, _) = try await parts.sources.source(
        for: request, with: .allowed(participant), isDetached: request.options.isDetached)
      if request.options.retriesFailed { parts.failures.removeFailures(of: request) }
      return .success(loaded)
    } catch {
      return .failure(error)
    }
  }

  /// Stores a streamed image for later requests after an imaging worker has verified it. Caches a
  /// failure negatively.
  private func store(
    _ result: Result<LoadedSource, ImageError>, for request: ImageRequest,
    participant: FlightParticipant
  ) async {
    guard case .success(let loaded) = result,
      let variant = try? await variants.plainSources.variant(
        from: loaded.source, for: request, participant: participant),
      variant.info.freshness.isStorable
    else { return }
    variants.promote(variant, for: request)
  }
}
