// BodyStream: sends a response whose body arrives while it is sent.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// A response body that arrives while it is sent.
protocol StreamedBody: AnyObject, Sendable {
  /// Copies the available bytes from `position`, which never decreases. Never blocks.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead
  /// Sets the callback that runs, on any thread, when a read that returned `notYet` may succeed.
  /// Called once, before the first read.
  func whenReadable(_ wake: @escaping @Sendable () -> Void)
  /// Called when the stream has waited for its time limit. Returns whether it may keep waiting.
  func mayKeepWaiting() -> Bool
  /// Whether the stream ends as soon as the server drains, because it has no end of its own.
  var endsWithServer: Bool { get }
  /// The error that is logged after a read returned `failed`.
  var failure: ImageError { get }
  /// Called when the body is not read any more.
  func ended()
}

/// A connection that sends a `StreamedBody`. The connection is suspended while no bytes are
/// available.
final class BodyStream: Suspended, @unchecked Sendable {
  // Sound as Sendable: `read` uses `connection` on its own thread; other threads use it only for
  // MHD_resume_connection while it is suspended. `sent` and `hasWaited` belong to that thread too.
  // Everything else is immutable, Sendable or behind the lock.

  private enum Ending {
    case finished
    case cut(ImageError)
  }

  private struct Guarded {
    var isSuspended = false
    /// A wake-up arrived while the connection was not suspended.
    var hasNews = false
    var ending: Ending?
  }

  let number: UInt64
  let descriptor: CInt
  private let body: any StreamedBody
  private let connection: OpaquePointer
  private let handler: RequestHandler
  private let wakeSignal: WakeSignal
  private let maximumWait: Int
  private let guarded = Lock(Guarded())
  private let waitEnd = Atomic<Int>(.max)
  /// Body bytes passed to libmicrohttpd.
  private(set) var sent = 0
  /// Whether the connection was suspended.
  private(set) var hasWaited = false
  /// Bytes that libmicrohttpd asks for at a time, and keeps for each stream.
  private static let bufferLength = 32 << 10

  /// Creates a stream on a client's connection.
  ///
  /// - Parameter maximumWait: milliseconds without bytes after which `mayKeepWaiting` is called.
  init(
    _ body: any StreamedBody, on connection: OpaquePointer, of client: Connection,
    handler: RequestHandler, maximumWait: Int
  ) {
    number = handler.monitor.nextNumber()
    descriptor = client.watch.descriptor
    wakeSignal = client.loop.wake
    self.body = body
    self.connection = connection
    self.handler = handler
    self.maximumWait = maximumWait
    body.whenReadable { [weak self] in self?.wake() }
  }

  var deadline: Int { waitEnd.load(ordering: .relaxed) }

  /// The reason why the body was cut off; `nil` if this stream did not cut it off.
  var cutReason: ImageError? {
    if case .cut(let reason)? = guarded.withLock({ $0.ending }) { reason } else { nil }
  }

  /// Creates the response that reads this stream. libmicrohttpd releases the stream with the
  /// response's last reference.
  ///
  /// - Parameter length: bytes of the whole body; `nil` if unknown, and the body is sent in chunks.
  func makeResponse(length: Int?) -> OpaquePointer? {
    let retained = Unmanaged.passRetained(self)
    let response = MHD_create_response_from_callback(
      length.map(UInt64.init) ?? .max, Self.bufferLength,
      { context, position, buffer, room in
        // Both are non-null whenever there is room for a byte.
        guard let context, let buffer else { return -2 }
        return Unmanaged<BodyStream>.fromOpaque(context)._withUnsafeGuaranteedRef { stream in
          stream.read(
            at: Int(position), into: UnsafeMutableRawBufferPointer(start: buffer, count: room))
        }
      }, retained.toOpaque(),
      { context in
        guard let context else { return }
        Unmanaged<BodyStream>.fromOpaque(context).takeRetainedValue().body.ended()
      })
    if response == nil { retained.release() }
    return response
  }

  /// Implements libmicrohttpd's content reader. Returns a byte count, 0 after suspending, −1 at the
  /// end, or −2 on failure.
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

  /// Suspends the connection until bytes are available. Returns `false` if bytes may already be
  /// available.
  private func suspend() -> Bool {
    let isSuspended = guarded.withLock { state in
      if state.hasNews || state.ending != nil {
        state.hasNews = false
        return false
      }
      waitEnd.store(Clock.coarseMilliseconds() + maximumWait, ordering: .relaxed)
      // All under the lock, so that a wake-up arrives before the suspension or after a resumption
      // is possible.
      guard handler.monitor.addStream(self) else {
        state.ending = body.endsWithServer ? .finished : .cut(.draining)
        return false
      }
      MHD_suspend_connection(connection)
      state.isSuspended = true
      hasWaited = true
      return true
    }
    // Checked after `addStream`: a drain that begins later finds the stream in the table.
    if isSuspended, handler.isDraining { drain() }
    return isSuspended
  }

  /// Called when bytes may be available.
  private func wake() { resume { $0.hasNews = true } }

  func interrupt(_ reason: Outcome) {
    if case .failure(.deadlineExceeded) = reason, body.mayKeepWaiting() { return wake() }
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
    handler.monitor.resume(self, on: connection, wake: wakeSignal)
  }
}

/// A streamed response, as its connection stores it.
struct Streaming {
  let stream: BodyStream
  let cacheStatus: String?
  var status = 200
  /// What the body is sent in place of, if it is a fallback image, and the fallback's name.
  var failure: (error: ImageError, name: String)?
}

/// Reads a `StreamingDelivery` for a `BodyStream`.
final class StreamedImage: StreamedBody {
  private let delivery: StreamingDelivery
  private let observation = Lock<Observation?>(nil)

  let endsWithServer = false
  let failure = ImageError.sourceIncomplete(detail: "it was being sent already")

  init(_ delivery: StreamingDelivery) { self.delivery = delivery }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    delivery.body.read(at: position, into: buffer)
  }

  func whenReadable(_ wake: @escaping @Sendable () -> Void) {
    let observation = delivery.body.observe(wake)
    self.observation.withLock { $0 = observation }
  }

  /// Returns `false`: the wait already took as long as a request may.
  func mayKeepWaiting() -> Bool { false }

  func ended() {
    _ = observation.withLock { $0.take() }
    delivery.end()
  }
}
