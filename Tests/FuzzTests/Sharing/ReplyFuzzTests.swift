// ReplyFuzzTests: replies of Redis and shared entries, damaged.

import Caching
import Core
import TestSupport
import Testing

@testable import Sharing

extension RedisReply {
  /// The reply in the protocol's form (RESP2).
  fileprivate var bytes: [UInt8] {
    switch self {
    case .status(let text): Array("+\(text)\r\n".utf8)
    case .bytes(let bytes): Array("$\(bytes.count)\r\n".utf8) + bytes + Array("\r\n".utf8)
    case .integer(let number): Array(":\(number)\r\n".utf8)
    case .list(let list): Array("*\(list.count)\r\n".utf8) + list.flatMap(\.bytes)
    case .none: Array("$-1\r\n".utf8)
    case .error(let error): Array("-\(error.description)\r\n".utf8)
    }
  }

  /// Elements, nested ones included, and how deep they are.
  fileprivate var size: (elements: Int, depth: Int) {
    guard case .list(let list) = self else { return (0, 0) }
    return list.reduce((list.count, 1)) { sum, element in
      let (elements, depth) = element.size
      return (sum.0 + elements, max(sum.1, depth + 1))
    }
  }
}

@Suite(.onOwnThreads) struct ReplyFuzzTests {
  private static let limit = 1 << 16
  private static let words = ["*", "$", ":", "+", "-", "\r\n", "*1\r\n", "$-1\r\n", "9999999999"]
    .map { Array($0.utf8) }

  /// A reply of any kind, nested by at most `depth`.
  private static func reply(depth: Int, _ generator: inout SeededGenerator) -> RedisReply {
    switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &generator) {
    case 0: return .status("OK")
    case 1: return .integer(.random(in: (.min)...(.max), using: &generator))
    case 2: return .none
    case 3: return .error(RedisError("OOM no room".utf8))
    case 4:
      let count = Int.random(in: 0...40, using: &generator)
      return .bytes((0..<count).map { _ in .random(in: 0...255, using: &generator) })
    default:
      let count = Int.random(in: 0...4, using: &generator)
      return .list((0..<count).map { _ in reply(depth: depth - 1, &generator) })
    }
  }

  /// Parses bytes in pieces.
  private static func parse(
    _ bytes: [UInt8], _ generator: inout SeededGenerator
  ) throws -> [RedisReply] {
    var parser = try ReplyParser(limit: limit)
    var replies: [RedisReply] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(Int.random(in: 1...64, using: &generator)))
      rest = rest.dropFirst(piece.count)
      try parser.feed(piece, count: piece.count)
      while let reply = try parser.next() { replies.append(reply) }
    }
    return replies
  }

  @Test func `replies of any kind are read back the same, in pieces`() throws {
    for seed in FuzzSeeds.run(usual: 2_000) {
      var generator = SeededGenerator(seed: seed)
      let sent = (0..<3).map { _ in Self.reply(depth: 6, &generator) }
      let read = try Self.parse(sent.flatMap(\.bytes), &generator)
      #expect(read == sent, "seed \(seed)")
    }
  }

  @Test func `damaged replies are refused, or stay within all bounds`() throws {
    var read = 0
    var refused = 0
    try Fuzz.run(
      "replies", usual: 4_000,
      make: { generator in
        var bytes = (0..<3).flatMap { _ in Self.reply(depth: 6, &generator).bytes }
        Damage.apply(to: &bytes, words: Self.words, using: &generator)
        return bytes
      },
      check: { bytes in
        var generator = SeededGenerator(seed: UInt64(bytes.count))
        let replies: [RedisReply]
        do { replies = try Self.parse(bytes, &generator) } catch is RedisError {
          refused += 1
          return
        }
        read += 1
        for reply in replies {
          let (elements, depth) = reply.size
          try hold(elements <= ReplyParser.elements, "\(elements) elements")
          try hold(depth <= 8, "lists in lists, \(depth) deep")
        }
      })
    #expect(read > 0 && refused > 0)
  }

  @Test func `lists that only nest are refused`() throws {
    var generator = SeededGenerator(seed: 1)
    for count in [9, 1_000, 60_000] {
      let bytes = Array(String(repeating: "*1\r\n", count: count).utf8)
      #expect(throws: RedisError.self) { try Self.parse(bytes, &generator) }
    }
  }
}

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
        let read = bytes.withUnsafeBytes { buffer in
          SharedEntry.parse(buffer).map { ($0.kind, $0.mark, Array($0.content)) }
        }
        guard let (kind, found, content) = read, kind == .whole else { return }
        // The checksum is of the content alone. Another mark cannot come back as this one.
        try hold(
          content == Array("content".utf8) && (found == mark) == (bytes == entry),
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
