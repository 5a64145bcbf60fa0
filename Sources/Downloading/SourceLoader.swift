// SourceLoader: selects the loader for each kind of source.

import Model

/// Passes each load to the loader of its URL's scheme.
public struct SourceLoader: ImageLoader {
  private let remote: Downloader
  private let local: LocalFiles

  /// Creates a loader that uses `remote` for `http`, `https` and `s3`, and `local` for `local`.
  public init(remote: Downloader, local: LocalFiles) {
    self.remote = remote
    self.local = local
  }

  /// See `Downloader.load` and `LocalFiles.load`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    switch request.url.scheme {
    case .http, .https, .s3: try await remote.load(request)
    case .local: try await local.load(request)
    }
  }

  /// See `Downloader.outlook`. A local file has none.
  public func outlook(for url: SourceURL) async -> LoadOutlook? {
    url.scheme == .local ? nil : await remote.outlook(for: url)
  }
}
