// DownloadBuffer: a body that others read while it comes in.

import Glibc
import Model
import Platform

/// The memory file of a transfer as its readers have it: a descriptor of their own, and how far it may be read. Written
/// by the transfer thread, read by any.
final class DownloadBuffer: StreamingBody {
  private struct State {
    var count = 0
    /// Whether it is whole; `nil` while it comes in.
    var isWhole: Bool?
  }

  let origin: OriginResponse
  let expected: Int?
  let version = UInt64.random(in: 1...(.max))
  private let file: OwnedDescriptor
  private let state = Lock(State())
  private let observers = Observers<Void>()

  /// - Parameter descriptor: of the file that is being filled; a duplicate is kept.
  init(reading descriptor: CInt, origin: OriginResponse, expected: Int?) throws(SystemError) {
    let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { throw SystemError() }
    file = OwnedDescriptor(owning: duplicate)
    (self.origin, self.expected) = (origin, expected)
  }

  var isComplete: Bool {
    state.withLock { $0.isWhole ?? ($0.count == expected) }
  }

  /// So many bytes are in the file.
  func grow(to count: Int) {
    state.withLock { $0.count = count }
    observers.tell(())
  }

  /// Nothing more comes. The first word counts.
  func end(isWhole: Bool) {
    let isFirst = state.withLock { state in
      defer { state.isWhole = state.isWhole ?? isWhole }
      return state.isWhole == nil
    }
    if isFirst { observers.tell(()) }
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
