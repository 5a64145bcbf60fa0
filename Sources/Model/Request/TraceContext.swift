// TraceContext: the distributed trace that a request belongs to (W3C Trace Context).

/// The trace of a request, for the log and for origins.
///
/// Source of the rules: W3C Trace Context, level 1 (section 3.2) and level 2 (section 3.2.2.5).
public struct TraceContext: Hashable, Sendable {
  /// The first half of the trace id. The two halves are not both 0.
  public let high: UInt64
  /// The second half of the trace id.
  public let low: UInt64
  /// The id of the client's span, not 0.
  public let parent: UInt64
  /// The id of this server's own span, not 0. It is the parent of what an origin does.
  public let span: UInt64
  /// The flags that have a meaning: 1 (sampled) and 2 (random trace id). Others are 0, as the
  /// recommendation demands.
  public let flags: UInt8
  /// The `tracestate` to pass; empty: none.
  public let state: String

  /// Parses a `traceparent` field. Returns `nil` for an invalid one.
  ///
  /// Version 00 has four parts: version, trace id, parent id, flags. Later versions may append parts.
  /// Version ff, upper case, and ids of zeros alone are invalid.
  ///
  /// - Parameters:
  ///   - field: the value of the only `traceparent` field.
  ///   - state: the value of all `tracestate` fields, as one list.
  public init?(parent field: [UInt8], state: String = "") {
    let parts = field.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[1].count == 32,
      let version = Self.number(parts[0], digits: 2), version != 0xff,
      parts.count == 4 || version != 0,
      let high = Self.number(parts[1].prefix(16), digits: 16),
      let low = Self.number(parts[1].suffix(16), digits: 16), high != 0 || low != 0,
      let parent = Self.number(parts[2], digits: 16), parent != 0,
      let flags = Self.number(parts[3], digits: 2)
    else { return nil }
    self.high = high
    self.low = low
    self.parent = parent
    span = UInt64.random(in: 1...(.max))
    self.flags = UInt8(flags) & 3
    self.state = TraceState.passed(state)
  }

  /// The trace id: 32 hexadecimal digits.
  public var traceID: String { Self.text(high, digits: 16) + Self.text(low, digits: 16) }

  /// The fields for an origin: `traceparent` with this server's span as the parent, and `tracestate`.
  public var fields: [HeaderField] {
    let parent =
      "00-\(traceID)-\(Self.text(span, digits: 16))-\(Self.text(UInt64(flags), digits: 2))"
    return [
      HeaderField(Self.parentName, value: parent), HeaderField(Self.stateName, value: state),
    ].compactMap(\.self)
  }

  /// The name of the field with the ids.
  public static let parentName = "traceparent"
  /// The name of the field with what other servers note.
  public static let stateName = "tracestate"

  private static func number(_ text: ArraySlice<UInt8>, digits: Int) -> UInt64? {
    guard text.count == digits else { return nil }
    var number: UInt64 = 0
    for byte in text {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - 0x30)
      case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(byte - 0x57)
      default: return nil
      }
    }
    return number
  }

  private static func text(_ number: UInt64, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: max(digits - text.utf8.count, 0)) + text
  }
}
