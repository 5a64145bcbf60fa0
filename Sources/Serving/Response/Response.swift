// Response: a libmicrohttpd response whose head can be updated in place.

import CMicrohttpd
import Core
import Glibc

/// Owns one reference to an `MHD_Response`; libmicrohttpd holds another while it sends.
///
/// With `HeadStyle.block`, libmicrohttpd gets the head as one field named `Date`, whose value is
/// then overwritten with the text of all fields. `MHD_add_response_header` copies a value and
/// refuses line breaks in it; `MHD_get_response_header` returns the copy that is sent. One field
/// instead of sixteen saves allocations and formatting. `ResponseHead.add` does the checks that
/// libmicrohttpd would do.
///
/// With `HeadStyle.fields`, each field is added separately and the response is used once: hits are
/// their endpoint's.
///
/// Belongs to one thread. libmicrohttpd copies the head into the connection's buffer on the
/// thread that queued the response, in the same pass (`MHD_connection_handle_idle`). Overwriting
/// the head for the next request is therefore safe.
final class Response {
  private let response: OpaquePointer
  /// libmicrohttpd's copy of the head, valid as long as `response`; `nil` with `HeadStyle.fields`.
  private let head: UnsafeMutablePointer<UInt8>?
  private let widths: HitFields.Widths
  private let maxAgeOffset: Int
  private let sharedMaxAgeOffset: Int
  private var second = Int.min
  private var maxAge = Int.min
  private var sharedMaxAge = Int.min
  private var page: Int?

  /// Creates a response with a body. `widths` are 0 if the head is not updated later.
  ///
  /// - Throws: `ImageError.internal` if memory is exhausted, `overloaded` if descriptors are.
  convenience init(
    head: ResponseHead, style: HeadStyle, body: Variant.Body, widths: HitFields.Widths = .none,
    closes: Bool = false
  ) throws(ImageError) {
    try self.init(
      try Self.make(body), head: head, style: style, widths: widths, closes: closes)
  }

  /// Creates a response with a streamed body; `length` is `nil` if unknown.
  ///
  /// - Throws: `ImageError.internal` if memory is exhausted.
  convenience init(
    head: ResponseHead, style: HeadStyle, stream: BodyStream, length: Int?, closes: Bool = false
  ) throws(ImageError) {
    guard let response = stream.makeResponse(length: length) else {
      throw .internal(detail: "no memory for a response")
    }
    try self.init(response, head: head, style: style, widths: .none, closes: closes)
  }

  /// Takes ownership of `response`, and destroys it on failure.
  private init(
    _ response: OpaquePointer, head: ResponseHead, style: HeadStyle, widths: HitFields.Widths,
    closes: Bool
  ) throws(ImageError) {
    // The order matters: adding `Connection` makes 0.9.75 ignore an earlier `Date` and send its
    // own.
    guard !closes || MHD_add_response_header(response, "Connection", "close") == .YES,
      let block = style.add(head, to: response)
    else {
      MHD_destroy_response(response)
      throw .internal(detail: "libmicrohttpd refused a response header")
    }
    self.response = response
    self.widths = widths
    maxAgeOffset = head.maxAgeOffset
    sharedMaxAgeOffset = head.sharedMaxAgeOffset
    self.head = block
  }

  deinit { MHD_destroy_response(response) }

  private static func make(_ body: Variant.Body) throws(ImageError) -> OpaquePointer {
    switch body {
    case .memory(let bytes):
      // The callback releases the bytes; libmicrohttpd calls it once, when the response is
      // destroyed.
      let retained = Unmanaged.passRetained(bytes)
      guard
        let response = MHD_create_response_from_buffer_with_free_callback_cls(
          bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
          { context in
            guard let context else { return }
            Unmanaged<ImageBytes>.fromOpaque(context).release()
          }, retained.toOpaque())
      else {
        retained.release()
        throw .internal(detail: "no memory for a response")
      }
      return response
    case .file(let region):
      // libmicrohttpd closes the descriptor it gets, and the region closes its own.
      let descriptor = fcntl(region.descriptor, F_DUPFD_CLOEXEC, 0)
      guard descriptor >= 0 else { throw .overloaded(queue: "descriptors", retryAfter: 1) }
      guard
        let response = MHD_create_response_from_fd_at_offset64(
          UInt64(region.count), descriptor, UInt64(region.offset))
      else {
        close(descriptor)
        throw .internal(detail: "no memory for a response")
      }
      return response
    }
  }

  /// Whether the head has space for fields of exactly these lengths.
  func fits(_ widths: HitFields.Widths) -> Bool { widths == self.widths }

