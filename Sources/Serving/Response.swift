// Response: an MHD_Response with its head as one block that can be made current in place.

import CMicrohttpd
import Glibc
import Model
import Telemetry

/// Owns one reference to an `MHD_Response`; libmicrohttpd holds another while it sends.
///
/// The head is given to libmicrohttpd as one field named `Date`, and the text of all fields is then written over its
/// value. `MHD_add_response_header` copies a value and refuses line breaks in it; `MHD_get_response_header` returns the
/// copy that is sent. One field instead of sixteen saves 45 allocations a response, and most of the time
/// libmicrohttpd takes to write a header. `ResponseHead.add` checks what MHD would have checked.
///
/// Belongs to one thread. libmicrohttpd 0.9.75 writes the head into the connection's own buffer in the same pass of
/// the same thread in which the handler queued the response (`MHD_connection_handle_idle`), so what is overwritten for
/// the next request was already copied for the last one.
final class Response {
  private let response: OpaquePointer
  /// MHD's copy of the value: as long as the head, valid as long as `response`.
  private let head: UnsafeMutablePointer<UInt8>
  private let ageWidth: Int
  private var second = Int.min

  /// A response with a body; `ageWidth` is 0 where the head is not to be made current later.
  ///
  /// - Throws: `ImageError.internal` where memory is missing, `overloaded` where descriptors are.
  convenience init(
    head: ResponseHead, body: Variant.Body, ageWidth: Int = 0, closes: Bool = false
  ) throws(ImageError) {
    try self.init(try Self.make(body), head: head, ageWidth: ageWidth, closes: closes)
  }

  /// A response whose body comes while it is sent; `length` is `nil` where nobody knows it yet.
  ///
  /// - Throws: `ImageError.internal` where memory is missing.
  convenience init(head: ResponseHead, stream: BodyStream, length: Int?) throws(ImageError) {
    guard let response = stream.makeResponse(length: length) else {
      throw .internal(detail: "no memory for a response")
    }
    try self.init(response, head: head, ageWidth: 0, closes: false)
  }

  /// Takes over `response`, which is released where this fails.
  private init(
    _ response: OpaquePointer, head text: ResponseHead, ageWidth: Int, closes: Bool
  ) throws(ImageError) {
    var placeholder = [CChar](
      repeating: CChar(bitPattern: UInt8(ascii: " ")), count: text.bytes.count)
    placeholder.append(0)
    let name = UnsafeRawPointer(ResponseHead.firstName.utf8Start)
      .assumingMemoryBound(to: CChar.self)
    // In this order: adding `Connection` makes 0.9.75 forget that there is a `Date`, and it then sends one of its own.
    guard !closes || MHD_add_response_header(response, "Connection", "close") == .YES,
      MHD_add_response_header(response, name, placeholder) == .YES,
      let value = MHD_get_response_header(response, name)
    else {
      MHD_destroy_response(response)
      throw .internal(detail: "libmicrohttpd refused a response header")
    }
    self.response = response
    self.ageWidth = ageWidth
    // The value is MHD's own heap copy of `placeholder`, not a constant: libmicrohttpd hands it out as it stores it.
    head = UnsafeMutableRawPointer(mutating: value).assumingMemoryBound(to: UInt8.self)
    text.bytes.withUnsafeBufferPointer { bytes in
      if let start = bytes.baseAddress { head.update(from: start, count: bytes.count) }
    }
  }

  deinit { MHD_destroy_response(response) }

  private static func make(_ body: Variant.Body) throws(ImageError) -> OpaquePointer {
    switch body {
    case .memory(let bytes):
      // Released by the callback, which libmicrohttpd calls once, when the response is destroyed.
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
      // libmicrohttpd closes the descriptor it is given, and the region closes its own.
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

  /// Whether an age of so many digits has room.
  func fits(ageWidth: Int) -> Bool { ageWidth == self.ageWidth }

  /// Makes a hit's head current; the age has as many digits as the head was made for.
  func stamp(id: RequestID, now: UnixTime, age: Int, microseconds: Int, worker: Worker) {
    if now.seconds != second {
      head.update(from: worker.date(now), count: HTTPDate.length)
      ResponseHead.write(age: age, width: ageWidth, into: head + ResponseHead.ageOffset)
      second = now.seconds
    }
    id.write(
      into: UnsafeMutableRawBufferPointer(
        start: head + ResponseHead.idOffset, count: RequestID.length))
    ResponseHead.write(microseconds: microseconds, into: head + ResponseHead.timingOffset)
  }

  /// Hands the response to libmicrohttpd, which takes a reference of its own.
  func queue(on connection: OpaquePointer, status: Int) -> MHD_Result {
    MHD_queue_response(connection, UInt32(status), response)
  }
}
