// StreamingHead: waits for the head of an arriving image, and checks whether it needs processing.

import Core

/// The state of an image whose head is arriving.
final class StreamingHead: Sendable {
  private struct State {
    var body: FlightBody?
    var size: PixelSize?
    var isOver = false
  }

  private let state = Lock(State())
  private let changes: AsyncStream<Void>
  private let signal: AsyncStream<Void>.Continuation

  init() {
    (changes, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// The body and the image's size, if the image needs no processing.
  var plain: (body: FlightBody, size: PixelSize)? {
    state.withLock { state in
      guard let body = state.body, let size = state.size else { return nil }
      return (body, size)
    }
  }

  /// Records that a body begins to arrive.
  func begin(_ body: FlightBody) {
    state.withLock { $0.body = body }
    signal.yield()
  }

  /// Records that the load has ended, with or without a body.
  func end() {
    state.withLock { $0.isOver = true }
    signal.yield()
  }

  /// Waits until the head is decisive, the load ends, or the task is cancelled.
  func wait(for format: ImageFormat) async {
    var observation: Observation?
    for await _ in changes {
      let (current, isOver) = state.withLock { ($0.body, $0.isOver) }
      if let body = current?.body {
        if observation == nil {
          observation = body.observe { [signal] in signal.yield() }
        }
        switch Self.check(body, format: format) {
        case .incomplete: break
        case .needsWork: return
        case .plain(let size): return state.withLock { $0.size = size }
        }
      }
      if isOver { return }
    }
    withExtendedLifetime(observation) {}
  }

  private static func check(
    _ body: any StreamingBody, format: ImageFormat
  ) -> PassThroughCheck {
    withUnsafeTemporaryAllocation(byteCount: PassThroughCheck.limit, alignment: 1) { buffer in
      var count = 0
      while count < buffer.count,
        case .bytes(let more) = body.read(
          at: count, into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
      { count += more }
      return PassThroughCheck.read(UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: format)
    }
  }
}
