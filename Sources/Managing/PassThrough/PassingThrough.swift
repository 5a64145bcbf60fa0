// PassingThrough: streams images that need no processing while they download.

import Model
import Platform

/// Which sources may be passed through.
public struct PassingPolicy: Sendable {
  /// The allowed formats.
  public var formats: Set<ImageFormat>
  /// The maximum number of pixels in one frame.
  public var maximumPixels: Int

  /// Creates the policy: formats that are both decoded and produced.
  public init(_ settings: ImagingSettings = ImagingSettings()) {
    formats = Set(ImageFormat.outputs).intersection(settings.formats)
    maximumPixels = settings.maximumPixels
  }
}

/// A source that a request is loading before the manager knows how the request uses it.
struct SourceLease: Sendable {
  let share: FlightParticipant
  let task: Task<Result<LoadedSource, ImageError>, Never>
}

extension ImageManager {
  /// Returns the response to a request, as a stream if possible.
  ///
  /// The response streams if the request sets `progressive`, names the source's own format and asks
  /// for no other change (compare SDWebImage's ProgressiveDownload). The image's head must show
  /// that no processing is needed.
  public func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    guard let format = formatPassedThrough(to: request), await !isKept(request),
      rememberedFailure(of: request, ofLoading: false) == nil
    else { return .whole(try await variant(for: request)) }
    let arrival = Arrival()
    let share = FlightParticipant(request.options.priority) { arrival.begin($0) }
    // The participant stays in the flight until the client has the whole body or disconnects.
    let task = Task.immediate { await self.hold(share, of: request, arrival) }
    await withTaskCancellationHandler {
      await arrival.look(for: format)
    } onCancel: {
      task.cancel()
    }
    guard !Task.isCancelled else { throw .cancelled }
    if let (coming, size) = arrival.plain, fits(size, request.transform) {
      Task { await keep(task.value, sentTo: request, share) }
      return .coming(
        StreamingDelivery(
          body: coming.body, info: info(of: coming.body, format, size, request),
          cacheStatus: .miss(
            coming.forward, stored: false, collapsed: share.hasJoined,
            originStatus: coming.body.origin.status),
          // The client may have the last byte before the load ends.
          end: { if !coming.body.isComplete { task.cancel() } }))
    }
    // Releases the source after the variant flight has used it.
    defer { task.cancel() }
    return .whole(try await variant(for: request, of: SourceLease(share: share, task: task)))
  }

  /// Returns whether a complete response is cached.
  private func isKept(_ request: ImageRequest) async -> Bool {
    if memory.peek(request.key) != nil { return true }
    return request.options.cache.looks
      ? await disk.variant(for: request.key).map { use(of: $0.info.freshness, by: request) != nil }
        ?? false
      : false
  }

  /// Waits for the source as a participant of its flight.
  private func hold(
    _ share: FlightParticipant, of request: ImageRequest, _ arrival: Arrival
  ) async -> Result<LoadedSource, ImageError> {
    defer { arrival.end() }
    do throws(ImageError) {
      let (loaded, _) = try await source(
        for: request, share, isDetached: request.options.isDetached)
      if request.options.retriesFailed { forgetFailure(of: request) }
      return .success(loaded)
    } catch {
      return .failure(error)
    }
  }

  /// Stores a streamed image for later requests after an imaging worker has verified it. Caches a
  /// failure negatively.
  private func keep(
    _ result: Result<LoadedSource, ImageError>, sentTo request: ImageRequest,
    _ share: FlightParticipant
  ) async {
    guard case .success(let loaded) = result,
      let variant = try? await passedThrough(loaded.source, to: request, share),
      variant.info.freshness.isStorable
    else { return }
    _ = store(variant, in: request.options.store.intersection(.memory))
  }

  /// Returns the source as a variant if it needs no processing. Only memory stores it, because the
  /// disk tier has it as the source.
  ///
  /// An imaging worker verifies the source first, so damaged images are marked.
  ///
  /// - Throws: `ImageError.undecodable`, and other errors of the image processor.
  func passedThrough(
    _ source: Source, to request: ImageRequest, _ share: FlightParticipant
  ) async throws(ImageError) -> Variant? {
    // A source that cannot be read in time needs work, which reports the error.
    guard source.version != 0, let format = formatPassedThrough(to: request),
      let head = await bytes(of: source.file, upTo: PassThroughCheck.limit),
      case .plain(let size) = head.withUnsafeBytes({ PassThroughCheck.read($0, as: format) }),
      fits(size, request.transform)
    else { return nil }
    var info = VariantInfo(
      passingThrough: format, size, source.origin, source.freshness, version: source.version,
      generation: source.generation, density: Double(request.source.density))
    if try await isDamaged(source, of: request, share) {
      await disk.remove(source.key)
      (info.isDamaged, info.freshness) = (true, info.freshness.ofDamaged(at: now()))
    }
    let isSmall = source.file.count < ImageBytes.mappingThreshold
    let bytes = isSmall ? await bytes(of: source.file) : nil
    return Variant(
      key: request.key, info: info, body: bytes.map { .memory($0) } ?? .file(source.file))
  }

  /// Returns whether a source has damage that the operator tolerates. Other damage is a failure of
  /// the source and is cached negatively.
  private func isDamaged(
    _ source: Source, of request: ImageRequest, _ share: FlightParticipant
  ) async throws(ImageError) -> Bool {
    var description = Transform()
    description.product = .info(nil)
    do throws(ImageError) {
      return try await processor.process(
        ImageJob(
          file: source.file, transform: description, density: request.source.density,
          priority: share, source: SourceIdentity(key: source.key, version: source.version),
          verifies: true)
      ).isDamaged
    } catch {
      guard case .undecodable = error else { throw error }
      await disk.remove(source.key)
      throw remember(
        error, of: source.key, since: source.generation, said: source.freshness)
    }
  }

  private func info(
    of body: any StreamingBody, _ format: ImageFormat, _ size: PixelSize, _ request: ImageRequest
  ) -> VariantInfo {
    VariantInfo(
      passingThrough: format, size, body.origin,
      // No decoder has verified the whole body, so clients get a short freshness lifetime.
      freshnessPolicy.freshness(
        of: body.origin, from: request.source, isAuthorized: request.isAuthorized,
        requestedAt: now(), receivedAt: now()
      ).ofDamaged(at: now()),
      version: body.version, generation: purges.generation,
      density: Double(request.source.density))
  }

  /// Returns the format in which a source can be passed through, or `nil` if the request asks for
  /// any change.
  private func formatPassedThrough(to request: ImageRequest) -> ImageFormat? {
    guard let format = request.transform.format, passing.formats.contains(format) else {
      return nil
    }
    var plain = Transform()
    (plain.format, plain.progressive) = (format, true)
    // These parameters do not affect an image that keeps its size.
    plain.limitBytes = request.transform.limitBytes
    plain.enlarge = request.transform.enlarge
    plain.background = request.transform.background
    plain.qualities = request.transform.qualities
    return request.transform == plain ? format : nil
  }

  private func fits(_ size: PixelSize, _ transform: Transform) -> Bool {
    // Divides instead of multiplying, because the product of untrusted sides could overflow.
    size.height <= min(transform.limitBytes / 4, passing.maximumPixels) / size.width
  }
}

