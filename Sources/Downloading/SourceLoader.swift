// SourceLoader: selects the loader for each kind of source, loads local files, and probes.

import Core
import Glibc

/// Passes each load to the loader of its URL's scheme.
public struct SourceLoader: ImageLoader {
  private let remote: Downloader
  private let local: Lock<LocalFiles>

  /// Creates a loader that uses `remote` for `http`, `https` and `s3`, and `local` for `local`.
  public init(remote: Downloader, local: LocalFiles) {
    self.remote = remote
    self.local = Lock(local)
  }

  /// Applies the folder, the limit of bytes and the lifetime of local files to loads that start
  /// from now on.
  public func apply(_ wanted: LocalFiles) { local.withLock { $0.take(settingsOf: wanted) } }

  /// See `Downloader.load` and `LocalFiles.load`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    switch request.url.scheme {
    case .http, .https, .s3: try await remote.load(request)
    case .local: try await local.withLock({ $0 }).load(request)
    case .body: try local.withLock { $0 }.take(request)
    }
  }

  /// See `Downloader.outlook`. A source without an origin has none.
  public func outlook(for url: SourceURL) async -> LoadOutlook? {
    url.scheme.hasOrigin ? await remote.outlook(for: url) : nil
  }
}

/// Opens regular files below one folder, but no devices, pipes, hidden files or files outside it.
///
/// Walks the path component by component from the root's descriptor and never follows symbolic
/// links. A link that is swapped in during the walk therefore cannot lead outside. The root itself
/// may be a link. Files are opened on separate threads, because a network file system may not
/// respond.
public struct LocalFiles: ImageLoader {
  private var root: String?
  private var maximumBytes: Int
  private var lifetime: Int
  private var bodyLifetime: Int
  private var threads: BlockingThreads

  /// Creates a loader.
  ///
  /// - Parameters:
  ///   - root: the folder; `nil` refuses every load.
  ///   - maximumBytes: maximum size of a file, in bytes.
  ///   - lifetime: the freshness lifetime of a file, in seconds.
  ///   - bodyLifetime: the same of a source that came with its request; 0: it is not stored.
  ///   - threads: the threads that open files.
  public init(
    root: String?, maximumBytes: Int = DownloadSettings().maximumBytes, lifetime: Int,
    bodyLifetime: Int = 0,
    threads: BlockingThreads = BlockingThreads(name: "pictor-local")
  ) {
    self.root = root
    self.maximumBytes = maximumBytes
    self.lifetime = lifetime
    self.bodyLifetime = bodyLifetime
    self.threads = threads
  }

  /// Takes over the folder and the limits of another loader. The threads stay.
  mutating func take(settingsOf other: LocalFiles) {
    let threads = threads
    self = other
    self.threads = threads
  }

  /// Takes a source that came with its request. Equal bytes have equal versions.
  ///
  /// - Throws: `notCached` for work after its request, whose stored source is gone;
  ///   `unsupportedFormat` for a body without bytes.
  func take(_ request: LoadRequest) throws(ImageError) -> LoadResult {
    guard let body = request.body else { throw .notCached }
    guard body.count > 0 else { throw .unsupportedFormat(detail: "empty file") }
    var answer = OriginResponse(status: 200)
    answer.etag = request.url.text
    answer.cacheControl = bodyLifetime > 0 ? "max-age=\(bodyLifetime)" : "no-store"
    let version = Self.version(of: answer)
    // Not a validator: the client has no use for it.
    answer.etag = nil
    return .fetched(Download(file: body, origin: answer, timings: Timings(), version: version))
  }

