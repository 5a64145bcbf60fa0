// PictorOperator: an operator's requests to a running pictor, and its events.

import Core
import FoundationEssentials
import TestSupport

extension PictorProcess {
  /// The token of the tests' operator.
  static let token = "an-operators-secret"
  /// The options of a server with an operator.
  static let operated = ["--admin.tokens", token]

  /// Sends an operator's request over a separate connection.
  func operate(_ method: String, target: String, body: String? = nil) throws -> HTTPAnswer {
    try connect().request(
      method, target: target, headers: ["Authorization": "Bearer " + Self.token],
      body: body.map { Array($0.utf8) })
  }

  /// The entries of `/admin/failed`.
  func failedURLs() throws -> [FailedURL] {
    try JSONDecoder().decode(
      [String: [FailedURL]].self, from: Data(try operate("GET", target: "/admin/failed").body))[
        "failed"]
      ?? []
  }

  /// The entries of `/admin/downloads`.
  func downloads() throws -> [DownloadStatus] {
    try JSONDecoder().decode(
      [String: [DownloadStatus]].self,
      from: Data(try operate("GET", target: "/admin/downloads").body))[
        "downloads"] ?? []
  }

  /// Starts a prefetch and returns the response.
  func prefetch(_ lines: [String], query: String = "") throws -> PrefetchStatus {
    let answer = try operate(
      "POST", target: "/admin/prefetch" + query, body: lines.joined(separator: "\n"))
    guard answer.status == 202 else { throw Failure(description: answer.text) }
    return try JSONDecoder().decode(PrefetchStatus.self, from: Data(answer.body))
  }

  /// The progress of a prefetch.
  func prefetchStatus(_ id: String) throws -> PrefetchStatus {
    try JSONDecoder().decode(
      PrefetchStatus.self, from: Data(try operate("GET", target: "/admin/prefetch/" + id).body))
  }

  /// Requests an image without reading the response, and returns the connection.
  func ask(
    _ target: String, headers: KeyValuePairs<String, String> = [:], timeout: Int = 20
  ) throws -> HTTPClient {
    let client = try connect(timeout: timeout)
    try client.send(HTTPClient.text("GET", target: target, headers: headers))
    return client
  }

  /// Requests the events at `target`.
  func events<Content: Decodable>(at target: String) throws -> EventReader<Content> {
    try EventReader(
      of: ask(
        target,
        headers: ["Authorization": "Bearer " + Self.token, "Accept": "text/event-stream"]))
  }
}

/// Reads server-sent events, with their data decoded from JSON.
final class EventReader<Content: Decodable> {
  private let client: HTTPClient
  private var isAtEnd = false
  private var text: [UInt8] = []

  /// Reads the head of the response.
  fileprivate init(of client: HTTPClient) throws {
    self.client = client
    let head = try client.read(until: "\r\n\r\n")
    guard head.hasPrefix("HTTP/1.1 200"), head.contains("text/event-stream") else {
      throw PictorProcess.Failure(description: head)
    }
  }

  /// Returns the next event; `nil` at the end of the stream.
  func next() throws -> Content? {
    while true {
      if let end = text.firstRange(of: Array("\n\n".utf8)) {
        let event = String(decoding: text[..<end.lowerBound], as: UTF8.self)
        text.removeSubrange(..<end.upperBound)
        guard let data = event.split(separator: "\n").first(where: { $0.hasPrefix("data: ") })
        else { continue }
        return try JSONDecoder().decode(Content.self, from: Data(data.dropFirst(6).utf8))
      }
      guard !isAtEnd else { return nil }
      let size = Int(try client.read(until: "\r\n").dropLast(), radix: 16) ?? 0
      text += try client.read(size)
      _ = try client.read(2)
      isAtEnd = size == 0
    }
  }

  /// Returns all events up to and including the first that satisfies the condition.
  func events(until isLast: (Content) -> Bool) throws -> [Content] {
    var events: [Content] = []
    while let event = try next() {
      events.append(event)
      if isLast(event) { return events }
    }
    throw PictorProcess.Failure(description: "the events ended: \(events)")
  }

}
