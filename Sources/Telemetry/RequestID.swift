// RequestID: the identifier of a request in its response, in log lines and in error bodies.

import Synchronization

/// The client's or proxy's id of its request (`X-Request-ID`), or a generated one of sixteen
/// hexadecimal digits.
///
/// A generated id is a counter, encrypted with a key of the process. It is unique in a process and
/// practically unique in a fleet. One id tells neither another one nor how many there are. Neither
/// kind takes a lock, a system call or memory.
public struct RequestID: Sendable, CustomStringConvertible {
  /// The length of a generated id in UTF-8 bytes.
  public static let ownLength = 16
  /// The maximum length of a client's id, in bytes.
  public static let longest = 64

  /// Length of the text in UTF-8 bytes.
  public let length: Int
  private var text = InlineArray<64, UInt8>(repeating: 0)

  private static let cipher = BlockCipher(
    key: (0..<4).map { _ in UInt32.random(in: 0...(.max)) })
  private static let count = Atomic<UInt64>(0)

  /// Generates the next id.
  public init() {
    let value = Self.cipher.encrypt(Self.count.wrappingAdd(1, ordering: .relaxed).newValue)
    length = Self.ownLength
    for position in 0..<Self.ownLength {
      text[position] = value.hexadecimalDigit(at: position)
    }
  }

  /// Accepts a client's or proxy's id of 1 to `longest` letters, digits and `-._~:/+=@`; otherwise
  /// returns `nil`. These need no escape in a header, JSON or a shell's quotes.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard (1...Self.longest).contains(bytes.count) else { return nil }
    length = bytes.count
    for (position, byte) in bytes.enumerated() {
      guard byte.isLetter || byte.isDigit || "-._~:/+=@".utf8.contains(byte) else { return nil }
      text[position] = byte
    }
  }

  /// The text.
  public var description: String {
    String(unsafeUninitializedCapacity: length) { buffer in
      write(into: UnsafeMutableRawBufferPointer(buffer))
      return length
    }
  }

  /// Writes the `length` ASCII bytes of the text without allocating.
  public func write(into buffer: UnsafeMutableRawBufferPointer) {
    precondition(buffer.count >= length, "this request id needs \(length) bytes")
    for position in 0..<length { buffer[position] = text[position] }
  }
}

/// Speck64/128 (Beaulieu et al., "The SIMON and SPECK Families of Lightweight Block Ciphers", 2013,
/// section 4). Encrypts one number in about 30 ns, without memory. For identifiers, not for
/// secrets.
struct BlockCipher: Sendable {
  private static let rounds = 27
  private var keys = InlineArray<27, UInt32>(repeating: 0)

  /// Expands a key of four words, the lowest first.
  init(key: [UInt32]) {
    precondition(key.count == 4, "a key has 128 bits")
    var low = key[0]
    var high = [key[1], key[2], key[3]]
    for round in 0..<Self.rounds {
      keys[round] = low
      let next = (low &+ Self.right8(high[round % 3])) ^ UInt32(round)
      high[round % 3] = next
      low = Self.left3(low) ^ next
    }
  }

  /// Encrypts a number: its upper half is the first word.
  func encrypt(_ number: UInt64) -> UInt64 {
    var x = UInt32(truncatingIfNeeded: number >> 32)
    var y = UInt32(truncatingIfNeeded: number)
    for round in 0..<Self.rounds {
      x = (Self.right8(x) &+ y) ^ keys[round]
      y = Self.left3(y) ^ x
    }
    return UInt64(x) << 32 | UInt64(y)
  }

  private static func right8(_ word: UInt32) -> UInt32 { word >> 8 | word << 24 }
  private static func left3(_ word: UInt32) -> UInt32 { word << 3 | word >> 29 }
}
