// PreparedResponse: what a server makes once of a variant in memory, so that the second hit makes nothing.

import Model

/// One response a worker, all over the same body bytes.
///
/// Each worker has its own, because a head is made current in place (`Response`) and only its own thread may do that.
/// A response costs about a kilobyte, and is made at a worker's first hit.
final class PreparedResponse: PreparedAnswer, @unchecked Sendable {
  // Sound as Sendable: place `n` is touched on worker n's thread alone; `deinit` runs when nobody else is left.

  /// The server it was made by; another one's workers have the same indices and other threads.
  let owner: UInt64
  private let places: UnsafeMutableBufferPointer<Response?>

  /// Room for so many workers.
  init(owner: UInt64, workers: Int) {
    self.owner = owner
    places = .allocate(capacity: workers)
    places.initialize(repeating: nil)
  }

  deinit {
    places.deinitialize()
    places.deallocate()
  }

  /// This worker's response; `nil` where there is none whose age, `max-age` and id are so long.
  func response(of worker: EventLoopState, _ widths: HitAges.Widths) -> Response? {
    guard let response = places[worker.index], response.fits(widths) else { return nil }
    return response
  }

  /// Keeps this worker's response in place of the one there was.
  func keep(_ response: Response, for worker: EventLoopState) { places[worker.index] = response }
}
