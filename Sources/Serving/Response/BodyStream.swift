// BodyStream: an answer whose body comes while it is sent.

import CMicrohttpd
import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// Whoever has the bytes of such a body.
protocol StreamedResponse: AnyObject, Sendable {
  /// Copies what there is from `position` on; never waits. Positions only grow.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead
  /// Has `wake` called, on any thread, whenever a read that gave `notYet` may give something else. Called once, before
  /// the first read.
  func whenReadable(_ wake: @escaping @Sendable () -> Void)
  /// Nothing was read for as long as the stream may wait; tells whether it may go on waiting.
  func mayWaitOn() -> Bool
  /// Whether it is to end as soon as the server is stopping, since it would not end by itself.
  var endsWithServer: Bool { get }
  /// What a read that gave `failed` is in the log.
  var failure: ImageError { get }
  /// Nobody will read on.
  func abandoned()
}

/// A connection that sends a `StreamedResponse`, suspended while there is nothing to send.
final class BodyStream: Suspended, @unchecked Sendable {
  // Sound as Sendable: `connection` is used by its own thread in `read`, and by others only for MHD_resume_connection
  // while it is suspended; `sent` belongs to that thread too; everything else is immutable, Sendable or behind the lock.

  private enum Ending {
    case finished
    case cut(ImageError)
  }

  private struct Guarded {
    var isSuspended = false
    /// A wake-up came while it was not suspended.
    var hasNews = false
    var ending: Ending?
  }

  let number: UInt64
  let descriptor: CInt
  private let body: any StreamedResponse
  private let connection: OpaquePointer
  private let handler: RequestHandler
  private let wakeSignal: WakeSignal
  private let patience: Int
  private let guarded = Lock(Guarded())
  private let patienceEnd = Atomic<Int>(.max)
  /// Bytes of the body that libmicrohttpd was given.
  private(set) var sent = 0
  /// Bytes that libmicrohttpd asks for at a time, and keeps for each stream.
  private static let bufferLength = 32 << 10

  /// A stream on a connection of `client`'s.
  ///
  /// - Parameter patience: milliseconds it may be without anything to send before its body is asked.
  init(
    _ body: any StreamedResponse, on connection: OpaquePointer, of client: Connection,
    handler: RequestHandler, patience: Int
  ) {
    number = handler.watcher.nextNumber()
    descriptor = client.watch.descriptor
    wakeSignal = client.worker.wake
    (self.body, self.connection, self.handler) = (body, connection, handler)
    self.patience = patience
    body.whenReadable { [weak self] in self?.wake() }
  }

  var deadline: Int { patienceEnd.load(ordering: .relaxed) }

  /// Why the rest was not sent; `nil` where that was not decided here.
  var cutReason: ImageError? {
    if case .cut(let reason)? = guarded.withLock({ $0.ending }) { reason } else { nil }
  }

  /// The response that reads this stream; libmicrohttpd releases it with the last of its references.
  ///
  /// - Parameter length: bytes of the whole body; `nil` where nobody knows, and it is sent in chunks.
  func makeResponse(length: Int?) -> OpaquePointer? {
    let retained = Unmanaged.passRetained(self)
    let response = MHD_create_response_from_callback(
      length.map(UInt64.init) ?? .max, Self.bufferLength,
      { context, position, buffer, room in
        // Both are given whenever there is room for a byte.
        guard let context, let buffer else { return -2 }
        return Unmanaged<BodyStream>.fromOpaque(context)._withUnsafeGuaranteedRef { stream in
          stream.read(
            at: Int(position), into: UnsafeMutableRawBufferPointer(start: buffer, count: room))
        }
      }, retained.toOpaque(),
      { context in
        guard let context else { return }
        Unmanaged<BodyStream>.fromOpaque(context).takeRetainedValue().body.abandoned()
      })
    if response == nil { retained.release() }
    return response
  }

  /// libmicrohttpd's content reader: a count, 0 after suspending, −1 at the end, −2 where the rest will not come.
  private func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      switch guarded.withLock({ $0.ending }) {
      case .finished: return -1
      case .cut: return -2
      case nil: break
      }
      switch body.read(at: position, into: buffer) {
      case .bytes(let count):
        sent = position + count
        return count
      case .end: return -1
      case .failed:
        guarded.withLock { $0.ending = .cut(body.failure) }
        return -2
      case .notYet: if suspend() { return 0 }
      }
    }
  }

  /// Suspends the connection until there is something to send; `false`: there may be already.
  private func suspend() -> Bool {
    let isSuspended = guarded.withLock { state in
      if state.hasNews || state.ending != nil {
        state.hasNews = false
        return false
      }
      patienceEnd.store(Clock.coarseMilliseconds() + patience, ordering: .relaxed)
      // All under the lock: whoever wakes it comes before it is suspended, or after it can be resumed.
      guard handler.watcher.addStream(self) else {
        state.ending = body.endsWithServer ? .finished : .cut(.draining)
        return false
      }
      MHD_suspend_connection(connection)
      state.isSuspended = true
      return true
    }
    // Asked once it is in the table: a server that stops later finds it there.
    if isSuspended, handler.isDraining { drain() }
    return isSuspended
  }

  /// There may be something to send.
  private func wake() { resume { $0.hasNews = true } }

  func interrupt(_ reason: Outcome) {
    if case .failure(.deadlineExceeded) = reason, body.mayWaitOn() { return wake() }
    let ending: Ending =
      switch reason {
      case .failure(.draining) where body.endsWithServer: .finished
      case .failure(let error): .cut(error)
      default: .cut(.cancelled)
      }
    resume { $0.ending = $0.ending ?? ending }
  }

  func drain() {
    if body.endsWithServer { resume { $0.ending = .finished } }
  }

  private func resume(_ change: (inout Guarded) -> Void) {
    let wasSuspended = guarded.withLock { state in
      change(&state)
      defer { state.isSuspended = false }
      if state.isSuspended { state.hasNews = false }
      return state.isSuspended
    }
    guard wasSuspended else { return }
    handler.watcher.resume(self, connection, wake: wakeSignal)
  }
}

/// An answer whose body comes while it is sent, as its connection keeps it.
struct Streaming {
  /// The body.
  let stream: BodyStream
  /// The `Cache-Status` header.
  let cacheStatus: String?
}
