// PreparedHead: the fields that the responses of a shared delivery have in common.

import Model

/// What the responses of a delivery have in common on one event loop: the fields that do not vary
/// between clients and moments, and the last response. Belongs to the loop's thread.
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

  /// Returns a response with this head: the last one if as long, else the result of `make`.
  func response(
    with head: ResponseHead, make: () throws(ImageError) -> Response
  ) throws(ImageError) -> Response {
    if let last, last.replace(head: head) { return last }
    let response = try make()
    if response.hasReplaceableHead { last = response }
    return response
  }
}

/// What a delivery's responses share, for the last kind of target of each event loop: its source's
/// URL, which may differ from the key's, and `Vary`. Most requests of a flight agree.
final class PreparedHead: PreparedAnswer, @unchecked Sendable {
  // Sound as Sendable: only event loop `n` uses slot `n`, and `deinit` runs alone.

  private struct Part {
    let source: SourceURL
    let vary: String?
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

  /// Returns the fields of a shared delivery; `nil` for those of another server in this process.
  static func of(_ delivery: ImageDelivery, owner: UInt64, loops: Int) -> PreparedHead? {
    let found =
      delivery.prepared.load()
      ?? delivery.prepared.storeIfNil(PreparedHead(owner: owner, loops: loops))
    guard let prepared = found as? PreparedHead, prepared.owner == owner else { return nil }
    return prepared
  }

  /// Returns this event loop's fields.
  func fields(of loop: EventLoopState, for source: SourceURL, vary: String?) -> ImageFields? {
    guard loop.index < places.count, let part = places[loop.index], part.source == source,
      part.vary == vary
    else { return nil }
    return part.fields
  }

  /// Stores this event loop's fields.
  func keep(
    _ fields: ImageFields, of loop: EventLoopState, for source: SourceURL, vary: String?
  ) {
    guard loop.index < places.count else { return }
    places[loop.index] = Part(source: source, vary: vary, fields: fields)
  }
}
