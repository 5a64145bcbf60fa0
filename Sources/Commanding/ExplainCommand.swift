// ExplainCommand: prints what a running server would do with a request.

import Core
import FoundationEssentials

extension OperatorCommand {
  /// Deadline in seconds: the server reads at most the heads of a few files.
  private static let explainingTime = 15

  /// `pictor explain URL`: asks and prints. Returns the exit status: 0 with an explanation,
  /// otherwise 1 with a line on standard error.
  public func explain(_ order: ExplainOrder) -> CInt {
    run(needing: [.read]) { client throws(CommandFailure) in
      console.output(try answer(to: order, client))
      return 0
    }
  }

  private func answer(
    to order: ExplainOrder, _ client: ServerClient
  ) throws(CommandFailure) -> String {
    let body = try client.report(at: order.target, seconds: Self.explainingTime)
    guard !order.isJSON else { return PrefetchReport.printableJSON(body) + "\n" }
    let json = Data(body)
    guard let report = try? JSONDecoder().decode(ExplainText.self, from: json),
      let explanation = try? JSONDecoder().decode(Explanation.self, from: json)
    else {
      throw CommandFailure(description: "the server's answer is not an explanation: use --json")
    }
    return report.text(explanation)
  }
}

extension ExplainOrder {
  fileprivate var target: String {
    var query = subject
    if let start = ["/image?", "?"].first(where: subject.hasPrefix) {
      query = String(subject.dropFirst(start.utf8.count))
    } else if subject.hasPrefix("http"), let range = subject.firstRange(of: "/image?"),
      subject[range.upperBound...].split(separator: "&").contains(where: { $0.hasPrefix("url=") })
    {
      // The URL of an image at this server, which names its source; other paths end alike.
      query = String(subject[range.upperBound...])
    } else if !subject.hasPrefix("url=") {
      query = "url=" + PercentEncoding.encode(subject)
    }
    // A space or a line break would end the request's target.
    let safe = query.unicodeScalars.map { scalar in
      (0x21...0x7e).contains(scalar.value) && scalar != "#"
        ? String(scalar) : PercentEncoding.encode(String(scalar))
    }.joined()
    let accept = accept.map { "&accept=" + PercentEncoding.encode($0) } ?? ""
    return "/admin/explain?" + safe + accept
  }
}

/// The used part of the JSON of `/admin/explain`, and its text.
struct ExplainText: Decodable {
  private struct Rule: Decodable {
    let number: Int
    let hosts: String
  }

  private struct Format: Decodable {
    let name: String?
    let negotiated: [String]
    let redirects: Bool
  }

  private struct Client: Decodable {
    let allowed: Bool
    let code: String?
    let message: String?
  }

  private let url: String
  private let rule: Rule?
  private let transform: String
  private let format: Format
  private let client: Client

  /// Returns the lines, each with its line break, with the manager's part of the JSON.
  func text(_ explanation: Explanation) -> String {
    var rows: [(String, String)] = [
      ("image", url),
      ("rule", rule.map { "\($0.number), for \($0.hosts)" } ?? "none"),
      ("transform", transform.isEmpty ? "none" : transform),
      ("format", formatText),
    ]
    if !client.allowed {
      rows.append(("client", "refused, \(client.code ?? ""): \(client.message ?? "")"))
    }
    rows += [
      ("memory", explanation.memory?.text ?? "absent"),
      ("disk", explanation.disk?.text ?? "absent"),
      ("source", explanation.source?.text ?? "absent"),
    ]
    if let said = explanation.source?.originText { rows.append(("origin said", said)) }
    if let origin = explanation.origin { rows.append(("host", origin.text)) }
    for failure in explanation.failures {
      rows.append(("failure", "\(failure.code) \(failure.status), for \(failure.seconds) s more"))
    }
    rows.append(("would", ""))
    rows += explanation.would.map { ("  " + $0.step, "\($0.outcome.rawValue): \($0.why)") }
    if let answer = explanation.answer { rows.append(("answer", answer.text)) }
    return rows.map { PrefetchReport.printable(Self.line($0.0, $0.1)) + "\n" }.joined()
  }

  private var formatText: String {
    let names =
      format.name
      ?? (format.negotiated.isEmpty
        ? "the source's or JPEG" : "negotiated: " + format.negotiated.joined(separator: ", "))
    return names + (format.redirects ? ", after a redirect" : "")
  }

  private static func line(_ name: String, _ value: String) -> String {
    guard !value.isEmpty else { return name }
    return name + String(repeating: " ", count: max(18 - name.count, 1)) + value
  }
}

extension ExplainedEntry {
  fileprivate var text: String {
    let life = ttl > 0 ? "fresh for \(ttl) s" : "stale for \(ttl.magnitude) s"
    var parts = ["\(bytes) bytes", "age \(age) s", life]
    if ttl <= 0 || use != .fresh {
      parts.append(use == .no ? "not usable without the origin" : "usable: \(use.rawValue)")
    }
    if let etag { parts.append("ETag \(etag)") }
    if let lastModified { parts.append("Last-Modified \(lastModified)") }
    return parts.joined(separator: ", ")
  }

  /// What the origin said, in words.
  fileprivate var originText: String? {
    guard let origin else { return nil }
    var parts = ["\(origin.status)"]
    if let value = origin.targetedControl { parts.append("CDN-Cache-Control: \(value)") }
    if let value = origin.cacheControl { parts.append("Cache-Control: \(value)") }
    if let value = origin.expires { parts.append("Expires: \(value)") }
    if let value = origin.contentType { parts.append("Content-Type: \(value)") }
    if let value = origin.date { parts.append("Date: \(value)") }
    return parts.joined(separator: ", ")
  }
}

extension LoadOutlook {
  fileprivate var text: String {
    guard let host else { return "refused: \(refusal ?? "unknown")" }
    var parts = [host, "circuit \(circuit.rawValue)"]
    if let seconds = opensAgain { parts.append("for \(Self.whole(seconds)) s more") }
    if recentFailures > 0 { parts.append("\(recentFailures) failures in a row") }
    parts.append("\(running) running and \(waiting) waiting, at most \(limitPerHost)")
    if isPaused { parts.append("downloads are paused") }
    return parts.joined(separator: ", ")
  }

  /// Rounds seconds up, and to the range of `Int`: another program may have sent them.
  private static func whole(_ seconds: Double) -> Int {
    Int(exactly: seconds.rounded(.up)) ?? (seconds > 0 ? .max : 0)
  }
}

extension ExplainedAnswer {
  fileprivate var text: String {
    if let status { return "\(status) \(code ?? "")" }
    return "Cache-Status: \(cacheStatus ?? "")" + (isCollapsed ? "…; collapsed" : "")
  }
}
