// RecompressionJobs: makes the background jobs that recompress variants.

import Model
import Platform

/// Makes the job for a popular variant: from its own bytes, or from its source.
struct RecompressionJobs: Sendable {
  private let policy: RecompressionPolicy
  private let requests: RenderRequests
  private let sources: SourceStore
  private let loader: any ImageLoader
  private let files: FileReader
  private let storage: VariantStorage

  init(
    policy: RecompressionPolicy, requests: RenderRequests, sources: SourceStore,
    loader: any ImageLoader, files: FileReader, storage: VariantStorage
  ) {
    self.policy = policy
    self.requests = requests
    self.sources = sources
    self.loader = loader
    self.files = files
    self.storage = storage
  }

  /// Returns the job for a variant; `nil` if there is no room for its bytes, or if its source is not at
  /// hand any more. Downloads nothing.
  ///
  /// - Throws: `overloaded` or `sourceTimeout` if a disk does not answer at present, `cancelled`.
  func job(for variant: Variant) async throws(ImageError) -> ImageJob? {
    guard let format = variant.info.image?.format else { return nil }
    guard ImageFormat.recompressible.contains(format) else { return try await rendering(variant) }
    guard let file = variant.file(storage) else { return nil }
    var transform = Transform()
    // The format that the answer must have.
    transform.output.format = format
    return ImageJob(
      file: file, transform: transform, density: 1, client: variant.key.variation,
      isRecompression: true, isBackground: true)
  }

  /// Returns whether the result of a job shows the variant's source. A local file may have been overwritten while the
  /// job waited or ran.
  func isCurrent(_ job: ImageJob, of variant: Variant) async throws(ImageError) -> Bool {
    guard job.hasMoreEffort else { return true }
    // Without its request, which may be forgotten meanwhile, the source is unknown.
    guard let url = requests.request(of: variant.key)?.source else { return false }
    guard url.scheme == .local else { return true }
    return try await localFile(at: url, of: variant) != nil
  }

  /// Forgets how to render a variant that is done.
  func forget(_ key: CacheKey) { requests.forget(key) }

  /// Returns the job that renders a lossy image again with more effort. A source in the same format may
  /// have lent it its own pixels, which an encoder would only lose.
  private func rendering(_ variant: Variant) async throws(ImageError) -> ImageJob? {
    guard let request = requests.request(of: variant.key),
      let file = try await source(of: variant, at: request.source),
      let beginning = await files.beginning(of: file, upTo: FormatSigns.limit),
      let format = beginning.withUnsafeBytes({ FormatSigns.format(ofSource: $0) }),
      let own = variant.info.image?.format, format != own,
      let transform = policy.transform(request.transform, for: own)
    else { return nil }
    return ImageJob(
      file: file, transform: transform, density: request.source.density,
      source: SourceIdentity(key: variant.key.source, version: variant.info.sourceVersion),
      client: variant.key.variation, hasMoreEffort: true, isBackground: true)
  }

  /// Returns the source that a variant was rendered from, if it is at hand: in the disk tier, or a local file that has
  /// not changed.
  private func source(of variant: Variant, at url: SourceURL) async throws(ImageError)
    -> FileRegion?
  {
    guard url.scheme != .local else { return try await localFile(at: url, of: variant) }
    let stored = await sources.source(for: variant.key.source)
    return stored.flatMap { variant.isRendered(from: $0) ? $0.file : nil }
  }

  /// Returns the local file that a variant was rendered from; `nil` if it is gone or has changed.
  private func localFile(at url: SourceURL, of variant: Variant) async throws(ImageError)
    -> FileRegion?
  {
    do throws(ImageError) {
      guard case .fetched(let download) = try await loader.load(LoadRequest(url: url)) else {
        return nil
      }
      return variant.isRendered(fromVersion: download.version) ? download.file : nil
    } catch {
      switch error.cause {
      case .overloaded, .sourceTimeout, .cancelled: throw error
      default: return nil
      }
    }
  }
}
