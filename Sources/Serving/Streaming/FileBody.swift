// FileBody: sends a file on disk without an event loop waiting for the disk.

import Core
import Glibc

/// Reads a file for a `BodyStream`: what the page cache has at once, the rest on threads that may
/// wait for the disk, one piece after the other.
///
/// sendfile(2) would copy once less, and waits for the disk wherever a page is not cached: a
/// stalled disk would stop an event loop with all its hits.
final class FileBody: StreamedBody {
  private enum Piece {
    case none
    case loading
    case loaded(ImageBytes, position: Int)
    case failed
  }

  private struct State {
    var piece = Piece.none
    var wake: (@Sendable () -> Void)?
  }

  /// Bytes that a thread reads at a time.
  static let pieceLength = 256 << 10

  let endsWithServer = false
  let failure = ImageError.internal(detail: "the rest of a file could not be read in time")
  private let region: FileRegion
  private let access: FileAccess
  private let threads: BlockingThreads
  private let state = Lock(State())

  /// Creates a body of the file's region. `threads` read what the page cache does not have.
  init(_ region: FileRegion, access: FileAccess, threads: BlockingThreads) {
    self.region = region
    self.access = access
    self.threads = threads
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    guard position < region.count else { return .end }
    let wanted = UnsafeMutableRawBufferPointer(
      rebasing: buffer[..<min(buffer.count, region.count - position)])
    if let known = state.withLock({ Self.take(&$0, at: position, into: wanted) }) { return known }
    while true {
      let count = access.readAtOnce(region.descriptor, wanted, region.offset + position)
      if count > 0 { return .bytes(count) }
      if count < 0 && errno == EINTR { continue }
      // A truncated file, or a disk error. Any other error means that the page is not cached, or
      // that this kernel or file system cannot tell.
      guard count < 0, errno != EIO else { return .failed }
      load(from: position)
      return .notYet
    }
  }

  /// Reads from the loaded piece. Returns `nil` if it does not contain `position`.
  private static func take(
    _ state: inout State, at position: Int, into buffer: UnsafeMutableRawBufferPointer
  ) -> PartialRead? {
    switch state.piece {
    case .none: return nil
    case .loading: return .notYet
    case .failed: return .failed
    case .loaded(let bytes, let start):
      let offset = position - start
      guard (0..<bytes.count).contains(offset) else {
        state.piece = .none
        return nil
      }
      let count = min(buffer.count, bytes.count - offset)
      buffer.copyMemory(
        from: UnsafeRawBufferPointer(start: bytes.baseAddress + offset, count: count))
      if offset + count == bytes.count { state.piece = .none }
      return .bytes(count)
    }
  }

  /// Loads the piece that begins at `position` on a thread.
  private func load(from position: Int) {
    state.withLock { $0.piece = .loading }
    let count = min(Self.pieceLength, region.count - position)
    Task.detached { [self] in
      TaskThreads.takeRank()
      let bytes = try? await threads.value { [region, access] in
        Self.bytes(of: region, from: position, count: count, access)
      }
      let wake = state.withLock { state in
        state.piece = (bytes ?? nil).map { .loaded($0, position: position) } ?? .failed
        return state.wake
      }
      wake?()
    }
  }

  private static func bytes(
    of region: FileRegion, from position: Int, count: Int, _ access: FileAccess
  ) -> ImageBytes? {
    withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { buffer in
      while true {
        let read = access.read(region.descriptor, buffer, region.offset + position)
        if read < 0 && errno == EINTR { continue }
        guard read > 0 else { return nil }
        return ImageBytes(copying: UnsafeRawBufferPointer(rebasing: buffer[..<read]))
      }
    }
  }

  func whenReadable(_ wake: @escaping @Sendable () -> Void) {
    state.withLock { $0.wake = wake }
  }

  /// Returns `false`: a read that takes so long ends the response.
  func mayKeepWaiting() -> Bool { false }

  func ended() { state.withLock { $0.wake = nil } }
}
