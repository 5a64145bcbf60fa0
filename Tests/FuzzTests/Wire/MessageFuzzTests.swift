// MessageFuzzTests: messages survive their encoding, and damaged ones are refused or canonical.

import Model
import TestSupport
import Testing

@testable import ImagingWire

@Suite(.onOwnThreads) struct MessageFuzzTests {
  @Test func `a job of any values is read back the same`() throws {
    try check(
      "jobs", make: { $0.job() }, encode: { $0.encoded() },
      decode: { bytes throws(WireError) in try JobMessage(decoding: bytes) })
  }

  @Test func `an answer of any values is read back the same`() throws {
    try check(
      "answers", make: { try AnswerMessage(decoding: $0.answer().encoded()) },
      encode: { $0.encoded() },
      decode: { bytes throws(WireError) in try AnswerMessage(decoding: bytes) })
  }

  /// Checks valid messages, then damaged ones: these are malformed, or the encoding of what they
  /// are read as. All fit the receiver's buffer.
  private func check<Message: Equatable>(
    _ name: String, make: (inout SeededGenerator) throws -> Message, encode: (Message) -> [UInt8],
    decode: ([UInt8]) throws(WireError) -> Message
  ) throws {
    var read = 0
    var refused = 0
    try Fuzz.run(
      name, usual: 3_000,
      make: { generator in
        let message = try make(&generator)
        var bytes = encode(message)
        try hold(bytes.count <= WireKind.longestMessage, "\(bytes.count) bytes of \(message)")
        try hold(try decode(bytes) == message, "\(message) is read back otherwise")
        Damage.apply(to: &bytes, using: &generator)
        return bytes
      },
      check: { bytes in
        let message: Message
        do throws(WireError) {
          message = try decode(bytes)
        } catch {
          guard case .malformed = error else { throw error }
          refused += 1
          return
        }
        read += 1
        try hold(encode(message) == bytes, "\(message) has two forms")
      })
    #expect(read > 0 && refused > 0)
  }
}
