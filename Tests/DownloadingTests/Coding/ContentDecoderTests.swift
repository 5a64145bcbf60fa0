// ContentDecoderTests: tests of ContentDecoder with the streams of all libraries.

import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct ContentDecoderTests {
  /// Partly predictable bytes, more than a decoder's output has room for.
  private static let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 7) }

  /// Decodes `coded` in pieces of `size` bytes.
  private func decode(
    _ coded: [UInt8], of coding: TestCoding, size: Int = .max
  ) throws -> (bytes: [UInt8], isSound: Bool, isAtEnd: Bool) {
    let decoder = try #require(ContentCoding(name: coding.name)).makeDecoder()
    var bytes: [UInt8] = []
    var rest = coded[...]
    while !rest.isEmpty {
      // Bytes that end where memory ends
      let piece = try GuardedBytes(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
      let isSound = piece.withBytes { piece in
        decoder.decode(piece) { decoded in
          bytes += decoded
          return true
        }
      }
      guard isSound else { return (bytes, false, decoder.isAtEnd) }
    }
    return (bytes, true, decoder.isAtEnd)
  }

  @Test(arguments: TestCoding.allCases)
  func `coded bytes decode to the same however they are cut`(coding: TestCoding) throws {
    // Given
    let coded = coding.encode(Self.body)
    for size in [1, 2, 3, 1_000, coded.count - 1, coded.count] {
      // When
      let result = try decode(coded, of: coding, size: size)
      // Then
      #expect(result.bytes == Self.body && result.isSound && result.isAtEnd, "\(size)")
    }
  }

  @Test(arguments: TestCoding.allCases)
  func `a stream is at its end after its last byte, and not before`(coding: TestCoding) throws {
    for body in [[], [7], Array(Self.body.prefix(500))] {
      // Given
      let coded = coding.encode(body)
      for count in 1..<coded.count {
        // When
        let result = try decode(Array(coded.prefix(count)), of: coding)
        // Then
        #expect(result.isSound && !result.isAtEnd, "\(count) of \(coded.count)")
        #expect(body.starts(with: result.bytes))
      }
      let whole = try decode(coded, of: coding)
      #expect(whole.bytes == body && whole.isAtEnd)
    }
  }

  @Test(arguments: TestCoding.allCases)
  func `bytes after the end are damage, in the same piece and in the next one`(
    coding: TestCoding
  ) throws {
    // Given
    let coded = coding.encode(Self.body)
    for size in [coded.count, .max] {
      // When
      let result = try decode(coded + [1, 2, 3, 4, 5, 6], of: coding, size: size)
      // Then
      #expect(!result.isSound && result.bytes == Self.body, "\(size)")
    }
  }

  @Test(arguments: TestCoding.allCases)
  func `damaged bytes are never taken for other ones if the coding has a checksum`(
    coding: TestCoding
  ) throws {
    var random = SeededGenerator(seed: 7)
    let body = Array(Self.body.prefix(3_000))
    let coded = coding.encode(body)
    let hasChecksum = [.gzip, .deflate, .zstd].contains(coding)
    var refused = 0
    for _ in 0..<400 {
      // Given
      var damaged = coded
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<damaged.count, using: &random)
        damaged[place] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
      }
      // When
      let result = try decode(damaged, of: coding, size: .random(in: 1...4_000, using: &random))
      // Then
      let isComplete = result.isSound && result.isAtEnd
      if !isComplete { refused += 1 }
      #expect(!isComplete || result.bytes == body || !hasChecksum)
    }
    #expect(refused > 0)
  }

  @Test func `the two kinds of deflate are told apart`() throws {
    // Given: a raw stream that begins with a stored block whose unused bits look like zlib's method
    let stored: [UInt8] = [0x08, 0x01, 0x00, 0xfe, 0xff, 0x41, 0x03, 0x00]
    // When
    let result = try decode(stored, of: .rawDeflate, size: 1)
    // Then
    #expect(result.bytes == [0x41] && result.isSound && result.isAtEnd)
    // And a zlib stream that wants a dictionary, which is not there, is refused.
    let zlib: [UInt8] = [0x78, 0xbb, 0, 0, 0, 1, 0x03, 0x00, 0, 0, 0, 1]
    #expect(try !decode(zlib, of: .deflate).isSound)
  }
}