  /// Updates a hit's block. The fields are as long as the head was made for.
  func stamp(
    _ fields: HitFields, id: RequestID, now: UnixTime, microseconds: Int, loop: EventLoopState
  ) {
    guard let head else { return }
    if now.seconds != second {
      head.update(from: loop.date(now), count: HTTPDate.length)
      ResponseHead.write(
        number: fields.age, width: widths.age, into: head + ResponseHead.ageOffset(widths))
      second = now.seconds
    }
    // The same within a second too, unless URLs with several `exp` share the variant.
    if fields.maxAge != maxAge || fields.sharedMaxAge != sharedMaxAge {
      ResponseHead.write(number: fields.maxAge, width: widths.maxAge, into: head + maxAgeOffset)
      ResponseHead.write(
        number: fields.sharedMaxAge, width: widths.sharedMaxAge, into: head + sharedMaxAgeOffset)
      maxAge = fields.maxAge
      sharedMaxAge = fields.sharedMaxAge
    }
    id.write(
      into: UnsafeMutableRawBufferPointer(
        start: head + ResponseHead.idOffset, count: widths.id))
    ResponseHead.write(microseconds: microseconds, into: head + ResponseHead.timingOffset(widths))
  }

  /// Writes the CORS field of the client's page, if it differs from the previous client's.
  func stamp(page: Int, of crossOrigin: CrossOrigin) {
    guard let head, page != self.page else { return }
    crossOrigin.write(page: page, into: head + ResponseHead.pageOffset(widths))
    self.page = page
  }

  /// Queues the response. libmicrohttpd takes its own reference.
  func queue(on connection: OpaquePointer, status: Int) -> MHD_Result {
    MHD_queue_response(connection, UInt32(status), response)
  }
}

/// How a response head is passed to libmicrohttpd.
enum HeadStyle: Hashable, Sendable {
  /// As the value of one field, overwritten in place for each hit. Saves allocations, but relies on
  /// undocumented behaviour of libmicrohttpd (see `Response`); only for tested versions.
  case block
  /// Field by field, in a new response each time. Works with any version; hits are their
  /// endpoint's, and slower.
  case fields

  /// The versions that `block` was tested with: those of Debian 12 and 13.
  static let testedVersions = ["0.9.75", "1.0.1"]

  /// Selects the style for a version of libmicrohttpd.
  init(libraryVersion: String) {
    self = Self.testedVersions.contains(libraryVersion) ? .block : .fields
  }

  /// The version of libmicrohttpd that this process uses.
  static var libraryVersion: String { MHD_get_version().map { String(cString: $0) } ?? "unknown" }

  /// Adds a head to a response.
  ///
  /// - Returns: `nil` if libmicrohttpd refuses the head; otherwise the block's address, valid as
  ///   long as the response, or an inner `nil` for `fields`.
  func add(_ head: ResponseHead, to response: OpaquePointer) -> UnsafeMutablePointer<UInt8>?? {
    switch self {
    case .block: Self.addBlock(head, to: response).map { .some($0) }
    case .fields: Self.addFields(head, to: response) ? .some(nil) : nil
    }
  }

  private static func addBlock(
    _ head: ResponseHead, to response: OpaquePointer
  ) -> UnsafeMutablePointer<UInt8>? {
    let name = UnsafeRawPointer(ResponseHead.firstName.utf8Start)
      .assumingMemoryBound(to: CChar.self)
    guard addBlanks(head.bytes.count, named: name, to: response),
      let value = MHD_get_response_header(response, name)
    else { return nil }
    // The value is libmicrohttpd's own heap copy of the blanks, so it may be written to.
    let block = UnsafeMutableRawPointer(mutating: value).assumingMemoryBound(to: UInt8.self)
    head.bytes.withUnsafeBufferPointer { bytes in
      if let start = bytes.baseAddress { block.update(from: start, count: bytes.count) }
    }
    return block
  }

  /// As many blanks as most heads are long, and a zero.
  private static let blanks: [CChar] =
    Array(repeating: CChar(bitPattern: UInt8(ascii: " ")), count: 2_047) + [0]

  private static func addBlanks(
    _ count: Int, named name: UnsafePointer<CChar>, to response: OpaquePointer
  ) -> Bool {
    guard count < blanks.count else {
      let longer =
        [CChar](repeating: CChar(bitPattern: UInt8(ascii: " ")), count: count) + [0]
      return MHD_add_response_header(response, name, longer) == .YES
    }
    // The end of the blanks, which has its zero.
    return blanks.withUnsafeBufferPointer { blanks in
      guard let start = blanks.baseAddress else { return false }
      return MHD_add_response_header(response, name, start + (blanks.count - 1 - count)) == .YES
    }
  }

  private static func addFields(_ head: ResponseHead, to response: OpaquePointer) -> Bool {
    head.fields.allSatisfy { MHD_add_response_header(response, $0.name, $0.value) == .YES }
  }
}
