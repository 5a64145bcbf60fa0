// RequestID: the name of one request in its answer, in log lines and in error bodies.

import Synchronization

/// Sixteen hexadecimal digits: a random part of this process, then a count. Unique in a process, and in a fleet as
/// good as unique; making one takes no lock and no system call.
public struct RequestID: Hashable, Sendable, CustomStringConvertible {
  /// Length of the text in UTF-8 bytes.
  public static let length = 16

  private let value: UInt64

  private static let process = UInt64.random(in: 0...UInt64(UInt32.max)) << 32
  private static let count = Atomic<UInt64>(0)

  /// The next one.
  public init() {
    let next = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    value = Self.process | next & UInt64(UInt32.max)
  }

  /// The text.
  public var description: String {
    String(unsafeUninitializedCapacity: Self.length) { buffer in
      write(into: UnsafeMutableRawBufferPointer(buffer))
      return Self.length
    }
  }

  /// Writes the text's `length` ASCII bytes without allocating.
  public func write(into buffer: UnsafeMutableRawBufferPointer) {
    precondition(buffer.count >= Self.length, "a request id needs \(Self.length) bytes")
    for position in 0..<Self.length {
      let digit = UInt8(value >> UInt64((Self.length - 1 - position) * 4) & 0xf)
      buffer[position] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
  }
}
