// PreparedHead: the fields that the responses of a shared delivery have in common.

import Model

/// What the responses of a delivery have in common on one event loop: the fields that do not vary between clients and
/// moments, and the last response. Belongs to the loop's thread.
final class ImageFields {
  /// `Server-Timing` up to the value of `total`, as it is sent.
  let timings: [UInt8]
  /// The fields after `Age` and `Cache-Control`, as they are sent.
  let others: [UInt8]
  /// The value of `Cache-Status`.
  let cacheStatus: String
  private var last: Response?

  init(timings: [UInt8], others: [UInt8], cacheStatus: String) {
    self.timings = timings
    self.others = others
    self.cacheStatus = cacheStatus
  }

  /// Returns a response with this head: the last one if its head is as long, or the result of `make`.
  func response(
    with head: ResponseHead, make: () throws(ImageError) -> Response
  ) throws(ImageError) -> Response {
    if let last, last.replace(head: head) { return last }
    let response = try make()
    last = response
    return response
  }
}

/// The fields that a delivery's responses have in common, for the last target of each event loop: requests that join a
/// flight have the same target.
final class PreparedHead: PreparedAnswer, @unchecked Sendable {
  // Sound as Sendable: slot `n` is used on event loop `n`'s thread only, and `deinit` runs without other references.

  private struct Part {
    let target: RequestTarget
    let fields: ImageFields
  }

  /// The server whose event loops use the slots.
  private let owner: UInt64
  private let places: UnsafeMutableBufferPointer<Part?>

  private init(owner: UInt64, loops: Int) {
    self.owner = owner
    places = .allocate(capacity: loops)
    places.initialize(repeating: nil)
  }

  deinit {
    places.deinitialize()
    places.deallocate()
  }

  /// Returns the fields of a shared delivery; `nil` if they belong to another server in this process.
  static func of(_ delivery: ImageDelivery, owner: UInt64, loops: Int) -> PreparedHead? {
    let found =
      delivery.prepared.load()
      ?? delivery.prepared.storeIfNil(PreparedHead(owner: owner, loops: loops))
    guard let prepared = found as? PreparedHead, prepared.owner == owner else { return nil }
    return prepared
  }

  /// Returns this event loop's fields for a target.
  func fields(of loop: EventLoopState, for target: RequestTarget) -> ImageFields? {
    guard loop.index < places.count, let part = places[loop.index], part.target === target else {
      return nil
    }
    return part.fields
  }

  /// Stores this event loop's fields for a target.
  func keep(_ fields: ImageFields, of loop: EventLoopState, for target: RequestTarget) {
    guard loop.index < places.count else { return }
    places[loop.index] = Part(target: target, fields: fields)
  }
}
