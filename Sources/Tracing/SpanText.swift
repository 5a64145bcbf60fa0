// SpanText: spans as OTLP/JSON, the JSON form of a request to export them.

import Core

/// Writes requests to export spans (opentelemetry-proto, "OTLP/JSON"): ids in hexadecimal digits,
/// 64-bit integers as texts, enumerations as numbers.
struct SpanText: Sendable {
  private let head: String
  private static let tail = "]}]}]}"

  /// Prepares what all requests begin with.
  init(instance: String) {
    let resource = [
      SpanAttribute("service.name", "pictor"), SpanAttribute("service.version", pictorVersion),
      SpanAttribute("service.instance.id", instance),
    ]
    head =
      "{\"resourceSpans\":[{\"resource\":{\"attributes\":\(Self.text(resource))},"
      + "\"scopeSpans\":[{\"scope\":{\"name\":\"pictor\",\"version\":\(Self.quoted(pictorVersion))},"
      + "\"spans\":["
  }

  func body(of spans: [Span]) -> [UInt8] {
    Array((head + spans.map(Self.text).joined(separator: ",") + Self.tail).utf8)
  }

  /// The flag that says that the next one has a meaning, and the flag of a parent in another
  /// process (`SpanFlags`).
  private static let knowsParent = 0x100, hasRemoteParent = 0x200

  private static func text(_ span: Span) -> String {
    let context = span.context
    let isRemote = span.kind == .server && context.parent != nil
    let flags = Int(context.flags) | knowsParent | (isRemote ? hasRemoteParent : 0)
    var text = "{\"traceId\":\"\(context.traceID)\",\"spanId\":\"\(context.spanID)\","
    if let parent = context.parentID { text += "\"parentSpanId\":\"\(parent)\"," }
    if !context.state.isEmpty { text += "\"traceState\":\(quoted(context.state))," }
    text += "\"flags\":\(flags),\"name\":\(quoted(span.name)),\"kind\":\(span.kind.rawValue),"
    text += "\"startTimeUnixNano\":\"\(span.start)\",\"endTimeUnixNano\":\"\(span.end)\","
    text += "\"attributes\":\(Self.text(span.attributes)),"
    // 0: unset, 2: error.
    return text + "\"status\":{\"code\":\(span.isError ? 2 : 0)}}"
  }

  private static func text(_ attributes: [SpanAttribute]) -> String {
    let members = attributes.map { attribute in
      let value =
        switch attribute.value {
        case .text(let text): "\"stringValue\":\(quoted(text))"
        case .integer(let integer): "\"intValue\":\"\(integer)\""
        case .number(let number): "\"doubleValue\":\(number.isFinite ? number : 0)"
        }
      return "{\"key\":\(quoted(attribute.name)),\"value\":{\(value)}}"
    }
    return "[" + members.joined(separator: ",") + "]"
  }

  /// Returns a JSON string (RFC 8259, section 7).
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        result += "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
