// PreparedResponse: the responses that are prepared once for a variant in memory.

import Model

/// Four responses per event loop, all with the same body bytes: for URLs that expire and for
/// others, for URLs that follow client hints and for others.
///
/// The head is updated in place (`Response`), which only the event loop's own thread may do. An
/// event loop creates a response at its first hit.
final class PreparedResponse: PreparedAnswer, @unchecked Sendable {
  // Sound as Sendable: slots `4n` to `4n + 3` and `policies[n]` are used on event loop `n`'s thread
  // only, and `deinit` runs without other references.

  /// The server that created the responses. The event loops of another server have the same indices
  /// but other threads.
  let owner: UInt64
  private let places: UnsafeMutableBufferPointer<Response?>
  /// Per event loop, the number of the policy that its responses were created under.
  private let policies: UnsafeMutableBufferPointer<UInt64>

  /// Creates slots for the event loops.
  init(owner: UInt64, loops: Int) {
    self.owner = owner
    places = .allocate(capacity: 4 * loops)
    places.initialize(repeating: nil)
    policies = .allocate(capacity: loops)
    policies.initialize(repeating: 0)
  }

  deinit {
    places.deinitialize()
    places.deallocate()
    policies.deallocate()
  }

  /// Drops this event loop's responses, if they were created under another policy.
  func renew(for loop: EventLoopState, policy: UInt64) {
    guard policies[loop.index] != policy else { return }
    policies[loop.index] = policy
    for place in 4 * loop.index..<4 * loop.index + 4 { places[place] = nil }
  }

  /// Returns this event loop's response; `nil` if there is none with fields of these lengths.
  func response(of loop: EventLoopState, widths: HitFields.Widths) -> Response? {
    guard let response = places[Self.place(of: loop, widths: widths)], response.fits(widths) else {
      return nil
    }
    return response
  }

  /// Stores this event loop's response and replaces the previous one.
  func keep(_ response: Response, for loop: EventLoopState, widths: HitFields.Widths) {
    places[Self.place(of: loop, widths: widths)] = response
  }

  private static func place(of loop: EventLoopState, widths: HitFields.Widths) -> Int {
    4 * loop.index + (widths.isExpiring ? 1 : 0) + (widths.hints == 0 ? 0 : 2)
  }
}
