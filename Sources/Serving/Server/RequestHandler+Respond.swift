// RequestHandler+Respond: the steps that all responses share: preconditions, counting, queueing.

import CMicrohttpd
import Glibc
import Model
import Telemetry

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
