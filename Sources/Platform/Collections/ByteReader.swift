// ByteReader: reads numbers and parts of untrusted bytes, with bounds checks.

/// Thrown by a read past the last byte.
public struct EndOfBytes: Error, Hashable, Sendable {
  /// Creates the error.
  @inlinable public init() {}
}

/// Reads numbers and parts of bytes, in sequence or by offset.
///
/// Each read is checked, because `UnsafeRawBufferPointer` checks nothing in an optimized build. A
/// read that fails does not move the position.
public struct ByteReader {
  /// The order of a number's bytes.
  public enum ByteOrder: Sendable {
    /// The most significant byte comes first.
    case big
    /// The least significant byte comes first.
    case little
  }

  /// All bytes; the caller keeps their memory valid.
  public let bytes: UnsafeRawBufferPointer
  /// The byte order of numbers.
  public let order: ByteOrder
  /// The offset of the next byte. It may be set to any offset, and reads past the end throw.
  public var position: Int

  /// Creates a reader.
  ///
  /// - Parameters:
  ///   - bytes: the bytes, which must outlive the reader.
  ///   - position: the offset of the first byte to read.
  ///   - order: the byte order of numbers.
  @inlinable public init(
    _ bytes: UnsafeRawBufferPointer, at position: Int = 0, order: ByteOrder = .big
  ) {
    self.bytes = bytes
    self.position = position
    self.order = order
  }

  /// The number of bytes left.
  @inlinable public var left: Int { max(bytes.count - position, 0) }

  /// Whether no bytes are left.
  @inlinable public var isAtEnd: Bool { left == 0 }

  /// Returns a part of the bytes, and does not move the position.
  @inlinable public func part(
    at offset: Int, count: Int
  ) throws(EndOfBytes) -> UnsafeRawBufferPointer {
    // Subtracts instead of adding, because a sum of untrusted values may overflow.
    guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else {
      throw EndOfBytes()
    }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// Returns an unsigned number, and does not move the position. A value above `Int.max` is
  /// returned as `Int.max`.
  ///
  /// - Parameter width: the number of bytes, 0–8.
  @inlinable public func number(at offset: Int, width: Int) throws(EndOfBytes) -> Int {
    let digits = try part(at: offset, count: width)
    var value: UInt64 = 0
    for index in 0..<width {
      value = value << 8 | UInt64(digits[order == .big ? index : width - 1 - index])
    }
    return Int(clamping: value)
  }

  /// Reads the next bytes.
  @inlinable public mutating func take(_ count: Int) throws(EndOfBytes) -> UnsafeRawBufferPointer {
    let part = try part(at: position, count: count)
    position += count
    return part
  }

  /// Reads the next bytes as a reader of their own, with the same byte order.
  @inlinable public mutating func reader(of count: Int) throws(EndOfBytes) -> ByteReader {
    ByteReader(try take(count), order: order)
  }

  /// Reads the next unsigned number. A value above `Int.max` is returned as `Int.max`.
  ///
  /// - Parameter width: the number of bytes, 0–8.
  @inlinable public mutating func number(_ width: Int) throws(EndOfBytes) -> Int {
    let number = try number(at: position, width: width)
    position += width
    return number
  }

  /// Reads the next byte.
  @inlinable public mutating func byte() throws(EndOfBytes) -> UInt8 {
    let byte = try peek()
    position += 1
    return byte
  }

  /// Returns the next byte, and does not move the position.
  @inlinable public func peek() throws(EndOfBytes) -> UInt8 {
    guard position >= 0, position < bytes.count else { throw EndOfBytes() }
    return bytes[position]
  }

  /// Reads a four-character code. Unprintable characters become question marks.
  public mutating func name() throws(EndOfBytes) -> String {
    String(decoding: try take(4).map { (32...126).contains($0) ? $0 : 63 }, as: UTF8.self)
  }

  /// Skips bytes. Returns `false`, and does not move, if fewer are left.
  @inlinable @discardableResult public mutating func skip(_ count: Int) -> Bool {
    (try? take(count)) != nil
  }
}