extension VariantInfo {
  /// Describes a source that is passed through. Its version serves as a strong entity tag, because
  /// the version changes with the bytes.
  init(
    passingThrough format: ImageFormat, _ size: PixelSize, _ origin: OriginResponse,
    _ freshness: Freshness, version: UInt64, generation: Int, density: Double
  ) {
    self.init(
      format: format, size: size, density: density,
      etag: "\"\(String(version, radix: 16))\"",
      lastModified: origin.lastModified.flatMap { HTTPDate.parse($0) }.map(HTTPDate.text),
      freshness: freshness, sourceVersion: version, generation: generation)
  }
}

/// The state of an image whose head is arriving.
private final class Arrival: Sendable {
  private struct State {
    var coming: ComingBody?
    var size: PixelSize?
    var isOver = false
  }

  private let state = Lock(State())
  private let news: AsyncStream<Void>
  private let newsMaker: AsyncStream<Void>.Continuation

  init() {
    (news, newsMaker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// The body and the image's size, if the image needs no processing.
  var plain: (coming: ComingBody, size: PixelSize)? {
    state.withLock { state in
      guard let coming = state.coming, let size = state.size else { return nil }
      return (coming, size)
    }
  }

  /// Records that a body begins to arrive.
  func begin(_ coming: ComingBody) {
    state.withLock { $0.coming = coming }
    newsMaker.yield()
  }

  /// Records that the load has ended, with or without a body.
  func end() {
    state.withLock { $0.isOver = true }
    newsMaker.yield()
  }

  /// Waits until the head is decisive, the load ends, or the task is cancelled.
  func look(for format: ImageFormat) async {
    var observation: Observation?
    for await _ in news {
      let (coming, isOver) = state.withLock { ($0.coming, $0.isOver) }
      if let body = coming?.body {
        if observation == nil {
          observation = body.observe { [newsMaker] in newsMaker.yield() }
        }
        switch Self.head(of: body, as: format) {
        case .incomplete: break
        case .needsWork: return
        case .plain(let size): return state.withLock { $0.size = size }
        }
      }
      if isOver { return }
    }
    withExtendedLifetime(observation) {}
  }

  private static func head(of body: any StreamingBody, as format: ImageFormat) -> PassThroughCheck {
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