  /// Opens the file without copying its bytes. Ignores validators: local sources are not cached,
  /// and opening a file costs as little as checking it.
  ///
  /// - Throws:
  ///   - `forbiddenSource`: no root is configured, or the URL is not `local`.
  ///   - `sourceNotFound(status: 404)`: absent, unreadable, hidden, outside the root, behind a
  ///     link, or not a regular file. A file or folder is hidden if its name begins with a dot.
  ///   - `sourceTooLarge`, `cancelled`.
  ///   - `unsupportedFormat`: the file is empty.
  ///   - `sourceTimeout`: the disk does not respond.
  ///   - `overloaded`: too many loads wait for the disk.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    let url = request.url
    guard let root else {
      throw .forbiddenSource(
        reason: "local sources are disabled", detail: url.text, key: "sources.local_root")
    }
    guard url.scheme == .local else {
      throw .forbiddenSource(reason: "its scheme is not local", detail: url.text)
    }
    guard !Task.isCancelled else { throw .cancelled }
    let opened: Result<LoadResult, ImageError>
    do throws(BlockingFailure) {
      opened = try await threads.value { [self, path = url.path] in
        Result { () throws(ImageError) in try load(path, below: root) }
      }
    } catch {
      switch error {
      case .late: throw .sourceTimeout(detail: "reading the local file exceeded its deadline")
      case .full: throw .overloaded(queue: "local files", retryAfter: 1)
      }
    }
    guard !Task.isCancelled else { throw .cancelled }
    return try opened.get()
  }

  /// Opens a file. Blocks on the disk.
  private func load(_ path: String, below root: String) throws(ImageError) -> LoadResult {
    let descriptor = OwnedDescriptor(owning: try Self.open(path, below: root))
    var status = stat()
    guard fstat(descriptor.value, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw .sourceNotFound(status: 404)
    }
    let file = FileRegion(owning: descriptor.release(), count: Int(status.st_size))
    guard file.count <= maximumBytes else { throw .sourceTooLarge(limit: maximumBytes) }
    guard file.count > 0 else { throw .unsupportedFormat(detail: "empty file") }
    let answer = answer(for: status)
    return .fetched(
      Download(file: file, origin: answer, timings: Timings(), version: Self.version(of: answer)))
  }

  /// Returns the response that an HTTP server would send for the file.
  private func answer(for status: stat) -> OriginResponse {
    let modified = status.st_mtim
    var answer = OriginResponse(status: 200)
    answer.lastModified = HTTPDate.text(of: UnixTime(seconds: modified.tv_sec))
    answer.etag =
      "\"" + String(modified.tv_sec, radix: 16) + "." + String(modified.tv_nsec, radix: 16) + "-"
      + String(status.st_size, radix: 16) + "\""
    answer.cacheControl = "max-age=\(lifetime)"
    return answer
  }

  /// Returns a version that changes with the entity tag, so that variants of an unchanged file stay
  /// valid. FNV-1a, 64 bits.
  private static func version(of answer: OriginResponse) -> UInt64 {
    let hash = (answer.etag ?? "").utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01b3
    }
    return max(hash, 1)
  }

  private static func open(_ path: String, below root: String) throws(ImageError) -> CInt {
    let components = path.split(separator: "/")
    // Hidden files hold settings and secrets (`.env`, `.git`), and no images. Covers `.` and `..`.
    guard let name = components.last, !components.contains(where: { $0.hasPrefix(".") }),
      !path.utf8.contains(0)
    else {
      throw .sourceNotFound(status: 404)
    }
    let folderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
    var folder = OwnedDescriptor(owning: Glibc.open(root, folderFlags))
    for component in components.dropLast() where folder.value >= 0 {
      folder = OwnedDescriptor(
        owning: openat(folder.value, String(component), folderFlags | O_NOFOLLOW))
    }
    guard folder.value >= 0 else { throw .sourceNotFound(status: 404) }
    // O_NONBLOCK: opening a named pipe would block until its other end opens. No effect on regular
    // files.
    let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let descriptor = openat(folder.value, String(name), flags)
    guard descriptor >= 0 else { throw .sourceNotFound(status: 404) }
    return descriptor
  }
}

/// Runs loads up to the moment in which they would open a socket or a file has been opened. Names
/// are resolved; nothing is sent to any source.
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
  ///   - configuration: the downloader's configuration. Retries and circuit breakers are turned
  ///     off.
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

/// A downloader's settings for the self-test: each load runs as always, up to the moment in which a
/// socket would be opened.
struct DryRun: Sendable {
  /// Returns the `Location` of a redirect that a load begins with, as if an origin that may be
  /// loaded had sent it; `nil` for none.
  let location: @Sendable () -> String?
  /// Receives each endpoint that a load would connect to.
  let report: @Sendable (String) -> Void
}
