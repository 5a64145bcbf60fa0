// PictorOperator: what an operator asks of a running pictor, and the events it is told.

import FoundationEssentials
import Model
import TestSupport

extension PictorProcess {
  /// The secret of the tests' operator.
  static let token = "an-operators-secret"
  /// What a server is started with that has an operator.
  static let operated = ["--admin.tokens", token]

  /// An operator's request over a connection of its own.
  func operate(_ method: String, _ target: String, body: String? = nil) throws -> HTTPAnswer {
    try connect().request(
      method, target, headers: ["Authorization": "Bearer " + Self.token],
      body: body.map { Array($0.utf8) })
  }

  /// What `/admin/failed` lists.
  func failedURLs() throws -> [FailedURL] {
    try JSONDecoder().decode(
      [String: [FailedURL]].self, from: Data(try operate("GET", "/admin/failed").body))["failed"]
      ?? []
  }

  /// What `/admin/downloads` lists.
  func downloads() throws -> [DownloadStatus] {
    try JSONDecoder().decode(
      [String: [DownloadStatus]].self, from: Data(try operate("GET", "/admin/downloads").body))[
        "downloads"] ?? []
  }

  /// Begins with a list; what it is answered with.
  func prefetch(_ lines: [String], _ query: String = "") throws -> PrefetchStatus {
    let answer = try operate(
      "POST", "/admin/prefetch" + query, body: lines.joined(separator: "\n"))
    guard answer.status == 202 else { throw Failure(description: answer.text) }
    return try JSONDecoder().decode(PrefetchStatus.self, from: Data(answer.body))
  }

  /// How far a prefetch is.
  func prefetchStatus(_ id: String) throws -> PrefetchStatus {
    try JSONDecoder().decode(
      PrefetchStatus.self, from: Data(try operate("GET", "/admin/prefetch/" + id).body))
  }

  /// Asks for an image without reading the answer, which the connection that is returned will have.
  func ask(
    _ target: String, headers: KeyValuePairs<String, String> = [:], timeout: Int = 20
  ) throws -> HTTPClient {
    let client = try connect(timeout: timeout)
    try client.send(HTTPClient.text("GET", target, headers: headers))
    return client
  }

  /// Asks for the events at `target`.
  func events<Content: Decodable>(at target: String) throws -> EventReader<Content> {
    try EventReader(
      of: ask(
        target,
        headers: ["Authorization": "Bearer " + Self.token, "Accept": "text/event-stream"]))
  }

  /// Waits until a condition holds that `/stats` does not tell of; throws after 20 seconds.
  func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
    try waitFor(what) { _ in (try? condition()) ?? false }
  }
}

/// Server-sent events as they come in, their data read as JSON.
final class EventReader<Content: Decodable> {
  private let client: HTTPClient
  private var isAtEnd = false
  private var text: [UInt8] = []

  /// Reads the head of the answer.
  fileprivate init(of client: HTTPClient) throws {
    self.client = client
    let head = try Self.line(of: client, until: "\r\n\r\n")
    guard head.hasPrefix("HTTP/1.1 200"), head.contains("text/event-stream") else {
      throw PictorProcess.Failure(description: head)
    }
  }

  /// The next event; `nil` at the end of the stream.
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
      let size = Int(try Self.line(of: client, until: "\r\n"), radix: 16) ?? 0
      text += try client.read(size)
      _ = try client.read(2)
      isAtEnd = size == 0
    }
  }

  /// All events up to the first that is as wanted, that one included.
  func events(until isLast: (Content) -> Bool) throws -> [Content] {
    var events: [Content] = []
    while let event = try next() {
      events.append(event)
      if isLast(event) { return events }
    }
    throw PictorProcess.Failure(description: "the events ended: \(events)")
  }

  private static func line(of client: HTTPClient, until end: String) throws -> String {
    var line: [UInt8] = []
    while !line.suffix(end.utf8.count).elementsEqual(end.utf8) { line += try client.read(1) }
    return String(decoding: line.dropLast(end.utf8.count), as: UTF8.self)
  }
}
