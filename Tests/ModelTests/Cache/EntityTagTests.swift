// EntityTagTests: tests that an entity tag keeps its text, in whatever form it is stored.

import Core
import Testing

struct EntityTagTests {
  private static let digest = "\"0123456789abcdef0123456789abcdef\""

  private func text(of tag: EntityTag) -> String {
    tag.withUTF8 { String(decoding: $0, as: UTF8.self) }
  }

  @Test(arguments: [
    digest, "\"00000000000000000000000000000000\"", "\"ffffffffffffffffffffffffffffffff\"",
    "\"fedcba98765432100000000000000001\"",
  ])
  func `a digest keeps its text and takes no memory of its own`(digest: String) {
    let tag = EntityTag(digest)
    #expect(tag.description == digest && text(of: tag) == digest && tag.heldBytes == 0)
    #expect(Array(digest.utf8).withUnsafeBytes { EntityTag(utf8: $0) } == tag)
  }

  @Test(arguments: [
    "", "\"", "\"\"", "\"e\"", "\"fedcba9876543210\"", "W/" + digest, "é", digest.uppercased(),
    String(digest.dropLast()), String(digest.dropFirst()), digest + "\"", "\"" + digest,
    "'0123456789abcdef0123456789abcdef'", "0123456789abcdef0123456789abcdef01",
  ])
  func `any other text is kept as it is`(other: String) {
    let tag = EntityTag(other)
    #expect(tag.description == other && text(of: tag) == other)
    #expect(tag.heldBytes == other.utf8.count)
    #expect(Array(other.utf8).withUnsafeBytes { EntityTag(utf8: $0) } == tag)
  }

  @Test func `a byte that is no digit makes another text at each position`() {
    for position in Self.digest.utf8.indices {
      for byte in [0x2f, 0x3a, 0x60, 0x67, 0x41, 0x22, 0, 0x7f] as [UInt8] {
        var bytes = Array(Self.digest.utf8)
        let offset = Self.digest.utf8.distance(from: Self.digest.startIndex, to: position)
        guard bytes[offset] != byte else { continue }
        bytes[offset] = byte
        let tag = bytes.withUnsafeBytes { EntityTag(utf8: $0) }
        #expect(tag != EntityTag(Self.digest) && Array(tag.description.utf8) == bytes)
      }
    }
  }

  @Test func `tags are equal if their texts are`() {
    let texts = [
      Self.digest, String(Self.digest.reversed()), Self.digest.uppercased(), "\"e\"", "\"f\"",
    ]
    #expect(Set(texts.map { EntityTag($0) }).count == texts.count)
    for text in texts { #expect(EntityTag(text) == EntityTag(text)) }
  }
}
