// Forwarding: what of a client's header goes on to the origin, and what follows from that for keys and answers.

import CGLib
import CMicrohttpd
import Model

/// The fields that the rule of a source's host forwards, whether or not a client sends them.
struct Forwarding: Sendable {
  /// Their names, as configured; there is at least one.
  let names: [String]

  /// `nil` where nothing is forwarded.
  init?(names: [String]) {
    guard !names.isEmpty else { return nil }
    self.names = names
  }

  /// Whether an answer may be meant for its client alone, and so is for no cache that clients share.
  var isPrivate: Bool {
    names.contains { ["authorization", "cookie"].contains($0.lowercased()) }
  }

  /// A request with what its client sent of them. One that sent none asks for what everybody gets.
  func apply(to request: ImageRequest, on connection: OpaquePointer) -> ImageRequest {
    let fields = names.compactMap { name in
      Self.value(of: name, on: connection).flatMap { HeaderField(name, $0) }
    }
    return fields.isEmpty
      ? request : request.forwarding(fields, variation: Self.digest(of: fields))
  }

  /// The value of a field of the request; several lines are one list (RFC 9110, section 5.3), and of cookies one text
  /// (RFC 6265, section 5.4).
  static func value(of name: String, on connection: OpaquePointer) -> String? {
    var search = Search(name: name.lowercased(), values: [])
    withUnsafeMutablePointer(to: &search) { search in
      // Calls back before it returns, and keeps nothing.
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          guard let name, let value, let context else { return .YES }
          let search = context.assumingMemoryBound(to: Search.self)
          if String(cString: name).lowercased() == search.pointee.name {
            search.pointee.values.append(String(cString: value))
          }
          return .YES
        }, search)
    }
    guard !search.values.isEmpty else { return nil }
    return search.values.joined(separator: search.name == "cookie" ? "; " : ", ")
  }

  private struct Search {
    let name: String
    var values: [String]
  }

  /// 128 bits of SHA-256 in hexadecimal, of names and values in one order: keys are written to disk and to logs, where
  /// no credentials belong. Names hold no colon and values no line break, so no two lists of fields are one text.
  static func digest(of fields: [HeaderField]) -> String {
    var text = fields.map { "\($0.name.lowercased()):\($0.value)\n" }.sorted().joined()
    return text.withUTF8 { bytes in
      // GLib makes a digest for every type it knows, and SHA-256 is one.
      guard
        let digest = g_compute_checksum_for_data(
          G_CHECKSUM_SHA256, bytes.baseAddress, gsize(bytes.count))
      else { preconditionFailure("GLib knows no SHA-256") }
      defer { g_free(digest) }
      return String(String(cString: digest).prefix(32))
    }
  }
}
