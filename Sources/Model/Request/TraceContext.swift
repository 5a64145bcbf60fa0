// TraceContext: the distributed trace that a request belongs to (W3C Trace Context).

/// The place of a span in its trace, for the log, for origins and for exported spans.
///
/// Source of the rules: W3C Trace Context, level 1 (section 3.2) and level 2 (section 3.2.2.5).
public struct TraceContext: Hashable, Sendable {
  /// The first half of the trace id. The two halves are not both 0.
  public let high: UInt64
  /// The second half of the trace id.
  public let low: UInt64
  /// The id of the span above this one, not 0; `nil`: the trace begins here.
  public let parent: UInt64?
  /// The id of this server's own span, not 0. It is the parent of what an origin does.
  public let span = UInt64.random(in: 1...(.max))
  /// The flags that have a meaning: 1 (sampled) and 2 (random trace id). Others are 0, as the
  /// recommendation demands.
  public private(set) var flags: UInt8
  /// The `tracestate` to pass; empty: none.
  public let state: String

  private static let sampledFlag: UInt8 = 1
  private static let randomFlag: UInt8 = 2
}

extension TraceContext {
  /// Parses a `traceparent` field. Returns `nil` for an invalid one.
  ///
  /// Version 00 has four parts: version, trace id, parent id, flags. Later versions may append
  /// parts. Version ff, upper case, and ids of zeros alone are invalid.
  ///
  /// - Parameters:
  ///   - field: the value of the only `traceparent` field.
  ///   - state: the value of all `tracestate` fields, as one list.
  public init?(parent field: [UInt8], state: String = "") {
    guard let parts = field.withUnsafeBytes({ Parts($0) }) else { return nil }
    self.init(
      high: parts.high, low: parts.low, parent: parts.parent, flags: parts.flags,
      state: TraceState.passed(state))
  }

  /// Begins a sampled trace with random ids.
  public init() {
    self.init(
      high: .random(in: 0...(.max)), low: .random(in: 1...(.max)), parent: nil,
      flags: Self.sampledFlag | Self.randomFlag, state: "")
  }

  /// Returns the sampled flag of a `traceparent` field, `nil` if invalid. Does not allocate.
  public static func isSampled(parent field: UnsafeRawBufferPointer) -> Bool? {
    Parts(field).map { $0.flags & sampledFlag != 0 }
  }

  /// Whether the span is recorded.
  public var isSampled: Bool { flags & Self.sampledFlag != 0 }

  /// Returns the same span with another sampled flag.
  public func sampled(_ isSampled: Bool) -> TraceContext {
    var context = self
    context.flags = flags & ~Self.sampledFlag | (isSampled ? Self.sampledFlag : 0)
    return context
  }

  /// Returns a new span below this one.
  public func child() -> TraceContext {
    TraceContext(high: high, low: low, parent: span, flags: flags, state: state)
  }

  /// The span id: 16 hexadecimal digits.
  public var spanID: String { span.hexadecimal(16) }

  /// The id of the span above: 16 hexadecimal digits.
  public var parentID: String? { parent?.hexadecimal(16) }

  /// The trace id: 32 hexadecimal digits.
  public var traceID: String { high.hexadecimal(16) + low.hexadecimal(16) }

  /// The fields for an origin: `traceparent` with this server's span as parent, `tracestate`.
  public var fields: [HeaderField] {
    let parent = "00-\(traceID)-\(spanID)-\(flags.hexadecimal(2))"
    return [
      HeaderField(Self.parentName, value: parent), HeaderField(Self.stateName, value: state),
    ].compactMap(\.self)
  }

  /// The name of the field with the ids.
  public static let parentName = "traceparent"
  /// The name of the field with what other servers note.
  public static let stateName = "tracestate"
}

/// The parts of a valid `traceparent`.
private struct Parts {
  let high, low, parent: UInt64
  /// The flags that have a meaning.
  let flags: UInt8

  init?(_ field: UnsafeRawBufferPointer) {
    // 2 digits, 32, 16 and 2, with a dash after each of the first three.
    let dash = UInt8(ascii: "-")
    guard field.count >= 55, field[2] == dash, field[35] == dash, field[52] == dash,
      let version = UInt64(lowerHexadecimal: field[0..<2]), version != 0xff,
      field.count == 55 || (version != 0 && field[55] == dash),
      let high = UInt64(lowerHexadecimal: field[3..<19]),
      let low = UInt64(lowerHexadecimal: field[19..<35]),
      high != 0 || low != 0, let parent = UInt64(lowerHexadecimal: field[36..<52]), parent != 0,
      let flags = UInt64(lowerHexadecimal: field[53..<55])
    else { return nil }
    self.high = high
    self.low = low
    self.parent = parent
    self.flags = UInt8(flags) & 3
  }
}
