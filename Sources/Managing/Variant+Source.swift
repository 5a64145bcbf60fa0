// Variant+Source: describes variants by the source they were rendered from, and passes their bytes
// to a worker.

import Core

extension Variant {
  /// Returns whether the variant was rendered from these bytes of its source.
  func isRendered(from source: Source) -> Bool { isRendered(fromVersion: source.version) }

  /// Returns whether the variant was rendered from this version of its source.
  func isRendered(fromVersion version: UInt64) -> Bool {
    version != 0 && info.sourceVersion == version
  }
}

extension VariantInfo {
  /// Describes a rendered image, with the validator and freshness of its source. The watermark's
  /// freshness limits the latter.
  init(_ image: ProcessedImage, of source: Source, watermark: Source?) {
    self.init(
      image.report.content, etag: image.report.etag,
      lastModified: source.origin.lastModified.flatMap { HTTPDate.parse($0) },
      freshness: source.freshness.combined(with: watermark), sourceVersion: source.version,
      watermarkVersion: watermark?.version ?? 0, generation: source.generation)
    isLocal = source.isLocal || watermark?.isLocal == true
  }

  /// Describes an image that was derived from a larger variant. Source metadata comes from that
  /// variant.
  init(_ image: ProcessedImage, derivedFrom larger: VariantInfo) {
    self.init(
      image.report.content, etag: image.report.etag,
      lastModified: larger.lastModified, freshness: larger.freshness,
      sourceVersion: larger.sourceVersion, generation: larger.generation)
    isLocal = larger.isLocal
  }

  /// Describes a source that is passed through. Its version serves as a strong entity tag, because
  /// the version changes with the bytes.
  init(
    passingThrough image: RenderedImage, origin: OriginResponse, freshness: Freshness,
    version: UInt64, generation: Int
  ) {
    self.init(
      .image(image), etag: Self.etag(ofVersion: version),
      lastModified: origin.lastModified.flatMap { HTTPDate.parse($0) },
      freshness: freshness, sourceVersion: version, generation: generation)
    isLocal = origin.isUploaded
  }

  /// Whether the bytes are those of the source.
  var isSourceItself: Bool { etag == Self.etag(ofVersion: sourceVersion) }

  private static func etag(ofVersion version: UInt64) -> EntityTag {
    EntityTag("\"\(String(version, radix: 16))\"")
  }

  init(passingThrough image: RenderedImage, of source: Source) {
    self.init(
      passingThrough: image, origin: source.origin, freshness: source.freshness,
      version: source.version, generation: source.generation)
  }
}

extension Source {
  /// Whether other machines may have another image under this key: an upload, or a local file.
  var isLocal: Bool { origin.isUploaded || key.host == nil }
}

extension RenderReport {
  /// The strong validator of the bytes.
  var etag: EntityTag { EntityTag("\"\(digest)\"") }
}

extension Freshness {
  /// Returns the freshness, limited by the watermark's freshness if there is one.
  func combined(with watermark: Source?) -> Freshness {
    watermark.map { combined(with: $0.freshness) } ?? self
  }
}

extension Variant {
  /// The variant's bytes as a file for an imaging worker, or `nil` if no memory is available.
  func file(_ storage: VariantStorage) -> FileRegion? {
    switch body {
    case .file(let file): return file
    case .memory(let bytes):
      guard let lease = storage.memory.lease(bytes.count),
        var file = try? MemoryFile(name: "pictor-variant")
      else { return nil }
      do {
        try bytes.withUnsafeBytes { try file.append($0) }
        return try file.sealed(lease: lease)
      } catch {
        return nil
      }
    }
  }
}
