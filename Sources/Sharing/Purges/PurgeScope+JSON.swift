// PurgeScope+JSON: the scope of a purge as text, in the stream and in the journal.

import FoundationEssentials
import Model

/// A scope in JSON: `{"kind":"url","value":"https://example.com/a.jpg"}`. Kinds are those of `DELETE /admin/cache`, and
/// `everything`.
private struct ScopeText: Codable {
  let kind: String
  var value: String?
}

extension PurgeScope {
  /// The longest accepted text, in bytes.
  static let longestJSON = 16_384

  /// The scope as JSON on one line.
  var json: String {
    let text: ScopeText =
      switch self {
      case .url(let url): ScopeText(kind: "url", value: url.text)
      case .prefix(let url): ScopeText(kind: "prefix", value: url.text)
      case .host(let host): ScopeText(kind: "host", value: host.description)
      case .tag(let tag): ScopeText(kind: "tag", value: tag)
      case .everything: ScopeText(kind: "everything")
      }
    // Two texts are always encodable. Everything contains each scope.
    guard let data = try? JSONEncoder().encode(text) else { return "{\"kind\":\"everything\"}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// Parses untrusted JSON. Returns `nil` for anything that `json` does not write.
  init?(json: String) {
    guard json.utf8.count <= Self.longestJSON,
      let text = try? JSONDecoder().decode(ScopeText.self, from: Data(json.utf8))
    else { return nil }
    func url() -> SourceURL? {
      text.value.flatMap { value in
        (try? SourceURL(parsing: value)).flatMap { $0.text == value ? $0 : nil }
      }
    }
    switch text.kind {
    case "url":
      guard let url = url() else { return nil }
      self = .url(url)
    case "prefix":
      guard let url = url() else { return nil }
      self = .prefix(url)
    case "host":
      guard let host = text.value.flatMap({ HostPattern($0) }) else { return nil }
      self = .host(host)
    case "tag":
      guard let tag = text.value else { return nil }
      self = .tag(tag)
    case "everything": self = .everything
    default: return nil
    }
  }
}
