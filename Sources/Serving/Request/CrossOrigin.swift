// CrossOrigin: which pages may read answers (CORS, WHATWG Fetch section 3.3), as header fields.

import CMicrohttpd
import Glibc
import Model
import Telemetry

/// The origins that may read answers.
///
/// One origin, or `*`, is the same text for every client. Of several, each client is told its own, so the field has a
/// place of fixed length in a hit's head, which is overwritten when the next client has another origin.
struct CrossOrigin: Sendable {
  /// What scripts may read beside the fields that every response shows them.
  private static let exposed =
    "Age, Cache-Status, Content-Disposition, Content-DPR, Content-Length, Date, ETag, Retry-After, "
    + "Server-Timing, X-Damaged, X-Quality, X-Request-ID, X-Scaled-Down"
  private static let name = "Access-Control-Allow-Origin: "

  private let origins: [String]
  /// The field of each origin, and at the end that of pages which may not read: all of one length.
  private let lines: [[UInt8]]

  /// Whether the answer depends on the client's `Origin`.
  let isPerClient: Bool

  /// The origins of the configuration; none: no page of another origin may read.
  init(_ origins: [String]) {
    self.origins = origins.contains("*") ? ["*"] : origins
    isPerClient = self.origins.count > 1
    let longest = self.origins.map(\.utf8.count).max() ?? 0
    let width = Self.name.utf8.count + longest
    // Blanks in front of a value are no part of it (RFC 9110, section 5.5).
    let fields = self.origins.map { (Self.name, $0) } + [("Vary: ", "Origin")]
    lines =
      isPerClient
      ? fields.map { name, value in
        let blanks = String(repeating: " ", count: width - name.utf8.count - value.utf8.count)
        return Array((name + blanks + value).utf8)
      } : []
  }

  /// Which of the origins the client's page is of; one more than the last for any other. Allocates nothing.
  func page(on connection: OpaquePointer) -> Int {
    guard isPerClient, let value = RequestHandler.header("Origin", of: connection) else {
      return origins.count
    }
    let given = UnsafeRawBufferPointer(start: value, count: strlen(value))
    for index in origins.indices where origins[index].utf8.elementsEqual(given) { return index }
    return origins.count
  }

  /// Room for the field in a hit's head, with its line break in front; empty where it needs none.
  var place: [UInt8] { lines.last.map { Array("\r\n".utf8) + $0 } ?? [] }

  /// Writes the field of `page` over its place, which begins behind the line break.
  func write(page: Int, into place: UnsafeMutablePointer<UInt8>) {
    lines[page].withUnsafeBufferPointer { line in
      if let start = line.baseAddress { place.update(from: start, count: line.count) }
    }
  }

  /// The `Vary` field with what this adds to it.
  func vary(with others: String?) -> String? {
    guard isPerClient else { return others }
    return others.map { $0 + ", Origin" } ?? "Origin"
  }

  /// Adds what is the same for all clients.
  func addShared(to head: inout ResponseHead) {
    guard !origins.isEmpty else { return }
    if !isPerClient { head.add("Access-Control-Allow-Origin", origins[0]) }
    head.add("Access-Control-Expose-Headers", Self.exposed)
    head.add("Timing-Allow-Origin", origins.joined(separator: ", "))
    head.add("Cross-Origin-Resource-Policy", "cross-origin")
  }

  /// Adds all fields, for a client whose page is `page`.
  func add(to head: inout ResponseHead, page: Int) {
    if isPerClient, page < origins.count {
      head.add("Access-Control-Allow-Origin", origins[page])
    }
    addShared(to: &head)
  }
}

extension RequestContext {
  /// How long a browser may remember the answer to a preflight, in seconds; Chromium's own limit.
  private static let preflightLifetime = "7200"

  /// Answers `OPTIONS` of any path: what may be asked of it, and with which fields (a CORS preflight).
  func answerOptions() -> MHD_Result {
    var route = client.target?.route
    if route?.isForOperators == true, handler.operatorTokens.withLock({ $0.isEmpty }) {
      route = nil
    }
    let methods = route?.allowed ?? Route.allowedAnywhere
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Allow", methods)
    if !handler.configuration.corsOrigins.isEmpty {
      head.add("Access-Control-Allow-Methods", methods)
      head.add("Access-Control-Allow-Headers", requestFields(of: route).joined(separator: ", "))
      head.add("Access-Control-Max-Age", Self.preflightLifetime)
    }
    addCommon(to: &head, vary: nil)
    do throws(ImageError) {
      let nothing = [UInt8]().withUnsafeBytes { ImageBytes(copying: $0) }
      let response = try Response(
        head: head, style: handler.configuration.headStyle, body: .memory(nothing),
        closes: handler.isDraining)
      log(204, 0, nil, error: nil)
      return queue(response, status: 204, bytes: 0)
    } catch {
      return refuse(error)
    }
  }

  /// The fields that a page's request may carry beside those that need no leave.
  private func requestFields(of route: Route?) -> [String] {
    var names = [
      "X-Operation-Key", "Priority", "Cache-Control", "If-None-Match", "If-Modified-Since",
    ]
    if route?.isForOperators == true { names += ["Authorization", "Content-Type"] }
    for name in client.target?.forwarding?.names ?? []
    where !names.contains(where: { $0.lowercased() == name.lowercased() }) {
      names.append(name)
    }
    return names
  }

  /// Adds what every answer carries.
  func addCommon(to head: inout ResponseHead, vary: String?) {
    let policy = handler.crossOrigin
    if let vary = policy.vary(with: vary) { head.add("Vary", vary) }
    head.addCommon()
    policy.add(to: &head, page: policy.page(on: connection))
  }
}
