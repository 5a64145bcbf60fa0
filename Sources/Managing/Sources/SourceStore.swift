// SourceStore: the disk tier as a cache of sources, which invalidates the variants of replaced
// ones.

import Core

/// Stores and returns current sources, and invalidates a replaced source with its variants.
///
/// The order of an invalidation matters:
/// 1. Record the new version, so no variant of the old bytes is stored or served from disk.
/// 2. Replace the old source, so no new variant is rendered from it.
/// 3. Remove the old variants from disk, then from memory, because disk hits fill memory.
struct SourceStore: Sendable {
  let disk: any DiskCache
  let variants: VariantCache
  let validity: EntryValidity

  /// Returns the source of `key`, fresh or not, unless it is purged.
  ///
  /// - Parameter isUse: whether to read and count it. Otherwise it has no bytes.
  func source(for key: CacheKey, isUse: Bool = true) async -> Source? {
    guard isUse else { return await entry(of: key).flatMap { Source($0, of: key) } }
    let found = await disk.source(for: key)
    return found.flatMap { validity.isPurged(key, since: $0.generation) ? nil : $0 }
  }

  /// Returns information about the source of `key` unless it is purged, without updating hit
  /// statistics.
  func entry(of key: CacheKey) async -> CacheEntryInfo? {
    let found = await disk.look(for: key)
    return found.flatMap { validity.isPurged(key, since: $0.generation) ? nil : $0 }
  }

  /// Whether a variant of another machine is outdated: this machine has an upload in place of its
  /// source or watermark, or other bytes of the source that are not older.
  func outdates(_ variant: Variant, for request: ImageRequest) async -> Bool {
    let watermark = request.transform.watermark?.key
    if let watermark, await source(for: watermark, isUse: false)?.origin.isUploaded == true {
      return true
    }
    guard let own = await source(for: request.key.source, isUse: false) else { return false }
    if own.origin.isUploaded { return true }
    // A variant with a watermark may have the time of the watermark.
    return own.version != variant.info.sourceVersion
      && (watermark != nil || own.freshness.receivedAt >= variant.info.freshness.receivedAt)
  }

  /// Stores a source if allowed. Returns whether the disk tier accepted it.
  func store(_ source: Source, for request: ImageRequest) -> Bool {
    validity.writing(source.key) {
      isStorable(source, for: request) && validity.isLatest(source) && disk.store(source)
    }
  }

  /// Stores a loaded source, and invalidates the source and variants it replaces. Returns whether
  /// the source is stored.
  func replace(
    _ old: Source?, with source: Source, for request: ImageRequest,
    since start: EntryValidity.LoadStart
  ) async -> Bool {
    // A regular miss may find variants that outlived their source. They stay until they expire.
    let isRenewed = old?.version == source.version
    let isChanged =
      request.source.scheme != .local && !isRenewed
      && (old != nil || !request.options.cache.readsCache)
    let (isCurrent, isStored) = validity.writing(source.key) {
      // A source that was downloaded or uploaded after the purge is current.
      guard !validity.isPurged(source), !validity.isUploaded(source.key, since: start) else {
        return (false, false)
      }
      if isRenewed {
        // A 304 refers to the cached source at request time. Another flight may have stored other
        // bytes since.
        guard validity.isLatest(source) else { return (false, false) }
      } else if isChanged {
        validity.recordChange(of: source.key, to: source.version)
      } else {
        validity.recordLoad(of: source.key, version: source.version)
      }
      guard isStorable(source, for: request) else { return (true, false) }
      return (true, disk.store(source))
    }
    if isChanged, isCurrent {
      if !isStored { await disk.remove(source.key) }
      await variants.removeVariants(of: source.key)
    }
    return isStored
  }

  /// Stores an uploaded source. Returns whether the disk tier accepted it. The caller removes the
  /// old variants.
  func storeUpload(
    _ file: FileRegion, of key: CacheKey, origin: OriginResponse, freshness: Freshness
  ) -> Bool {
    validity.writing(key) {
      let source = Source(
        key: key, file: file, origin: origin, freshness: freshness, generation: validity.generation)
      guard disk.store(source) else { return false }
      validity.recordChange(of: key, to: source.version, isUpload: true)
      return true
    }
  }

  /// Invalidates a source that the origin reports as gone, and its variants.
  ///
  /// - Parameter isCurrent: whether the entry to invalidate is still the cached one.
  /// - Returns: whether it was.
  func invalidate(
    _ key: CacheKey, version: UInt64, where isCurrent: () -> Bool
  ) async -> Bool {
    let isInvalidated = validity.writing(key) {
      guard isCurrent() else { return false }
      // A random version matches no existing variant.
      validity.recordChange(of: key, to: .random(in: 1...(.max)))
      return true
    }
    guard isInvalidated else { return false }
    await disk.remove(key)
    await variants.removeVariants(of: key)
    return true
  }

  /// Returns whether the disk tier may store a source. Local files are read in place, because a
  /// copy would become outdated.
  private func isStorable(_ source: Source, for request: ImageRequest) -> Bool {
    request.source.scheme != .local && source.freshness.isStorable
      && request.options.store.contains(.disk) && !validity.isPurged(source)
  }
}
