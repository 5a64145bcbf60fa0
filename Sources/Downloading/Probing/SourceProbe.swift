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

  /// The redirect that the next load begins with, and what it would connect to.
  private struct State {
    var location: String?
    var endpoint: String?
  }

  private let loader: SourceLoader
  private let state: Lock<State>

  /// Creates a probe.
  ///
  /// - Parameters:
  ///   - configuration: the downloader's configuration. Retries and circuit breakers are turned off.
  ///   - local: the loader of local files.
  ///   - own: the server's own listening addresses.
  /// - Throws: `ImageError.internal` without a thread.
  public init(
    _ configuration: DownloaderConfiguration, local: LocalFiles, own: [ListenAddress]
  ) throws(ImageError) {
    let state = Lock(State())
    self.state = state
    var configuration = configuration
    configuration.retries = 0
    configuration.breakerThreshold = 0
    configuration.dryRun = DryRun(
      location: { state.withLock { $0.location } },
      report: { endpoint in state.withLock { $0.endpoint = $0.endpoint ?? endpoint } })
    let remote = try Downloader(configuration: configuration, log: .silent)
    remote.refuse(own: own)
    loader = SourceLoader(remote: remote, local: local)
  }

  /// Probes a source, or a redirect to it from a source that may be loaded. One call at a time.
  public func finding(for source: String, isRedirect: Bool) async -> Finding {
    state.withLock { $0 = State(location: isRedirect ? source : nil) }
    do throws(ImageError) {
      let url = try SourceURL(parsing: isRedirect ? "http://redirecting.example/" : source)
      _ = try await loader.load(LoadRequest(url: url))
      return .open("is loaded")
    } catch {
      let endpoint = state.withLock { $0.endpoint }
      return endpoint.map { .open("would connect to \($0)") } ?? .refused(error)
    }
  }
}
