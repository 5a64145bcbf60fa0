// LocalFiles: sources below a folder of this machine, `local:///path`.

import Glibc
import Model
import Platform

/// Opens regular files below one folder, and nothing else: no file outside of it, no device, no pipe.
///
/// The path is walked one component after the other from the root's descriptor, and a symbolic link on the way is not
/// followed, wherever it points: so there is no moment in which a link swapped in could lead outside. The root itself
/// may be a link. Opening is done on threads of its own, since a folder of another machine may not answer.
public struct LocalFiles: ImageLoader {
  private let root: String?
  private let maximumBytes: Int
  private let lifetime: Int
  private let threads: BlockingThreads

  /// - Parameters:
  ///   - root: the folder; `nil`: every load is refused.
  ///   - maximumBytes: most bytes of one file.
  ///   - lifetime: for how many seconds a file's image is fresh.
  ///   - threads: where files are opened.
  public init(
    root: String?, maximumBytes: Int = 64 << 20, lifetime: Int,
    threads: BlockingThreads = BlockingThreads(name: "pictor-local")
  ) {
    (self.root, self.maximumBytes, self.lifetime) = (root, maximumBytes, lifetime)
    self.threads = threads
  }

  /// Opens the file; its bytes are not copied. Validators are passed over: local sources are kept nowhere, and opening
  /// one costs as little as looking whether it changed.
  ///
  /// - Throws: `forbiddenSource` when there is no root or the URL is not `local`; `sourceNotFound(status: 404)` for what
  ///   is absent, not readable, outside of the root, behind a link, or no regular file; `sourceTooLarge`;
  ///   `unsupportedFormat` for an empty file; `sourceTimeout` where the disk does not answer, `overloaded` where too many
  ///   wait for it; `cancelled`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    let url = request.url
    guard let root else {
      throw .forbiddenSource(
        reason: "local sources are turned off", detail: url.text, key: "sources.local_root")
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
      case .late: throw .sourceTimeout(detail: "the disk with the local files does not answer")
      case .full: throw .overloaded(queue: "local files", retryAfter: 1)
      }
    }
    guard !Task.isCancelled else { throw .cancelled }
    return try opened.get()
  }

  /// Opens a file. Waits for the disk.
  private func load(_ path: String, below root: String) throws(ImageError) -> LoadResult {
    let descriptor = try Self.open(path, below: root)
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw .sourceNotFound(status: 404)
    }
    // From here on the region closes the descriptor.
    let file = FileRegion(owning: descriptor, count: Int(status.st_size))
    guard file.count <= maximumBytes else { throw .sourceTooLarge(limit: maximumBytes) }
    guard file.count > 0 else { throw .unsupportedFormat(detail: "empty file") }
    let answer = answer(for: status)
    return .fetched(
      Download(file: file, origin: answer, timings: Timings(), version: Self.version(of: answer)))
  }

  /// What an HTTP server would say of the file.
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

  /// The same for the same bytes, as far as the entity tag tells: what was made of a file that did not change stays right.
  /// FNV-1a, 64 bits.
  private static func version(of answer: OriginResponse) -> UInt64 {
    let hash = (answer.etag ?? "").utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01b3
    }
    return max(hash, 1)
  }

  private static func open(_ path: String, below root: String) throws(ImageError) -> CInt {
    let components = path.split(separator: "/")
    guard let name = components.last, !components.contains(".."), !path.utf8.contains(0) else {
      throw .sourceNotFound(status: 404)
    }
    var folder = Glibc.open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    for component in components.dropLast() where folder >= 0 {
      let next = openat(folder, String(component), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
      close(folder)
      folder = next
    }
    guard folder >= 0 else { throw .sourceNotFound(status: 404) }
    defer { close(folder) }
    // O_NONBLOCK: opening a named pipe would otherwise wait for its other end. It means nothing to regular files.
    let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let descriptor = openat(folder, String(name), flags)
    guard descriptor >= 0 else { throw .sourceNotFound(status: 404) }
    return descriptor
  }
}
