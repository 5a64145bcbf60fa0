// OriginResponse+Request: reads an origin's response fields from the request that uploads an image.

import CMicrohttpd
import Model

extension OriginResponse {
  /// Creates a response from the fields of a request, as if the origin had sent them.
  init(requestOn connection: OpaquePointer) {
    self.init(status: 200)
    withUnsafeMutablePointer(to: &self) { origin in
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          guard let context, let name, let value else { return .YES }
          let origin = context.assumingMemoryBound(to: OriginResponse.self)
          origin.pointee.take(String(cString: name).lowercased(), value: String(cString: value))
          return .YES
        }, origin)
    }
  }

  private mutating func take(_ name: String, value: String) {
    switch name {
    // Several fields form one list (RFC 9110, section 5.3).
    case "cache-control": cacheControl = cacheControl.map { $0 + ", " + value } ?? value
    case "expires": expires = value
    case "etag": etag = value
    case "last-modified": lastModified = value
    case "content-type": contentType = value
    default: break
    }
  }
}
