// PrefetchesEndpoint: lists and starts prefetches; reports, watches and cancels one.

import Core

/// `/admin/prefetch`: GET lists the prefetches, POST starts one for the images that the body lists.
struct PrefetchesEndpoint: Endpoint {
  /// Maximum length of a list, in bytes. The rest of a longer one is read, so that 413 arrives.
  static let maximumListLength = 16 << 20

  let path = EndpointPath.exact("/admin/prefetch")
  let methods: [Method] = [.get, .head, .post]

  func operation(for method: Method) -> Operation? {
    method == .post
      ? Operation(
        summary: "Load a list of images: a URL or a query of /image per line",
        query: ["preset": "Request each line with this preset; may be repeated"],
        body: "text/plain", statuses: [202])
      : Operation(summary: "The prefetches")
  }

  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    method == .post ? .memory(limit: Self.maximumListLength) : .discard
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try context.trail()
    let prefetcher = context.services.prefetcher
    guard context.client.method == .post else {
      _ = try AdminQuery(context.query)
      return .jsonLater { ["prefetches": prefetcher.prefetches()] }
    }
    guard !context.handler.isDraining else { throw .draining }
    let query = try AdminQuery(context.query, repeatable: ["preset"])
    let presets = query.all("preset")
    let list = try context.client.takeBody().bytes()
    let rules = context.policy.operatorRules
    let accepted = context.acceptedFormats
    // Parsed outside the event loop: a long list would delay its other connections.
    return .suspend(.limited) { () async throws(ImageError) in
      let lines = try PrefetchRequestParser.parse(
        list, presets: presets, accepting: accepted, rules: rules)
      let id = try prefetcher.prefetch(lines)
      return .json(
        try JSONResponse(PrefetchStatus(id: id, total: lines.count), status: 202))
    }
  }
}

/// `/admin/prefetch/{id}`: GET reports a prefetch, as JSON or as events; DELETE cancels it.
struct PrefetchEndpoint: Endpoint {
  let path = EndpointPath.item(under: "/admin/prefetch/")
  let methods: [Method] = [.get, .head, .delete]

  func operation(for method: Method) -> Operation? {
    method == .delete
      ? Operation(summary: "Cancel a prefetch")
      : Operation(
        summary: "A prefetch, or its progress as events",
        query: ["interval": "The smallest step of progress, 0 to 1"],
        answers: ["application/json", "text/event-stream"])
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let prefetcher = context.services.prefetcher
    guard context.client.method != .delete else {
      _ = try AdminQuery(context.query)
      guard prefetcher.cancelPrefetch(context.name) else { throw context.notFound }
      return .json(try JSONResponse(["cancelled": true]))
    }
    let query = try AdminQuery(context.query, allowed: ["interval"])
    let interval = try query.fraction("interval") ?? 0.01
    guard let status = prefetcher.prefetchStatus(context.name) else { throw context.notFound }
    guard context.wantsEvents else { return .json(try JSONResponse(status)) }
    return .events(interval: interval) { events in
      let observation = prefetcher.observePrefetch(status.id) { events.report($0) }
      // The prefetch may have ended before the observation began.
      events.report(prefetcher.prefetchStatus(status.id) ?? status)
      return observation
    }
  }
}

/// Parses a list of images, one per line. Skips empty lines and lines that begin with `#`; an
/// invalid line does not affect others.
///
/// A line is a URL or a query of `/image`.
enum PrefetchRequestParser {
  /// Parses the request body.
  ///
  /// - Parameters:
  ///   - presets: preset names; each line is requested once per preset. If empty, lines are
  ///     requested as they are.
  ///   - accepted: the formats that future clients accept.
  ///   - rules: the operator's rules. Request fields are not forwarded, because a list has no
  ///     client.
  /// - Throws: `invalidParameter` for an unknown preset, `tooManyLines` for too many requests.
  static func parse(
    _ body: [UInt8], presets: [String], accepting accepted: AcceptedFormats = AcceptedFormats(),
    rules: RequestRules
  ) throws(ImageError) -> [PrefetchLine] {
    var suffixes: [String] = []
    for name in presets {
      guard rules.presets[name] != nil else {
        throw .invalidParameter(
          name: "preset", value: displayable(name), allowed: rules.presetsAllowed)
      }
      suffixes.append("&preset=" + PercentEncoding.encode(name))
    }
    if suffixes.isEmpty { suffixes = [""] }
    // Count before parsing, so that a list that is too long costs little.
    let lines = body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .enumerated()
      .map { (number: $0.offset + 1, text: $0.element.trimming(while: isBlank)) }
      .filter { !$0.text.isEmpty && $0.text.first != UInt8(ascii: "#") }
    guard lines.count * suffixes.count <= PrefetchLine.maximumCount else {
      throw .tooManyLines(limit: PrefetchLine.maximumCount)
    }
    return lines.flatMap { line in
      suffixes.map { suffix in
        PrefetchLine(
          number: line.number,
          request: request(of: line.text, suffix: suffix, accepted: accepted, rules: rules))
      }
    }
  }

  private static func request(
    of text: ArraySlice<UInt8>, suffix: String, accepted: AcceptedFormats,
    rules: RequestRules
  ) -> Result<ImageRequest, ImageError> {
    do throws(ImageError) {
      guard let line = String(validating: text, as: UTF8.self) else {
        throw .invalidParameter(
          name: "line", value: displayable(text), allowed: "a URL or a query of /image")
      }
      let query = query(of: line)
      let request = try ImageParameter.parse(Array((query + suffix).utf8), rules: rules)
      return .success(rules.request(request, accepting: accepted))
    } catch {
      return .failure(error)
    }
  }

  /// Returns a query unchanged, and a URL as the value of `url`.
  private static func query(of text: String) -> String {
    for prefix in ["/image?", "?"] where text.hasPrefix(prefix) {
      return String(text.dropFirst(prefix.count))
    }
    return text.hasPrefix("url=") ? text : "url=" + PercentEncoding.encode(text)
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
  }
}
