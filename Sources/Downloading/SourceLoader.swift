// SourceLoader: every kind of source behind one loader.

import Model

/// Sends a load to whoever knows its scheme.
public struct SourceLoader: ImageLoader {
  private let remote: Downloader
  private let local: LocalFiles

  /// `http` and `https` go to `remote`, `local` goes to `local`.
  public init(remote: Downloader, local: LocalFiles) {
    (self.remote, self.local) = (remote, local)
  }

  /// See `Downloader.load` and `LocalFiles.load`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    switch request.url.scheme {
    case .http, .https: try await remote.load(request)
    case .local: try await local.load(request)
    }
  }
}
