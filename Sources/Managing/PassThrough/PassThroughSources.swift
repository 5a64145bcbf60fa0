// PassThroughSources: turns sources that need no processing into variants.

import Model
import Platform

/// Turns a source into a variant if it needs no processing.
struct PassThroughSources: Sendable {
  private let parts: ManagerParts

  init(_ parts: ManagerParts) { self.parts = parts }

  /// Returns the format in which a source can be passed through to a request, or `nil` if the
  /// request asks for any change.
  func format(for request: ImageRequest) -> ImageFormat? {
    parts.passing.format(for: request.transform)
  }

  /// Returns the metadata of a body that is arriving, or `nil` if it is too large.
  ///
  /// - Parameters:
  ///   - format: the format that `format(for:)` returned.
  ///   - size: the image's size, from its head.
  func info(
    of body: any StreamingBody, format: ImageFormat, size: PixelSize, for request: ImageRequest
  ) -> VariantInfo? {
    guard parts.passing.allows(size, for: request.transform) else { return nil }
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
  func variant(
    from source: Source, for request: ImageRequest, participant: FlightParticipant
  ) async throws(ImageError) -> Variant? {
    // A source that cannot be read in time needs work, which reports the error.
    guard source.version != 0, let format = format(for: request),
      let head = await parts.files.beginning(of: source.file, upTo: PassThroughCheck.limit),
      case .plain(let size) = head.withUnsafeBytes({ PassThroughCheck.read($0, as: format) }),
      parts.passing.allows(size, for: request.transform),
      await isClean(source.file, as: format)
    else { return nil }
    let image = RenderedImage(
      format: format, size: size, density: Double(request.source.density))
    var info = VariantInfo(passingThrough: image, of: source)
    if try await isDamaged(source, request: request, participant: participant) {
      await parts.store.remove(source)
      info.isDamaged = true
      info.freshness = parts.freshness.limited(info.freshness)
    }
    let isSmall = source.file.count < ImageBytes.mappingThreshold
    let bytes = isSmall ? await parts.files.bytes(of: source.file) : nil
    if let bytes { return Variant(key: request.key, info: info, body: .memory(bytes)) }
    return Variant(
      key: request.key, info: info, body: .file(await parts.files.sendable(source.file)))
  }

  /// Returns whether nothing follows or interrupts a JPEG's scans that later requests should not get.
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
      await parts.store.remove(source)
      throw parts.failures.add(
        error, of: source.key, since: source.generation, freshness: source.freshness)
    }
  }
}
