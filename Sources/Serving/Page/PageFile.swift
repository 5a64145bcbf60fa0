// PageFile: a file of the page at `/`, with its type and entity tag.

import CGLib
import CPage
import Model
import Platform

/// A file that the server sends as it is. Its bytes are shared by all responses.
struct PageFile: Sendable {
  /// The media type.
  let type: StaticString
  /// A strong validator of the bytes.
  let etag: EntityTag
  let bytes: ImageBytes

  init(_ bytes: ImageBytes, type: StaticString) {
    self.bytes = bytes
    self.type = type
    let digest = g_compute_checksum_for_data(
      G_CHECKSUM_SHA256, bytes.baseAddress.assumingMemoryBound(to: guchar.self),
      gsize(bytes.count))
    defer { g_free(digest) }
    etag = EntityTag("\"\((digest.map { String(cString: $0) } ?? "").prefix(32))\"")
  }

  /// What the page may load and do: its own files, images and requests to its own server. No text
  /// becomes markup (`trusted-types 'none'`), and no other page may frame it.
  static let contentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    + "require-trusted-types-for 'script'; trusted-types 'none'"
}

/// The files of the page, by name.
struct PageFiles: Sendable {
  /// The name of the file that `/` sends.
  static let index = "index.html"
  /// The name of the description of the parameters, which is made at the start.
  static let parameters = "parameters.json"

  private let files: [String: PageFile]

  /// Collects the files of the program, and describes the server's parameters.
  init(_ description: PageDescription) {
    var files: [String: PageFile] = [:]
    var place = 0
    while case let file = pictor_page_file(place), let name = file.name, let bytes = file.bytes {
      let text = String(cString: name)
      files[text] = PageFile(
        ImageBytes(copying: UnsafeRawBufferPointer(start: bytes, count: file.count)),
        type: Self.type(of: text))
      place += 1
    }
    // Every description can be encoded: it has no infinite number.
    let json = JSON.bytes(of: description) ?? []
    files[Self.parameters] = PageFile(
      json.withUnsafeBytes { ImageBytes(copying: $0) }, type: "application/json")
    self.files = files
  }

  subscript(name: String) -> PageFile? { files[name] }

  private static func type(of name: String) -> StaticString {
    if name.hasSuffix(".html") { return "text/html; charset=utf-8" }
    return name.hasSuffix(".css")
      ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"
  }
}
