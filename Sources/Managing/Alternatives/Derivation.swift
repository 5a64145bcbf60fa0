// Derivation: renders a small variant from a larger cached variant.

import Model
import Platform

extension ImageManager {
  /// Renders a variant from a larger cached one. Returns `nil` if the source is cached or no larger
  /// variant fits.
  ///
  /// A derived variant looks the same as one from the source but has other bytes. So this path only
  /// replaces a download.
  func derive(
    _ request: ImageRequest, _ share: FlightParticipant, _ timings: inout Timings
  ) async throws(ImageError) -> Variant? {
    guard derives, request.options.cache.looks, !request.options.isRevalidation,
      request.source.scheme != .local
    else { return nil }
    let candidates = larger.withLock { $0.candidates(for: request) }
    guard !candidates.isEmpty, await !isKept(request.key.source) else { return nil }
    for (candidate, rest) in candidates {
      guard let base = await variant(candidate.key) else {
        larger.withLock { $0.remove(candidate.key) }
        continue
      }
      guard use(of: base.info.freshness, by: request) == .fresh, let file = base.file else {
        continue
      }
      let image: ProcessedImage
      do throws(ImageError) {
        image = try await processor.process(
          ImageJob(
            file: file, transform: rest, density: request.source.density, priority: share))
      } catch .cancelled {
        throw .cancelled
      } catch {
        // Falls back to the source.
        return nil
      }
      timings.add(image.timings)
      makings.derived.add()
      return Variant(
        key: request.key, info: VariantInfo(image, like: base.info), body: .memory(image.bytes))
    }
    return nil
  }

  /// Returns whether the disk tier has a source that is not purged.
  private func isKept(_ source: CacheKey) async -> Bool {
    guard let entry = await disk.look(for: source) else { return false }
    return !purges.covers(source, generation: entry.generation)
  }

  /// Looks up a variant in memory, then on disk.
  private func variant(_ key: CacheKey) async -> Variant? {
    var found = memory.peek(key)
    if found == nil { found = await disk.variant(for: key) }
    return found.flatMap { isRight($0) ? $0 : nil }
  }
}

extension Variant {
  /// The variant's bytes as a file for an imaging worker, or `nil` if no memory is available.
  fileprivate var file: FileRegion? {
    switch body {
    case .file(let file): return file
    case .memory(let bytes):
      guard var file = try? MemoryFile(name: "pictor-larger") else { return nil }
      do {
        try bytes.withUnsafeBytes { try file.append($0) }
        return try file.sealed()
      } catch {
        return nil
      }
    }
  }
}

extension VariantInfo {
  /// Describes an image that was derived from a larger variant. Source metadata comes from that
  /// variant.
  fileprivate init(_ image: ProcessedImage, like larger: VariantInfo) {
    self.init(
      format: image.format, size: image.size, frames: image.frames, density: image.density,
      scaledDownFrom: image.scaledDownFrom, quality: image.quality, etag: "\"\(image.digest)\"",
      lastModified: larger.lastModified, freshness: larger.freshness,
      sourceVersion: larger.sourceVersion, generation: larger.generation)
  }
}
