// Uploads: stores images that an operator uploads in place of downloads.

import Core

/// Stores uploaded sources and invalidates what they replace.
struct Uploads: Sendable {
  let parts: ManagerParts
  let invalidation: Invalidation

  /// Stores an image as the source of `url`. A download that began before the upload does not
  /// replace it.
  ///
  /// - Parameter origin: the response that the image would have come with.
  /// - Throws: `forbiddenSource` for local files, `unsupportedFormat`, `invalidParameter` if the
  ///   response may not be stored, `overloaded` if the disk tier does not accept it.
  func store(
    _ file: FileRegion, as url: SourceURL, origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport {
    guard url.scheme != .local else {
      throw .forbiddenSource(reason: "a local file is read from where it is", detail: "")
    }
    let beginning = await parts.files.beginning(of: file, upTo: FormatSigns.limit)
    let format = beginning?.withUnsafeBytes { FormatSigns.format(ofSource: $0) }
    guard let format, parts.imaging.withLock({ $0.formats.contains(format) }) else {
      throw .unsupportedFormat(detail: "\(file.count) bytes of \(format?.rawValue ?? "no image")")
    }
    let freshness = parts.freshness.freshness(of: origin, from: url, isAuthorized: false)
    guard freshness.isStorable else {
      throw .invalidParameter(
        name: "Cache-Control", value: origin.cacheControl ?? "", allowed: "what may be stored")
    }
    let report = try await invalidation.purge(.url(url))
    let key = CacheKey(source: url)
    var origin = origin
    origin.isUploaded = true
    guard parts.store.storeUpload(file, of: key, origin: origin, freshness: freshness) else {
      throw .overloaded(queue: "disk", retryAfter: 1)
    }
    // Invalidates all data that was downloaded or rendered since the purge.
    await invalidation.invalidateVariants(of: key)
    return report
  }
}
