// PassThrough: passes on images that need no processing, as a stream while they download or as a
// variant.

import Core

extension ImageManager {
  /// Returns the response to a request, as a stream if possible.
  ///
  /// The response streams if the request sets `progressive`, names the source's own format and asks
  /// for no other change (compare SDWebImage's ProgressiveDownload). The image's head must show
  /// that no processing is needed.
  public func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    guard let format = parts.imaging.passedFormat(for: request.transform), await !isAtHand(request),
      parts.failures.failure(of: request, at: .rendering) == nil
    else { return .whole(try await variant(for: request)) }
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
      let info = arrivingInfo(
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
      try await variant(
        for: request, holding: .loading(participant, task)))
  }

  /// Returns whether a tier has a variant. One in memory may be too stale: it can be renewed.
  private func isAtHand(_ request: ImageRequest) async -> Bool {
    if parts.cache.inMemory(request.key) != nil { return true }
    guard request.options.cache.readsCache else { return false }
    let found = cached(await parts.cache.onDisk(request.key), in: .disk, for: request)
    return found?.use != nil
  }

  /// Waits for the source as a participant of its flight.
  private func load(
    _ request: ImageRequest, participant: FlightParticipant, head: StreamingHead
  ) async -> Result<LoadedSource, ImageError> {
    defer { head.end() }
    do throws(ImageError) {
      let (loaded, _) = try await sources.source(
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
      let variant = try? await passedThrough(
        loaded.source, for: request, participant: participant),
      variant.info.freshness.isStorable
    else { return }
    promote(variant, for: request)
  }

  // MARK: Whole sources

  /// Returns the metadata of a body that is arriving, or `nil` if it is too large.
  ///
  /// - Parameter format: the format in which the source can be passed through.
  private func arrivingInfo(
    of body: any StreamingBody, format: ImageFormat, size: PixelSize, for request: ImageRequest
  ) -> VariantInfo? {
    guard parts.imaging.passes(size, for: request.transform) else { return nil }
    return VariantInfo(
      passingThrough: RenderedImage(
        format: format, size: size, density: Double(request.source.density)),
      origin: body.origin,
      // No decoder has verified the whole body, so clients get a short freshness lifetime.
      freshness: parts.freshness.limited(parts.freshness.freshness(of: body.origin, for: request)),
      version: body.version, generation: parts.validity.generation)
  }

  /// Returns the source as a variant if it needs no processing. Only memory stores it, because the
  /// disk tier has it as the source.
  ///
  /// An imaging worker verifies the source first, so damaged images are marked.
  ///
  /// - Throws: `ImageError.undecodable`, and other errors of the image processor.
  func passedThrough(
    _ source: Source, for request: ImageRequest, participant: FlightParticipant
  ) async throws(ImageError) -> Variant? {
    // A source that cannot be read in time needs work, which reports the error.
    guard source.version != 0, let format = parts.imaging.passedFormat(for: request.transform),
      let head = await parts.files.beginning(of: source.file, upTo: PassThroughCheck.limit),
      case .plain(let size) = head.withUnsafeBytes({ PassThroughCheck.read($0, as: format) }),
      parts.imaging.passes(size, for: request.transform),
      await isClean(source.file, as: format)
    else { return nil }
    let image = RenderedImage(
      format: format, size: size, density: Double(request.source.density))
    var info = VariantInfo(passingThrough: image, of: source)
    if try await isDamaged(source, request: request, participant: participant) {
      await parts.disk.remove(source.key)
      info.isDamaged = true
      info.freshness = parts.freshness.limited(info.freshness)
    }
    let isSmall = source.file.count < ImageBytes.mappingThreshold
    let bytes = isSmall ? await parts.files.bytes(of: source.file) : nil
    if let bytes { return Variant(key: request.key, info: info, body: .memory(bytes)) }
    return Variant(
      key: request.key, info: info, body: .file(await parts.files.sendable(source.file)))
  }

  /// Returns whether nothing follows or interrupts a JPEG's scans that later requests should not
  /// get.
  private func isClean(_ file: FileRegion, as format: ImageFormat) async -> Bool {
    guard format == .jpeg else { return true }
    return await parts.files.bytesAndBody(of: file)?.bytes.withUnsafeBytes {
      TrailingDataCheck.isClean($0, as: format)
    } ?? false
  }

  /// Returns whether a source has damage that the operator tolerates. Other damage is a failure of
  /// the source and is cached negatively.
  private func isDamaged(
    _ source: Source, request: ImageRequest, participant: FlightParticipant
  ) async throws(ImageError) -> Bool {
    var description = Transform()
    description.product = .info(nil)
    do throws(ImageError) {
      return try await parts.processor.process(
        ImageJob(
          file: source.file, transform: description, density: request.source.density,
          priority: participant,
          source: SourceIdentity(key: source.key, version: source.version),
          client: request.key.variation, verifies: true)
      ).report.isDamaged
    } catch {
      guard case .undecodable = error else { throw error }
      await parts.disk.remove(source.key)
      throw parts.failures.add(
        error, of: source.key, since: source.generation, freshness: source.freshness)
    }
  }
}

/// The state of an image whose head is arriving.
final class StreamingHead: Sendable {
  private struct State {
    var body: FlightBody?
    var size: PixelSize?
    var isOver = false
  }

  private let state = Lock(State())
  private let changes: AsyncStream<Void>
  private let signal: AsyncStream<Void>.Continuation

  init() {
    (changes, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// The body and the image's size, if the image needs no processing.
  var plain: (body: FlightBody, size: PixelSize)? {
    state.withLock { state in
      guard let body = state.body, let size = state.size else { return nil }
      return (body, size)
    }
  }

  func begin(_ body: FlightBody) {
    state.withLock { $0.body = body }
    signal.yield()
  }

  /// Records that the load has ended, with or without a body.
  func end() {
    state.withLock { $0.isOver = true }
    signal.yield()
  }

  /// Waits until the head is decisive, the load ends, or the task is cancelled.
  func wait(for format: ImageFormat) async {
    var observation: Observation?
    for await _ in changes {
      let (current, isOver) = state.withLock { ($0.body, $0.isOver) }
      if let body = current?.body {
        if observation == nil {
          observation = body.observe { [signal] in signal.yield() }
        }
        switch Self.check(body, format: format) {
        case .incomplete: break
        case .needsWork: return
        case .plain(let size): return state.withLock { $0.size = size }
        }
      }
      if isOver { return }
    }
    withExtendedLifetime(observation) {}
  }

  private static func check(
    _ body: any StreamingBody, format: ImageFormat
  ) -> PassThroughCheck {
    withUnsafeTemporaryAllocation(byteCount: PassThroughCheck.limit, alignment: 1) { buffer in
      var count = 0
      while count < buffer.count,
        case .bytes(let more) = body.read(
          at: count, into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
      { count += more }
      return PassThroughCheck.read(UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: format)
    }
  }
}

extension ImagingPolicy {
  /// The maximum number of pixels in one frame.
  private var maximumPixels: Int { settings.withLock { $0.maximumPixels } }

  /// Whether sources of a format may be passed through.
  func passes(_ format: ImageFormat) -> Bool {
    ImageFormat.outputs.contains(format) && settings.withLock { $0.formats.contains(format) }
  }

  /// Returns the format in which a source can be passed through, or `nil` if the transform asks for
  /// any change.
  func passedFormat(for transform: Transform) -> ImageFormat? {
    guard let format = transform.output.format, passes(format) else { return nil }
    var plain = Transform()
    plain.output.format = format
    plain.output.isProgressive = true
    // These parameters do not affect an image that keeps its size.
    plain.sizing.limitBytes = transform.sizing.limitBytes
    plain.sizing.enlarge = transform.sizing.enlarge
    plain.output.background = transform.output.background
    plain.output.qualities = transform.output.qualities
    return transform == plain ? format : nil
  }

  /// Returns whether an image of `size` is within the limits of pixels and of memory.
  func passes(_ size: PixelSize, for transform: Transform) -> Bool {
    // Divides instead of multiplying, because the product of untrusted sides could overflow.
    size.height <= min(transform.sizing.limitBytes / 4, maximumPixels) / size.width
  }
}
