// EntryFuzzTests: entries of the shared tier, whose checksum is right and whose content is not.

import Caching
import Model
import Platform
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) struct EntryFuzzTests {
  private static let words = ["\"1\"", "image/jpeg", "http://origin/a.jpg", "max-age=60"]
    .map { Array($0.utf8) }
  private let mark = SharedMark(epoch: "abc", milliseconds: 1_700_000_000_000, number: 3)
  private let key: CacheKey
  private let freshness = Freshness(receivedAt: UnixTime(seconds: 1_000), lifetime: 600)

  init() throws {
    var transform = Transform()
    transform.frame = 7
    key = CacheKey(source: try SourceURL(parsing: "http://origin/a.jpg"), transform: transform)
  }

  /// Damages the content of an entry, and counts how often it is refused and read.
  private func check(
    _ name: String, content: [UInt8], read: ([UInt8]) throws -> Bool
  ) throws {
    #expect(try read(SharedEntry.bytes(mark, content)), "the sound content of \(name)")
    var counts = (read: 0, refused: 0)
    try Fuzz.run(
      name, usual: 3_000,
      make: { generator in
        var content = content
        Damage.apply(to: &content, words: Self.words, using: &generator)
        return content
      },
      check: { content in
        if try read(SharedEntry.bytes(mark, content)) {
          counts.read += 1
        } else {
          counts.refused += 1
        }
      })
    #expect(counts.read > 0 && counts.refused > 0)
  }

  @Test func `frames that are damaged are refused`() throws {
    let entry = SharedEntry.bytes(mark, Array("content".utf8))
    try Fuzz.run(
      "frames", usual: 4_000,
      make: { generator in
        var bytes = entry
        Damage.apply(to: &bytes, using: &generator)
        return bytes
      },
      check: { bytes in
        guard let (found, content) = SharedEntry.read(bytes) else { return }
        // The checksum is of the content alone. Another mark cannot come back as this one.
        try hold(
          Array(content) == Array("content".utf8) && (found == mark) == (bytes == entry),
          "\(found) of damaged bytes")
      })
  }

  @Test func `a variant is refused, or is of its key`() throws {
    let coding = StoredVariantCoding(memory: .unlimited)
    let body: [UInt8] = [0xff, 0xd8, 0xff, 0xe0] + [UInt8](repeating: 1, count: 60)
    let variant = Variant(
      key: key,
      info: VariantInfo(
        .image(RenderedImage(format: .jpeg, size: PixelSize(width: 3, height: 2), density: 1)),
        etag: "\"1\"", freshness: freshness),
      body: .memory(body.withUnsafeBytes { ImageBytes(copying: $0) }))
    let content = try #require(coding.encode(variant))
    try check("variants", content: content) { bytes in
      try bytes.withUnsafeBytes { buffer in
        guard let entry = SharedEntry.parse(buffer),
          let found = coding.decode(entry.content, as: key, generation: 7)
        else { return false }
        try hold(found.key == key && found.info.generation == 7, "another key")
        return true
      }
    }
  }
}
