// WireCoder: writes and reads the fields of messages, little-endian and with all checks.

/// A direction of the wire. A message names its fields once, and is written by one coder and read
/// by the other.
protocol WireCoder {
  /// What reading throws. Writing throws nothing.
  associatedtype Failure: Error

  /// Writes a number, or reads it.
  mutating func code<Number: FixedWidthInteger>(_ number: inout Number) throws(Failure)
  /// Writes a text, or reads it. Text beyond `WireKind.longestText` bytes is cut off.
  mutating func code(_ name: String, _ text: inout String) throws(Failure)
  /// Refuses what was read, unless it is right.
  func check(_ isRight: Bool, _ fault: @autoclosure () -> String) throws(Failure)
}

extension WireCoder {
  /// A number of 64 bits within `range`.
  mutating func code(
    _ name: String, _ value: inout Int, in range: ClosedRange<Int>
  ) throws(Failure) {
    var number = Int64(value)
    try code(&number)
    value = Int(number)
    try check(range.contains(value), "\(name) is \(value)")
  }

  /// A number of one byte within `range`.
  mutating func code(
    small name: String, _ value: inout Int, in range: ClosedRange<Int>
  ) throws(Failure) {
    var number = UInt8(clamping: value)
    try code(&number)
    value = Int(number)
    try check(range.contains(value), "\(name) is \(value)")
  }

  /// A finite number within `range`.
  mutating func code(
    _ name: String, _ value: inout Double, in range: ClosedRange<Double>
  ) throws(Failure) {
    var pattern = value.bitPattern
    try code(&pattern)
    value = Double(bitPattern: pattern)
    try check(range.contains(value), "\(name) is \(value)")
  }

  mutating func code(_ name: String, _ flag: inout Bool) throws(Failure) {
    var number: UInt8 = flag ? 1 : 0
    try code(&number)
    flag = number == 1
    try check(number < 2, "\(name) is \(number)")
  }

  /// The index of `value` among all values of its type.
  mutating func code<Value: CaseIterable & Equatable>(
    _ name: String, _ value: inout Value
  ) throws(Failure) {
    var index = UInt8(Value.allCases.prefix { $0 != value }.count)
    try code(&index)
    let found = Value.allCases.dropFirst(Int(index)).first
    try check(found != nil, "\(name) is \(index)")
    value = found ?? value
  }

  /// A value that may be absent.
  ///
  /// - Parameter initial: what the fields of a value are read into.
  mutating func code<Value>(
    _ name: String, _ value: inout Value?, into initial: @autoclosure () -> Value,
    fields: (inout Self, inout Value) throws(Failure) -> Void
  ) throws(Failure) {
    var isPresent = value != nil
    try code(name, &isPresent)
    guard isPresent else {
      value = nil
      return
    }
    var present = value ?? initial()
    try fields(&self, &present)
    value = present
  }

  /// The faces of a source, in pixels.
  mutating func code(faces: inout [PixelArea]?) throws(Failure) {
    try code("faces", &faces, into: []) { coder, faces throws(Failure) in
      var count = faces.count
      try coder.code(small: "faces", &count, in: 0...RenderReport.maximumFaces)
      var coded: [PixelArea] = []
      for index in 0..<count {
        var (x, y, size) = (0, 0, PixelSize(width: 1, height: 1))
        if index < faces.count {
          (x, y, size) = (faces[index].x, faces[index].y, faces[index].size)
        }
        try coder.code("face's x", &x, in: 0...10_000_000)
        try coder.code("face's y", &y, in: 0...10_000_000)
        try size.code(by: &coder, in: 1...10_000_000)
        coded.append(PixelArea(x: x, y: y, size: size))
      }
      faces = coded
    }
  }

  /// A number that may be absent.
  mutating func code(
    _ name: String, _ value: inout Int?, in range: ClosedRange<Int>
  ) throws(Failure) {
    try code(name, &value, into: 0) { coder, value throws(Failure) in
      try coder.code(name, &value, in: range)
    }
  }
}

/// Writes a message.
struct WireWriter: WireCoder {
  /// The bytes so far.
  private(set) var bytes: [UInt8] = []

  /// Starts a message with the version and the kind.
  init(_ kind: WireKind) {
    bytes.reserveCapacity(256)
    bytes.append(WireKind.version)
    bytes.append(kind.rawValue)
  }

  mutating func code<Number: FixedWidthInteger>(_ number: inout Number) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func code(_: String, _ text: inout String) {
    var kept = text
    if kept.utf8.count > WireKind.longestText {
      kept = String(decoding: kept.utf8.prefix(WireKind.longestText - 3), as: UTF8.self)
    }
    var count = UInt16(kept.utf8.count)
    code(&count)
    bytes.append(contentsOf: kept.utf8)
  }

  func check(_: Bool, _: @autoclosure () -> String) {}
}

/// Reads a message. It throws for every invalid value.
struct WireReader: WireCoder {
  private let bytes: [UInt8]
  private var position = 0

  /// The kind of the message.
  let kind: WireKind

  /// Starts to read a message.
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

  mutating func code<Number: FixedWidthInteger>(_ number: inout Number) throws(WireError) {
    let size = Number.bitWidth / 8
    guard bytes.count - position >= size else { throw .malformed("it ends too early") }
    number = 0
    for index in (position..<position + size).reversed() {
      number = number << 8 | Number(truncatingIfNeeded: bytes[index])
    }
    position += size
  }

  mutating func code(_ name: String, _ text: inout String) throws(WireError) {
    var size: UInt16 = 0
    try code(&size)
    let count = Int(size)
    guard count <= WireKind.longestText, bytes.count - position >= count else {
      throw .malformed("\(name) has \(count) bytes")
    }
    guard let read = String(validating: bytes[position..<position + count], as: UTF8.self) else {
      throw .malformed("\(name) is not UTF-8")
    }
    text = read
    position += count
  }

  func check(_ isRight: Bool, _ fault: @autoclosure () -> String) throws(WireError) {
    guard isRight else { throw .malformed(fault()) }
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

  /// Grows with every change to a message, so that a server never talks to a worker of another
  /// build.
  static let version: UInt8 = 13
  /// Longest text in a message, in bytes.
  static let longestText = 2_048
  /// Maximum length of a message in bytes: at most three texts and a few hundred bytes of numbers.
  static let longestMessage = 8_192
}
