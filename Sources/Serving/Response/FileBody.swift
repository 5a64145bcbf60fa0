// FileBody: the body of an answer in a file on disk, sent without an event loop waiting for that disk.

import CMicrohttpd
import Glibc
import Model
import Platform
import Telemetry

/// Reads a file for a `BodyStream`: what the page cache has at once, the rest on threads that may wait for the disk, a
/// piece at a time.
///
/// sendfile(2) would copy once less, and waits for the disk wherever a page is not cached: a stalled disk would stop an
/// event loop with all its hits.
final class FileBody: StreamedResponse {
  private enum Piece {
    case none
    /// A thread reads it.
    case coming
    case here(ImageBytes, position: Int)
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

  /// The body in `region`; what is not cached is read on `threads`.
  init(_ region: FileRegion, _ access: FileAccess, threads: BlockingThreads) {
    (self.region, self.access, self.threads) = (region, access, threads)
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    guard position < region.count else { return .end }
    let wanted = UnsafeMutableRawBufferPointer(
      rebasing: buffer[..<min(buffer.count, region.count - position)])
    if let known = state.withLock({ Self.take(&$0, position, wanted) }) { return known }
    while true {
      let count = access.readAtOnce(region.descriptor, wanted, region.offset + position)
      if count > 0 { return .bytes(count) }
      if count < 0 && errno == EINTR { continue }
      // Shorter than it was, or an error of the disk's; anything else says that the disk has to be asked, or that this
      // kernel or file system cannot tell.
      guard count < 0, errno != EIO else { return .failed }
      load(from: position)
      return .notYet
    }
  }

  /// What the piece has for `position`; `nil` where there is none, or it is used up.
  private static func take(
    _ state: inout State, _ position: Int, _ buffer: UnsafeMutableRawBufferPointer
  ) -> PartialRead? {
    switch state.piece {
    case .none: return nil
    case .coming: return .notYet
    case .failed: return .failed
    case .here(let bytes, let start):
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

  /// Has a thread read the piece that begins at `position`.
  private func load(from position: Int) {
    state.withLock { $0.piece = .coming }
    let count = min(Self.pieceLength, region.count - position)
    Task.detached { [self] in
      let bytes = try? await threads.value { [region, access] in
        Self.bytes(of: region, from: position, count: count, access)
      }
      let wake = state.withLock { state in
        state.piece = (bytes ?? nil).map { .here($0, position: position) } ?? .failed
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

  /// A read has a deadline of its own, which ends the answer.
  func mayWaitOn() -> Bool { false }

  func abandoned() { state.withLock { $0.wake = nil } }
}

extension RequestContext {
  /// Answers 200 with a file on disk; the connection is cut where the file's rest cannot be read in time.
  ///
  /// - Throws: `internal` where memory is missing.
  func send(
    _ region: FileRegion, _ head: ResponseHead, _ cacheStatus: CacheStatus
  ) throws(ImageError) -> MHD_Result {
    let configuration = handler.configuration
    let stream = BodyStream(
      FileBody(region, configuration.fileAccess, threads: handler.files), on: connection,
      of: client, handler: handler, patience: configuration.requestTimeout.wholeMilliseconds)
    let response = try Response(
      head: head, style: configuration.headStyle, stream: stream, length: region.count,
      closes: handler.isDraining)
    // Logged when it was sent, with what was sent of it.
    client.streaming = Streaming(stream: stream, cacheStatus: cacheStatus.headerValue)
    return queue(response, status: 200, bytes: region.count)
  }
}
