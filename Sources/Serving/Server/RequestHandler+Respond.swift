// RequestHandler+Respond: what all responses share, and refusals of what libmicrohttpd never gets.

import CMicrohttpd
import Core
import Glibc

extension RequestHandler {
  /// Whether the client already has the current image.
  func isNotModified(_ info: VariantInfo, on connection: OpaquePointer) -> Bool {
    let etags = Self.field("If-None-Match", on: connection)
    let date = etags == nil ? Self.field("If-Modified-Since", on: connection) : nil
    guard etags != nil || date != nil else { return false }
    return Preconditions.isNotModified(
      info, ifNoneMatch: etags.map { UnsafeRawBufferPointer(start: $0, count: strlen($0)) },
      ifModifiedSince: date.map { String(cString: $0) })
  }

  /// Whether the client already has the bytes of the entity tag.
  func isNotModified(etag: EntityTag, on connection: OpaquePointer) -> Bool {
    Self.field("If-None-Match", on: connection).map {
      Preconditions.isNotModified(
        etag: etag, ifNoneMatch: UnsafeRawBufferPointer(start: $0, count: strlen($0)))
    } ?? false
  }

  /// Returns the value of a request field, or `nil`; of several fields the first.
  static func field(
    _ name: StaticString, on connection: OpaquePointer
  ) -> UnsafePointer<CChar>? {
    MHD_lookup_connection_value(
      connection, .HEADER_KIND,
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self))
  }

  /// Calls back with the name and the value of each field of the request. Allocates.
  static func forEachField(
    on connection: OpaquePointer,
    _ body: (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Void
  ) {
    withoutActuallyEscaping(body) { body in
      var body = body
      withUnsafeMutablePointer(to: &body) { body in
        // Calls back before it returns, and retains nothing.
        _ = MHD_get_connection_values(
          connection, .HEADER_KIND,
          { body, _, name, value in
            if let body, let name, let value {
              body.assumingMemoryBound(
                to: ((UnsafePointer<CChar>, UnsafePointer<CChar>) -> Void).self
              ).pointee(name, value)
            }
            return .YES
          }, body)
      }
    }
  }

  /// Queues a response, counts it, and sets the client's deadline for reading it.
  ///
  /// - Parameter bytes: length of the image or text, even if it is not sent.
  func queue(
    _ response: Response, status: Int, bytes: Int, to client: Connection,
    on connection: OpaquePointer
  ) -> MHD_Result {
    let result = response.queue(on: connection, status: status)
    guard result == .YES else {
      log.error("libmicrohttpd rejected a response", fields: ["status": .int(status)])
      return result
    }
    client.stage = .answered
    client.bodyBytes = client.bodyBytes(status: status, of: bytes)
    switch status {
    case 200: client.loop.succeeded.add(1)
    case 304: client.loop.notModified.add(1)
    default: figures.statuses.add("\(status)")
    }
    client.watch.deadline =
      Clock.coarseMilliseconds()
      + client.policy.transferTime.milliseconds(for: client.bodyBytes)
    return result
  }
}

extension RequestHandler {
  /// Returns a response that ends its connection, from the first byte to the last.
  func refusal(of error: ImageError, id: RequestID) -> [UInt8] {
    let policy = latestPolicy
    let json = ErrorBody(
      error, id: id.description, explains: policy.configuration.explainsErrors
    ).json
    var head = ResponseHead(date: Clock.now(), id: id)
    head.add("Content-Type", value: "application/json")
    head.add("Content-Length", value: "\(json.count)")
    head.add("Cache-Control", value: "no-store")
    if let seconds = error.retryAfter { head.add("Retry-After", value: "\(seconds)") }
    head.add("Connection", value: "close")
    head.addCommon()
    policy.configuration.addHints(to: &head)
    policy.crossOrigin.addShared(to: &head)
    let reason = MHD_get_reason_phrase_for(UInt32(error.status)).map { String(cString: $0) } ?? ""
    let line = "HTTP/1.1 \(error.status) \(reason)\r\n\(ResponseHead.firstName): "
    return Array(line.utf8) + head.bytes + Array("\r\n\r\n".utf8) + json
  }
}
