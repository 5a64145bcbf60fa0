// SourceProbe: tells whether a configuration lets a source be loaded, without connecting to it.

import Model
import Platform
import Telemetry

/// Runs loads up to the moment in which they would open a socket or a file has been opened. Names are
/// resolved; nothing is sent to any source.
public final class SourceProbe: Sendable {
  /// What a configuration does with a source.
  public enum Finding: Hashable, Sendable {
    /// It would be loaded; the text says from where.
    case open(String)
    /// It is refused.
    case refused(ImageError)
  }

  private let loader: SourceLoader
  private let origin: RedirectingOrigin
  private let endpoints: Lock<[String]>

  /// Creates a probe.
  ///
  /// - Parameters:
  ///   - configuration: the downloader's configuration. Retries and circuit breakers are turned off.
  ///   - local: the loader of local files.
  ///   - own: the server's own listening addresses.
  /// - Throws: `ImageError.internal` without a thread or a port on loopback.
  public init(
    _ configuration: DownloaderConfiguration, local: LocalFiles, own: [ListenAddress]
  ) throws(ImageError) {
    do throws(SystemError) {
      origin = try RedirectingOrigin()
    } catch {
      throw .internal(detail: "no port on 127.0.0.1 for the self-test: \(error)")
    }
    let endpoints = Lock<[String]>([])
    self.endpoints = endpoints
    var configuration = configuration
    configuration.retries = 0
    configuration.breakerThreshold = 0
    configuration.dryRun = DryRun(originPort: origin.port) { endpoint in
      endpoints.withLock { $0.append(endpoint) }
    }
    let remote = try Downloader(configuration: configuration, log: .silent)
    remote.refuse(own: own)
    loader = SourceLoader(remote: remote, local: local)
  }

  /// Probes a source, or a redirect to it from a source that may be loaded. One call at a time.
  public func finding(for source: String, isRedirect: Bool) async -> Finding {
    endpoints.withLock { $0 = [] }
    do throws(ImageError) {
      let url = try SourceURL(parsing: isRedirect ? origin.url(redirectingTo: source) : source)
      _ = try await loader.load(LoadRequest(url: url))
      return .open("is loaded")
    } catch {
      let endpoint = endpoints.withLock { $0.first }
      return endpoint.map { .open("would connect to \($0)") } ?? .refused(error)
    }
  }
}
