// DownloadBuffer: a body that others read while it is being received.

import Glibc
import Model
import Platform

/// A reader's view of a transfer's memory file: its own descriptor, and the readable length. The
/// transfer thread writes it and any thread reads it.
final class DownloadBuffer: StreamingBody {
  private struct State {
    var count = 0
    /// Whether the body is complete; `nil` while it is being received.
    var isWhole: Bool?
    /// What the bytes count against, as long as they can be read.
    var lease: ByteLease?
  }

  let origin: OriginResponse
  let expected: Int?
  let version = UInt64.random(in: 1...(.max))
  private let file: OwnedDescriptor
  private let state = Lock(State())
  private let observers = Observers<Void>()

  /// Creates a view.
  ///
  /// - Parameters:
  ///   - descriptor: the file that is being filled; a duplicate is kept.
  ///   - origin: the response head.
  ///   - expected: bytes of the whole body; `nil` if unknown.
  init(reading descriptor: CInt, origin: OriginResponse, expected: Int?) throws(SystemError) {
    let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { throw SystemError() }
    file = OwnedDescriptor(owning: duplicate)
    self.origin = origin
    self.expected = expected
  }

  var isComplete: Bool {
    state.withLock { $0.isWhole ?? ($0.count == expected) }
  }

  /// Keeps the lease of the bytes as long as this view.
  func hold(_ lease: ByteLease) { state.withLock { $0.lease = lease } }

  /// Records that `count` bytes are in the file, and notifies the readers.
  func grow(to count: Int) {
    state.withLock { $0.count = count }
    observers.tell(())
  }

  /// Ends the body. Later calls have no effect.
  func end(isWhole: Bool) {
    let isFirst = state.withLock { state in
      defer { state.isWhole = state.isWhole ?? isWhole }
      return state.isWhole == nil
    }
    if isFirst { observers.tell(()) }
  }

  /// Returns bytes of the file, also such that readers do not have yet; fewer at its end.
  func bytes(at position: Int, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
      used = max(pread(file.value, buffer.baseAddress, count, position), 0)
    }
  }

  /// Bytes in the file.
  var fileSize: Int {
    var status = stat()
    return fstat(file.value, &status) == 0 ? Int(status.st_size) : 0
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    let (count, isWhole) = state.withLock { ($0.count, $0.isWhole) }
    guard position < count else {
      return switch isWhole {
      case nil: .notYet
      case true?: .end
      case false?: .failed
      }
    }
    while true {
      let read = pread(
        file.value, buffer.baseAddress, min(buffer.count, count - position), position)
      if read < 0, errno == EINTR { continue }
      return read > 0 ? .bytes(read) : .failed
    }
  }

  func observe(_ observer: @escaping @Sendable () -> Void) -> Observation {
    observers.add { _ in observer() }
  }
}
