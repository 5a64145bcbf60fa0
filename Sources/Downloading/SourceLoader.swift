// SourceLoader: selects the loader for each kind of source.

import Model
import Platform

/// Passes each load to the loader of its URL's scheme.
public struct SourceLoader: ImageLoader {
  private let remote: Downloader
  private let local: Lock<LocalFiles>

  /// Creates a loader that uses `remote` for `http`, `https` and `s3`, and `local` for `local`.
  public init(remote: Downloader, local: LocalFiles) {
    self.remote = remote
    self.local = Lock(local)
  }

  /// Applies the folder, the limit of bytes and the lifetime of local files to loads that start from now on.
  public func apply(_ wanted: LocalFiles) { local.withLock { $0.take(settingsOf: wanted) } }

  /// See `Downloader.load` and `LocalFiles.load`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    switch request.url.scheme {
    case .http, .https, .s3: try await remote.load(request)
    case .local: try await local.withLock({ $0 }).load(request)
    }
  }

  /// See `Downloader.outlook`. A local file has none.
  public func outlook(for url: SourceURL) async -> LoadOutlook? {
    url.scheme == .local ? nil : await remote.outlook(for: url)
  }
}
