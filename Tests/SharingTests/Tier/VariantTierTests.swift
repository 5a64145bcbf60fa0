// VariantTierTests: what the shared tier asks of Redis when many variants are stored at once.

import Caching
import Core
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) struct VariantTierTests {
  private func variant(_ number: Int) -> Variant {
    let info = VariantInfo(
      .image(RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: EntityTag("\(number)"), freshness: Freshness(receivedAt: .now, lifetime: 3_600))
    let bytes = [UInt8](repeating: 7, count: 1_000).withUnsafeBytes { ImageBytes(copying: $0) }
    return Variant(
      key: CacheKey(text: "https://h/\(number).jpg w=1"), info: info, body: .memory(bytes))
  }

  @Test func `variants are written to Redis one by one, so that look-ups wait behind one`()
    async throws
  {
    // Given a Redis that takes a command and keeps its reply back
    let server = try HostileRedis(.silence)
    let address = try #require(RedisAddress(server.address))
    var configuration = RedisConfiguration(address: address)
    configuration.timeout = .seconds(60)
    let client = try RedisClient(configuration, log: .silent)
    defer { client.stop() }
    let stream = PurgeStream(
      client: client, reader: client, prefix: "p:", folder: nil, retryInterval: .seconds(1),
      log: .silent)
    let tier = VariantTier(
      client: client, stream: stream, coding: StoredVariantCoding(memory: .unlimited),
      prefix: "p:", limit: 1 << 20)
    try await eventually("the client is ready") { client.isReady }
    // When
    let mark = SharedMark(epoch: "e", milliseconds: 1, number: 0)
    for number in 0..<5 { tier.store(variant(number), since: mark) }
    // Then one is on its way, and the others wait.
    try await eventually("one is sent") { tier.waiting == 4 && client.counters.sent.value == 1 }
  }
}
