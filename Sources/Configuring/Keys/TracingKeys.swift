// TracingKeys: the keys of distributed traces, `tracing.…`.

import Model
import Platform

extension Configuration {
  /// The keys of distributed traces.
  static let tracingKeys: [ConfigurationKey] = [
    .list(
      "tracing.propagate", at: \.tracing.propagate,
      purpose:
        "hosts whose origins get the traceparent and tracestate of the request that starts a "
        + "download; \"*\": all",
      allowed: sourcePatterns, where: isSourcePattern),
    .text(
      "tracing.endpoint", at: \.tracing.endpoint,
      purpose: "URL of a collector for spans (OTLP/HTTP, JSON), such as "
        + "http://127.0.0.1:4318/v1/traces; empty: none",
      allowed: "an http or https URL with a path, without user and fragment; or nothing",
      where: { $0.isEmpty || isCollector($0) }
    ).atStart,
    .number(
      "tracing.sample", at: \.tracing.sample,
      purpose: "share of requests that are recorded, unless a trusted proxy's traceparent decides",
      in: 0...1),
    ConfigurationKey(
      path: "tracing.headers",
      purpose: "header fields for the collector, by name: literal, env:NAME or file:/path",
      allowed: collectorFields, read: readCollectorFields,
      write: { configuration in
        let fields = configuration.tracing.headers.sorted { $0.key < $1.key }
          .map { "\(ConfigurationKey.quoted($0)): \(ConfigurationKey.quoted($1.text))" }
        return fields.isEmpty ? "{}" : "{ " + fields.joined(separator: ", ") + " }"
      }
    ).atStart,
  ]

  private static let collectorFields =
    "an object of header fields with literal values, env:NAME or file:/path; no fields for framing"
  /// Fields that the exporter and curl set.
  private static let ownFields: Set<String> = [
    "content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "host",
    "expect", "te", "trailer", "upgrade",
  ]

  /// Reads header fields. Messages do not repeat values, which may be secrets.
  private static func readCollectorFields(
    _ configuration: inout Configuration, _ value: RawValue
  ) throws(MemberProblems) -> Bool {
    guard let members = value.map else {
      throw MemberProblems(
        all: [MemberProblem(place: "", description: "not allowed: \(collectorFields)")])
    }
    let wrong = members.filter { name, text in
      let secret = SecretText(text)
      let isSendable = secret.isReference || HeaderField(name, value: text) != nil
      return !HeaderField.isName(name) || ownFields.contains(name.lowercased())
        || !secret.isWellFormed || !isSendable
    }
    guard wrong.isEmpty else {
      throw MemberProblems(
        all: wrong.keys.sorted().map {
          MemberProblem(place: "." + $0, description: "not allowed: \(collectorFields)")
        })
    }
    configuration.tracing.headers = members.mapValues { SecretText($0) }
    return true
  }

  /// Whether a text is a URL that spans can be sent to. It is used as it is, not normalized.
  private static func isCollector(_ text: String) -> Bool {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }), text.utf8.count <= 2_048,
      !text.contains("#"), let url = try? SourceURL(parsing: text), url.scheme.isHTTP,
      text.hasPrefix("\(url.scheme.rawValue)://")
    else { return false }
    let rest = text.dropFirst(url.scheme.rawValue.count + 3)
    guard let end = rest.firstIndex(where: { "/?".contains($0) }), rest[end] == "/" else {
      return false
    }
    // An empty port is a missing value, as of a variable.
    return !rest[..<end].hasSuffix(":") && isHost(url.host)
  }

  /// Whether a host is an IP address, or a name that curl does not take for one, like `1.2.3`.
  private static func isHost(_ host: String) -> Bool {
    if IPAddress(host) != nil { return true }
    let labels = host.split(separator: ".")
    return host.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
      default: "-._".utf8.contains(byte)
      }
    } && labels.last?.utf8.allSatisfy { (0x30...0x39).contains($0) } == false
  }
}
