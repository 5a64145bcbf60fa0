// Span: one timed piece of work of a distributed trace, as collectors get it.

/// A piece of work with its real start and end. Only sampled work has one.
public struct Span: Hashable, Sendable {
  /// What a span is about. The numbers are OTLP's.
  public enum Kind: Int, Sendable {
    /// A request to this server.
    case server = 2
    /// A request of this server to another one.
    case client = 3
  }

  /// The span's ids.
  public let context: TraceContext
  /// What it is about.
  public let kind: Kind
  /// The name: one of few.
  public let name: String
  /// The start, in nanoseconds since 1970.
  public let start: Int
  /// The end, in nanoseconds since 1970; not before `start`.
  public let end: Int
  /// Whether the work failed, as far as it was this server's to succeed.
  public let isError: Bool
  /// What is known about it.
  public let attributes: [SpanAttribute]

  /// Creates a span. An end before the start, after the clock was set, becomes the start.
  public init(
    _ context: TraceContext, _ kind: Kind, name: String, start: Int, end: Int, isError: Bool,
    attributes: [SpanAttribute]
  ) {
    self.context = context
    self.kind = kind
    self.name = name
    self.start = start
    self.end = max(start, end)
    self.isError = isError
    self.attributes = attributes
  }
}

/// A named value of a span.
public struct SpanAttribute: Hashable, Sendable {
  /// A value.
  public enum Value: Hashable, Sendable {
    /// A text.
    case text(String)
    /// A whole number.
    case integer(Int)
    /// A finite number.
    case number(Double)
  }

  /// The maximum length of a text, in bytes.
  public static let longest = 512

  /// The name, by OpenTelemetry's semantic conventions; `pictor.…` for others.
  public let name: String
  /// The value.
  public let value: Value

  /// Creates an attribute with a text, which is cut at `longest`.
  public init(_ name: String, _ text: String) {
    self.name = name
    let isLong = text.utf8.count > Self.longest
    value = .text(isLong ? String(decoding: text.utf8.prefix(Self.longest), as: UTF8.self) : text)
  }

  /// Creates an attribute with a whole number.
  public init(_ name: String, _ integer: Int) {
    self.name = name
    value = .integer(integer)
  }

  /// Creates an attribute with a finite number.
  public init(_ name: String, _ number: Double) {
    self.name = name
    value = .number(number)
  }

  /// Creates attributes of the measured stages, in milliseconds: `pictor.stage.decode_ms`.
  public static func stages(_ timings: Timings) -> [SpanAttribute] {
    var attributes: [SpanAttribute] = []
    timings.forEachStage { stage, duration in
      attributes.append(
        SpanAttribute("pictor.stage.\(stage.rawValue)_ms", duration / .milliseconds(1)))
    }
    return attributes
  }
}

/// Receives the spans of sampled work.
public protocol SpanSink: Sendable {
  /// Takes an ended span. Never blocks.
  func add(_ span: Span)
}
