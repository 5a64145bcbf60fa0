// RequestHandler+Refusal: error responses for requests that libmicrohttpd never gets.

import CMicrohttpd
import Model
import Telemetry

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
