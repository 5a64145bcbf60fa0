// DatedEntryTests: entries of the bucket as untrusted bytes.

import Core
import Testing

@testable import Sharing

@Suite struct DatedEntryTests {
  private let mark = SharedMark(epoch: "abc", milliseconds: 1_700_000_000_000, number: 3)
  private let expires = UnixTime(seconds: 2_000)

  private var entry: [UInt8] { SharedEntry.bytes(mark, [1, 2, 3], expires: expires) }

  /// Returns the content of an entry and its mark; `nil` if it is refused.
  private func read(_ bytes: [UInt8], at seconds: Int) -> ([UInt8], SharedMark)? {
    bytes.withUnsafeBytes { bytes in
      SharedEntry.parse(dated: bytes, at: UnixTime(seconds: seconds)).map {
        (Array($0.content), $0.mark)
      }
    }
  }

  @Test func `an entry is read until it expires`() throws {
    let (content, mark) = try #require(read(entry, at: 1_999))
    #expect(content == [1, 2, 3] && mark == self.mark)
    #expect(read(entry, at: 2_000) == nil)
  }

  @Test func `any other byte and any other length is refused`() throws {
    for index in entry.indices where !(2..<21).contains(index) {
      var damaged = entry
      damaged[index] ^= 0x41
      #expect(read(damaged, at: 0) == nil, "byte \(index)")
    }
    for count in entry.indices { #expect(read(Array(entry.prefix(count)), at: 0) == nil) }
    #expect(read(entry + [0], at: 0) == nil)
  }

  @Test func `entries of Redis are rejected in the bucket, and the other way round`() throws {
    #expect(read(SharedEntry.bytes(mark, [UInt8](repeating: 9, count: 20)), at: 0) == nil)
    #expect(read(SharedEntry.bytes(mark, [], as: .inBucket), at: 0) == nil)
    #expect(SharedEntry.read(entry) == nil)
    #expect(SharedEntry.read(SharedEntry.bytes(mark, [], as: .inBucket)) == nil)
  }
}
