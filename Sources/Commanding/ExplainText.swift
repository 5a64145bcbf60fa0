// ExplainText: an explanation as text for a terminal.

import Core

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
  private let explanation: Explanation

  private enum CodingKeys: CodingKey {
    case url, rule, transform, format, client
  }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    url = try members.decode(String.self, forKey: .url)
    rule = try members.decodeIfPresent(Rule.self, forKey: .rule)
    transform = try members.decode(String.self, forKey: .transform)
    format = try members.decode(Format.self, forKey: .format)
    client = try members.decode(Client.self, forKey: .client)
    explanation = try Explanation(from: decoder)
  }

  /// The lines, each with its line break.
  var text: String {
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
  /// The entry in words.
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
  /// The state in words.
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
  /// The answer in words.
  fileprivate var text: String {
    if let status { return "\(status) \(code ?? "")" }
    return "Cache-Status: \(cacheStatus ?? "")" + (isCollapsed ? "…; collapsed" : "")
  }
}
