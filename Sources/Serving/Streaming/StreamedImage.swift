// StreamedImage: the body of an image that is still being received.

import Model
import Platform

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
