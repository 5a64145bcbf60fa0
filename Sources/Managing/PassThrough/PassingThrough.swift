// PassingThrough: images that need no work, sent while they come in and kept as they are (SDWebImage's
// ProgressiveDownload).

import Model
import Platform

/// What may be sent as it came from an origin.
public struct PassingPolicy: Sendable {
  /// Formats that may.
  public var formats = Set(ImageFormat.outputs)
  /// Most pixels of an image, of one frame.
  public var maximumPixels = Int.max

  /// The defaults.
  public init() {}
}

/// A source that a request has its share in before it is known what becomes of it.
struct SourceLease: Sendable {
  let share: FlightParticipant
  let task: Task<Result<LoadedSource, ImageError>, Never>
}

extension ImageManager {
  /// The answer to a request, while it comes in where that may be: the request says `progressive` and names the source's
  /// own format, asks for no other change, and the image's head shows that it needs none.
  public func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    guard let format = formatPassedThrough(to: request), await !isKept(request),
      rememberedFailure(of: request, ofLoading: false) == nil
    else { return .whole(try await variant(for: request)) }
    let arrival = Arrival()
    let share = FlightParticipant(request.options.priority) { arrival.begin($0) }
    // The share in the transfer is held until the client has it all, or has gone.
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
          // With the last byte the client has gone, and the load has not ended yet.
          end: { if !coming.body.isComplete { task.cancel() } }))
    }
    // Given back when the variant's flight has what it needs of it.
    defer { task.cancel() }
    return .whole(try await variant(for: request, of: SourceLease(share: share, task: task)))
  }

  /// Whether there is a finished answer.
  private func isKept(_ request: ImageRequest) async -> Bool {
    if memory.peek(request.key) != nil { return true }
    return request.options.cache.looks
      ? await disk.variant(for: request.key).map { use(of: $0.info.freshness, by: request) != nil }
        ?? false
      : false
  }

  /// Waits for the source as others do.
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

  /// Keeps for the next what was sent while it came in, once a worker has seen the whole; a failure is remembered.
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

  /// The source itself as a variant, where it may be passed on as it is. Only memory keeps it: on disk it would be there
  /// twice. A worker looks at it before, since what is damaged may not be kept as whole.
  ///
  /// - Throws: `ImageError.undecodable` and what else befalls a worker.
  func passedThrough(
    _ source: Source, to request: ImageRequest, _ share: FlightParticipant
  ) async throws(ImageError) -> Variant? {
    // What cannot be read in time needs work, which will say what is wrong with it.
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

  /// Whether a source has damage that the operator lets through; any other is remembered as the source's failure.
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
      // No decoder has seen the end of it: who keeps it may not keep it long.
      freshnessPolicy.freshness(
        of: body.origin, from: request.source, isAuthorized: request.isAuthorized,
        requestedAt: now(), receivedAt: now()
      ).ofDamaged(at: now()),
      version: body.version, generation: purges.generation,
      density: Double(request.source.density))
  }

  /// The format of a source that would do as it is; `nil`: whatever it is, something is wanted of it.
  private func formatPassedThrough(to request: ImageRequest) -> ImageFormat? {
    guard let format = request.transform.format, passing.formats.contains(format) else {
      return nil
    }
    var plain = Transform()
    (plain.format, plain.progressive) = (format, true)
    // These say nothing about an image that is large enough as it is.
    plain.limitBytes = request.transform.limitBytes
    plain.enlarge = request.transform.enlarge
    plain.background = request.transform.background
    plain.qualities = request.transform.qualities
    return request.transform == plain ? format : nil
  }

  private func fits(_ size: PixelSize, _ transform: Transform) -> Bool {
    // Divided, since a stranger's sides may have a product that no number holds.
    size.height <= min(transform.limitBytes / 4, passing.maximumPixels) / size.width
  }
}

extension VariantInfo {
  /// A source that is passed on as it is. Its version is its entity tag: as strong, since it changes with the bytes.
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

/// What is known of an image while it comes in, until that is enough.
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

  /// The body, and the size of the image in it, where it needs no work.
  var plain: (coming: ComingBody, size: PixelSize)? {
    state.withLock { state in
      guard let coming = state.coming, let size = state.size else { return nil }
      return (coming, size)
    }
  }

  /// A body begins to come in.
  func begin(_ coming: ComingBody) {
    state.withLock { $0.coming = coming }
    newsMaker.yield()
  }

  /// The load is over, with or without a body.
  func end() {
    state.withLock { $0.isOver = true }
    newsMaker.yield()
  }

  /// Returns when it is known whether the image needs work, or the load is over, or the task is cancelled.
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
