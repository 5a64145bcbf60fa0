// WireWriter: encodes and decodes the values of a message, little-endian and with all checks.

/// An encoder of messages.
struct WireWriter {
  /// The encoded bytes so far.
  private(set) var bytes: [UInt8] = []

  /// Starts a message with the version and the kind.
  init(_ kind: WireKind) {
    bytes.reserveCapacity(256)
    bytes.append(WireKind.version)
    bytes.append(kind.rawValue)
  }

  mutating func put<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func put(_ number: Double) { put(number.bitPattern) }

  mutating func put(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// Appends a text. Text beyond `longestText` bytes is cut off.
  mutating func put(_ text: String) {
    var kept = text
    if kept.utf8.count > WireKind.longestText {
      kept = String(decoding: kept.utf8.prefix(WireKind.longestText - 3), as: UTF8.self)
    }
    put(UInt16(kept.utf8.count))
    bytes.append(contentsOf: kept.utf8)
  }

  /// Appends the index of `value` among all values of its type.
  mutating func put<Value: CaseIterable & Equatable>(_ value: Value) {
    bytes.append(UInt8(Value.allCases.prefix { $0 != value }.count))
  }

  mutating func put<Value>(_ value: Value?, body: (inout WireWriter, Value) -> Void) {
    put(value != nil)
    if let value { body(&self, value) }
  }
}

/// A decoder of messages. It throws for every invalid value.
struct WireReader {
  private let bytes: [UInt8]
  private var position = 0

  /// The kind of the message.
  let kind: WireKind

  /// Starts to decode a message.
  init(_ bytes: [UInt8]) throws(WireError) {
    guard bytes.count >= 2 else { throw .malformed("it has \(bytes.count) bytes") }
    guard bytes[0] == WireKind.version else {
      throw .malformed("version \(bytes[0]), not \(WireKind.version)")
    }
    guard let kind = WireKind(rawValue: bytes[1]) else { throw .malformed("kind \(bytes[1])") }
    self.bytes = bytes
    self.kind = kind
    position = 2
  }

  mutating func number<Number: FixedWidthInteger>(_: Number.Type) throws(WireError) -> Number {
    let size = Number.bitWidth / 8
    guard bytes.count - position >= size else { throw .malformed("it ends too early") }
    var value = Number.zero
    for index in (position..<position + size).reversed() {
      value = value << 8 | Number(truncatingIfNeeded: bytes[index])
    }
    position += size
    return value
  }

  /// Reads a 64-bit number and checks that it is within `range`.
  mutating func integer(_ name: String, in range: ClosedRange<Int>) throws(WireError) -> Int {
    let value = try number(Int64.self)
    guard range.contains(Int(value)) else { throw .malformed("\(name) is \(value)") }
    return Int(value)
  }

  /// Reads a finite number and checks that it is within `range`.
  mutating func double(_ name: String, in range: ClosedRange<Double>) throws(WireError) -> Double {
    let value = Double(bitPattern: try number(UInt64.self))
    guard range.contains(value) else { throw .malformed("\(name) is \(value)") }
    return value
  }

  mutating func flag(_ name: String) throws(WireError) -> Bool {
    switch try number(UInt8.self) {
    case 0: return false
    case 1: return true
    case let other: throw .malformed("\(name) is \(other)")
    }
  }

  mutating func text(_ name: String) throws(WireError) -> String {
    let count = Int(try number(UInt16.self))
    guard count <= WireKind.longestText, bytes.count - position >= count else {
      throw .malformed("\(name) has \(count) bytes")
    }
    guard let text = String(validating: bytes[position..<position + count], as: UTF8.self) else {
      throw .malformed("\(name) is not UTF-8")
    }
    position += count
    return text
  }

  mutating func value<Value: CaseIterable>(
    _ name: String, of _: Value.Type
  ) throws(WireError) -> Value {
    let index = Int(try number(UInt8.self))
    guard let value = Value.allCases.dropFirst(index).first else {
      throw .malformed("\(name) is \(index)")
    }
    return value
  }

  mutating func optional<Value>(
    _ name: String, body: (inout WireReader) throws(WireError) -> Value
  ) throws(WireError) -> Value? {
    try flag(name) ? try body(&self) : nil
  }

  /// Checks that all bytes were read.
  func end() throws(WireError) {
    guard position == bytes.count else {
      throw .malformed("\(bytes.count - position) bytes too many")
    }
  }
}

/// The kinds of messages and the limits of all messages.
enum WireKind: UInt8 {
  /// To the worker: a job.
  case job = 1
  /// From the worker, once: ready for jobs.
  case ready = 2
  /// From the worker: the result of a job.
  case result = 3
  /// From the worker: the failure of a job.
  case failure = 4
  /// From the worker: it would take long, and was to be made only if it does not.
  case takesLong = 5

  /// Grows with every change to a message, so that a server never talks to a worker of another build.
  static let version: UInt8 = 11
  /// Longest text in a message, in bytes.
  static let longestText = 2_048
  /// Maximum length of a message in bytes: at most three texts and a few hundred bytes of numbers.
  static let longestMessage = 8_192
}
