// Derivation: a small image from a larger one that is kept, where its source is not.

import Model
import Platform

extension ImageManager {
  /// What a request wants, made of a larger variant; `nil`: the source is kept, or no such variant is.
  ///
  /// Only where the source would have to be loaded again: what is made of a variant is like what is made of the source, and
  /// not the same bytes.
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
        // Its source may do.
        return nil
      }
      timings.add(image.timings)
      makings.derived.add()
      return Variant(
        key: request.key, info: VariantInfo(image, like: base.info), body: .memory(image.bytes))
    }
    return nil
  }

  /// Whether a source is on disk and right.
  private func isKept(_ source: CacheKey) async -> Bool {
    guard let entry = await disk.look(for: source) else { return false }
    return !purges.covers(source, generation: entry.generation)
  }

  /// From either tier.
  private func variant(_ key: CacheKey) async -> Variant? {
    var found = memory.peek(key)
    if found == nil { found = await disk.variant(for: key) }
    return found.flatMap { isRight($0) ? $0 : nil }
  }
}

extension Variant {
  /// Its bytes in a file, as workers take them; `nil` where there is no memory for one.
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
  /// What a worker made of a variant, which passes on what it has of their source.
  fileprivate init(_ image: ProcessedImage, like larger: VariantInfo) {
    self.init(
      format: image.format, size: image.size, frames: image.frames, density: image.density,
      scaledDownFrom: image.scaledDownFrom, quality: image.quality, etag: "\"\(image.digest)\"",
      lastModified: larger.lastModified, freshness: larger.freshness,
      sourceVersion: larger.sourceVersion, generation: larger.generation)
  }
}
