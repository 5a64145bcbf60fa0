// Answering: the steps that all responses share: preconditions, counting, queueing.

import CMicrohttpd
import Glibc
import Model
import Telemetry

extension RequestHandler {
  /// Whether the client already has the current image.
  func isNotModified(_ info: VariantInfo, on connection: OpaquePointer) -> Bool {
    let etags = Self.header("If-None-Match", of: connection)
    let date = etags == nil ? Self.header("If-Modified-Since", of: connection) : nil
    guard etags != nil || date != nil else { return false }
    return Preconditions.isNotModified(
      info, ifNoneMatch: etags.map { UnsafeRawBufferPointer(start: $0, count: strlen($0)) },
      ifModifiedSince: date.map { String(cString: $0) })
  }

  /// Returns the value of a request field, or `nil`; of several fields the first.
  static func header(
    _ name: StaticString, of connection: OpaquePointer
  ) -> UnsafePointer<CChar>? {
    MHD_lookup_connection_value(
      connection, .HEADER_KIND,
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self))
  }

  /// Queues a response, counts it, and sets the client's deadline for reading it.
  ///
  /// - Parameter bytes: length of the image or text, even if it is not sent.
  func queue(
    _ response: Response, status: Int, bytes: Int, on client: Connection,
    _ connection: OpaquePointer
  ) -> MHD_Result {
    let result = response.queue(on: connection, status: status)
    guard result == .YES else {
      log.error("libmicrohttpd refused an answer", ["status": .int(status)])
      return result
    }
    client.stage = .answered
    client.bodyBytes = client.bodyBytes(status: status, of: bytes)
    switch status {
    case 200: client.worker.succeeded.add(1)
    case 304: client.worker.notModified.add(1)
    default: figures.statuses.add("\(status)")
    }
    client.watch.deadline =
      Clock.coarseMilliseconds() + answerTimeout
      + client.bodyBytes * 1_000 / configuration.minimumReadRate
    return result
  }
}
