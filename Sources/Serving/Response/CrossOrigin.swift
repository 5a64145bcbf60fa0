// CrossOrigin: CORS response fields (WHATWG Fetch, section 3.3).

import Core
import Glibc

/// The origins whose pages may read responses.
///
/// A single origin or `*` is the same for every client. With several, each client gets its own. The
/// field then has a fixed length in a hit's head and is overwritten for each client.
struct CrossOrigin: Sendable {
  /// The response fields that scripts may read in addition to the safelisted ones.
  private static let exposed =
    "Accept-Ranges, Age, Cache-Status, Content-Disposition, Content-DPR, Content-Length, Content-Range, "
    + "Date, ETag, Retry-After, Server-Timing, X-Damaged, X-Error-Code, X-Fallback, X-Frames-Dropped, X-Quality, X-Request-ID, X-Scaled-Down"
  private static let name = "Access-Control-Allow-Origin: "

  private let origins: [String]
  private let timingOrigins: String
  /// One field per origin, and last the one for other pages; all of the same length.
  private let lines: [[UInt8]]

  /// Whether the response depends on the client's `Origin`.
  let isPerClient: Bool

  /// Creates the policy for the configured origins. If empty, pages of other origins may not read
  /// responses.
  init(_ origins: [String]) {
    self.origins = origins.contains("*") ? ["*"] : origins
    timingOrigins = self.origins.joined(separator: ", ")
    isPerClient = self.origins.count > 1
    let longest = self.origins.map(\.utf8.count).max() ?? 0
    let width = Self.name.utf8.count + longest
    // Leading blanks are not part of a field value (RFC 9110, section 5.5).
    let fields = self.origins.map { (Self.name, $0) } + [("Vary: ", "Origin")]
    lines =
      isPerClient
      ? fields.map { name, value in
        let blanks = String(repeating: " ", count: width - name.utf8.count - value.utf8.count)
        return Array((name + blanks + value).utf8)
      } : []
  }

  /// Returns the index of the client's origin, or the number of origins for any other. Does not
  /// allocate.
  func page(on connection: OpaquePointer) -> Int {
    guard isPerClient, let value = RequestHandler.field("Origin", on: connection) else {
      return origins.count
    }
    let given = UnsafeRawBufferPointer(start: value, count: strlen(value))
    for index in origins.indices where origins[index].utf8.elementsEqual(given) { return index }
    return origins.count
  }

  /// The space for the field in a hit's head, with its preceding line break; empty if not needed.
  var place: [UInt8] { lines.last.map { Array("\r\n".utf8) + $0 } ?? [] }

  /// Writes the field of `page` into its space, which begins after the line break.
  func write(page: Int, into place: UnsafeMutablePointer<UInt8>) {
    lines[page].withUnsafeBufferPointer { line in
      if let start = line.baseAddress { place.update(from: start, count: line.count) }
    }
  }

  /// Returns the `Vary` value, with `Origin` added if needed.
  func vary(with others: String?) -> String? {
    guard isPerClient else { return others }
    return others.map { $0 + ", Origin" } ?? "Origin"
  }

  /// Adds the fields that are the same for all clients.
  func addShared(to head: inout ResponseHead) {
    guard !origins.isEmpty else { return }
    if !isPerClient { head.add("Access-Control-Allow-Origin", value: origins[0]) }
    head.add("Access-Control-Expose-Headers", value: Self.exposed)
    head.add("Timing-Allow-Origin", value: timingOrigins)
    head.add("Cross-Origin-Resource-Policy", value: "cross-origin")
  }

  /// Adds the field of a client whose page is `page`.
  func addOwn(to head: inout ResponseHead, page: Int) {
    if isPerClient, page < origins.count {
      head.add("Access-Control-Allow-Origin", value: origins[page])
    }
  }
}
