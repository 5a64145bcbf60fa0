// Operating: the handler of the admin endpoints.

import CMicrohttpd
import FoundationEssentials
import Glibc
import Model
import Telemetry

extension RequestContext {
  /// Handles a request to an admin endpoint.
  func operate(_ route: Route, _ target: RequestTarget) -> MHD_Result {
    do throws(ImageError) {
      let operations = handler.operations
      switch (route, client.method) {
      case (.cache, .delete), (.clearCache, _), (.cleanCache, _):
        return try empty(route, target)
      case (.cache, .put): return try put(target)
      case (.cache, _): return try look(target)
      case (.failedURLs, .delete):
        let query = try OperatorQuery(target.query, allowed: ["url"])
        let filter = handler.configuration.keyFilter
        let url = try query["url"].map { text throws(ImageError) in
          filter.keyURL(of: try SourceURL(parsing: text))
        }
        return answerLater { ["removed": operations.manager.removeFailedURLs(url)] }
      case (.failedURLs, _): return answerLater { ["failed": operations.manager.failedURLs()] }
      case (.cancel, _): return answer(["cancelled": operations.manager.cancelAll()])
      case (.pause, _):
        operations.downloads.pause()
        return answer(["paused": true])
      case (.resume, _):
        operations.downloads.resume()
        return answer(["paused": false])
      case (.downloads, _):
        let query = try OperatorQuery(target.query, allowed: ["interval"])
        let interval = try query.fraction("interval") ?? 0
        guard wantsEvents else {
          return answerLater { ["downloads": operations.downloads.downloads()] }
        }
        return try stream(downloads: interval)
      case (.prefetches, .post): return try startPrefetch(target)
      case (.prefetches, _):
        return answerLater { ["prefetches": operations.prefetcher.prefetches()] }
      case (.prefetch, .delete):
        guard operations.prefetcher.cancelPrefetch(target.name ?? "") else {
          throw .notFound(path: displayable(target.path))
        }
        return answer(["cancelled": true])
      case (.prefetch, _):
        let query = try OperatorQuery(target.query, allowed: ["interval"])
        let interval = try query.fraction("interval") ?? 0.01
        guard let status = operations.prefetcher.prefetchStatus(target.name ?? "") else {
          throw .notFound(path: displayable(target.path))
        }
        return wantsEvents ? try stream(prefetch: status, interval) : answer(status)
      default: throw .internal(detail: "a path of operators' that leads nowhere")
      }
    } catch {
      return refuse(error)
    }
  }

  private func startPrefetch(_ target: RequestTarget) throws(ImageError) -> MHD_Result {
    guard !handler.isDraining else { throw .draining }
    let query = try OperatorQuery(target.query, allowed: ["preset"])
    // Parsed outside the event loop: a long list would delay its other connections.
    let (upload, presets) = (client.takeUpload(), query.all("preset"))
    let body = try upload.bytes()
    let (rules, accepted) = (handler.operatorRules, client.worker.accept.formats(on: connection))
    let prefetcher = handler.operations.prefetcher
    return suspend { () async throws(ImageError) in
      let lines = try PrefetchRequestParser.parse(
        body, presets: presets, accepting: accepted, rules: rules)
      let id = try prefetcher.prefetch(lines)
      let status = PrefetchStatus(id: id, total: lines.count)
      return .done(try Self.json(status), status: 202)
    }
  }

  /// Responds with JSON that is gathered and encoded outside the event loop, because it may be
  /// long.
  func answerLater(
    _ content: @escaping @Sendable () async throws(ImageError) -> some Encodable & SendableMetatype
  ) -> MHD_Result {
    suspend(beyondLimit: true) { () async throws(ImageError) in
      .done(try Self.json(try await content()), status: 200)
    }
  }

  /// Responds with JSON.
  private func answer(_ content: some Encodable, status: Int = 200) -> MHD_Result {
    do throws(ImageError) {
      return answer(
        json: try Self.json(content), status: status, error: nil, closes: handler.isDraining)
    } catch {
      return refuse(error)
    }
  }

  /// Encodes JSON in a form that is readable for people and programs.
  static func json(_ content: some Encodable) throws(ImageError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let json = try? encoder.encode(content) else {
      throw .internal(detail: "an answer that cannot be encoded")
    }
    return Array(json) + [UInt8(ascii: "\n")]
  }
}

/// The parameters of an admin endpoint.
struct OperatorQuery {
  private var values: [(name: String, value: String)] = []

  /// Parses a raw query, without its `?`.
  ///
  /// - Throws: `unknownParameter`, or `invalidParameter` for a value that cannot be decoded.
  init(_ query: ArraySlice<UInt8>, allowed: [String]) throws(ImageError) {
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let parts = piece.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = PercentEncoding.decode(parts[0]), allowed.contains(name) else {
        throw .unknownParameter(displayable(parts[0]))
      }
      let raw = parts.count > 1 ? parts[1] : []
      guard let value = PercentEncoding.decode(raw) else {
        throw .invalidParameter(
          name: name, value: displayable(raw),
          allowed: "it is not percent-encoded UTF-8 without NUL")
      }
      values.append((name, value))
    }
  }

  /// The first value of a parameter.
  subscript(_ name: String) -> String? { values.first { $0.name == name }?.value }

  /// Returns all values of a parameter.
  func all(_ name: String) -> [String] { values.filter { $0.name == name }.map(\.value) }

  /// Returns a number from 0 to 1, or `nil` if the parameter is missing.
  ///
  /// - Throws: `invalidParameter` for any other value.
  func fraction(_ name: String) throws(ImageError) -> Double? {
    guard let text = self[name] else { return nil }
    guard let value = Double(text), (0...1).contains(value) else {
      throw .invalidParameter(
        name: name, value: displayable(text), allowed: "a number from 0 to 1")
    }
    return value
  }
}
