// BucketVariantsTests: entries of the bucket as untrusted bytes.

import Model
import Platform
import Testing

@testable import Sharing

@Suite struct BucketVariantsTests {
  private let mark = SharedMark(epoch: "abc", milliseconds: 1_700_000_000_000, number: 3)
  private let expires = UnixTime(seconds: 2_000)

  private var entry: [UInt8] { BucketVariants.entry([1, 2, 3], mark, expires: expires) }

  /// Returns the content that an entry passes on, and its mark; `nil` if it is refused.
  private func read(_ bytes: [UInt8], at seconds: Int) throws -> ([UInt8], SharedMark)? {
    var content: [UInt8]?
    let variant = Variant(
      key: ImageRequest(
        source: try SourceURL(parsing: "http://origin/a.jpg"), transform: Transform()
      ).key,
      info: VariantInfo(
        .image(RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
        etag: "\"1\"", freshness: Freshness(receivedAt: .now, lifetime: 600)),
      body: .memory([UInt8]([1]).withUnsafeBytes { ImageBytes(copying: $0) }))
    let look = bytes.withUnsafeBytes {
      BucketVariants.read($0, at: UnixTime(seconds: seconds)) {
        content = Array($0)
        return variant
      }
    }
    guard case .found(let mark, _) = look else { return nil }
    return content.map { ($0, mark) }
  }

  @Test func `an entry is read until it expires`() throws {
    let (content, mark) = try #require(try read(entry, at: 1_999))
    #expect(content == [1, 2, 3] && mark == self.mark)
    #expect(try read(entry, at: 2_000) == nil)
  }

  @Test func `any other byte and any other length is refused`() throws {
    for index in entry.indices where !(2..<21).contains(index) {
      var damaged = entry
      damaged[index] ^= 0x41
      #expect(try read(damaged, at: 0) == nil, "byte \(index)")
    }
    for count in entry.indices { #expect(try read(Array(entry.prefix(count)), at: 0) == nil) }
    #expect(try read(entry + [0], at: 0) == nil)
  }

  @Test func `entries of Redis are rejected in the bucket, and the other way round`() throws {
    #expect(try read(SharedEntry.bytes(mark, [UInt8](repeating: 9, count: 20)), at: 0) == nil)
    #expect(try read(SharedEntry.bytes(mark, [], as: .inBucket), at: 0) == nil)
    #expect(SharedEntry.read(entry) == nil)
    #expect(SharedEntry.read(SharedEntry.bytes(mark, [], as: .inBucket)) == nil)
  }
}
