// Forwarding: forwards request fields to origins, and the effects on keys and responses.

import Core
import Glibc

/// The request fields that a source's host rule forwards.
struct Forwarding: Sendable {
  /// The configured names; never empty.
  let names: [String]

  /// Returns `nil` if no fields are forwarded.
  init?(names: [String]) {
    guard !names.isEmpty else { return nil }
    self.names = names
  }

  /// Whether a response may be personal, so that shared caches must not store it.
  var isPrivate: Bool {
    names.contains { ["authorization", "cookie"].contains($0.lowercased()) }
  }

  /// Returns the request with the client's values of these fields. Without any values, it is the
  /// same for all clients.
  func apply(to request: ImageRequest, on connection: OpaquePointer) -> ImageRequest {
    let fields = names.compactMap { name in
      Self.value(of: name, on: connection).flatMap { HeaderField(name, value: $0) }
    }
    return fields.isEmpty
      ? request : request.forwarding(fields, variation: Self.digest(of: fields))
  }

  /// Returns the value of a request field. Several lines form one list (RFC 9110, section 5.3), or
  /// one text for cookies (RFC 6265, section 5.4).
  static func value(of name: String, on connection: OpaquePointer) -> String? {
    var values: [String] = []
    RequestHandler.forEachField(on: connection) {
      if strcasecmp($0, name) == 0 { values.append(String(cString: $1)) }
    }
    guard !values.isEmpty else { return nil }
    guard name.lowercased() == "cookie" else { return values.joined(separator: ", ") }
    let bytes = values.joined(separator: "; ").utf8.map { byte in
      byte == RequestFraming.cookieQuote ? UInt8(ascii: "\"") : byte
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns 128 bits of SHA-256 of the sorted fields, in hexadecimal. A digest keeps credentials
  /// out of keys on disk and in logs. The text is unambiguous: names contain no colon and values no
  /// line break.
  static func digest(of fields: [HeaderField]) -> String {
    let text = fields.map { "\($0.name.lowercased()):\($0.value)\n" }.sorted().joined()
    return String(HMAC.hexSHA256(of: Array(text.utf8)).prefix(32))
  }
}
