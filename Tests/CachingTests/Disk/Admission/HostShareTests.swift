// HostShareTests: one host cannot fill the sources' share of the disk.

import Glibc
import Model
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class HostShareTests: DiskFolderTests {
  private func key(_ host: String, number: Int) -> CacheKey {
    CacheKey(text: "https://\(host)/\(number).jpg")
  }

  private func source(_ host: String, number: Int, bytes: Int = 20_000) throws -> Source {
    try Sample.source(key(host, number: number).text, generation: 0, bytes: Sample.bytes(bytes))
  }

  /// The bytes of all files of a host's sources.
  private func bytes(of host: String, numbers: Range<Int>, in tier: DiskTier) -> Int {
    numbers.reduce(0) { sum, number in
      var status = stat()
      let path = tier.path(of: key(host, number: number))
      return stat(path, &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
    }
  }

  /// Compares the bytes of each host with the sum of its records.
  private func expectExact(_ tier: DiskTier, sourceLocation: SourceLocation = #_sourceLocation)
    throws
  {
    let store = try #require(tier.parts?.store)
    var sums: [Int: Int] = [:]
    for shard in store.index.shards {
      for (digest, record) in shard.table.withLock({ $0.records }) where record.kind == .source {
        sums[digest.host, default: 0] += record.bytes
      }
    }
    for host in 0..<HostUse.places {
      let counted = store.space.hosts?.withLock { $0[host] }
      #expect(counted == sums[host] ?? 0, "place \(host)", sourceLocation: sourceLocation)
    }
  }

  @Test func `the oldest sources of a host give way before it takes more than its share`()
    async throws
  {
    // Given a quarter of 4 MiB for each host, and another host's sources, used longest ago
    let tier = try open(limit: 8 << 20) { $0.hostShare = 0.25 }
    #expect(await tier.ready())
    for number in 0..<10 { #expect(tier.store(try source("small.example", number: number))) }
    #expect(await tier.quiet())
    clock.advance(by: 1_000)
    // When one host sends far more than its share
    let limit = 1 << 20
    for number in 0..<200 {
      #expect(tier.store(try source("big.example", number: number)))
      #expect(await tier.quiet())
      #expect(bytes(of: "big.example", numbers: 0..<200, in: tier) <= limit)
      // The tier would clean in time by itself, but this test is faster.
      if number % 3 == 0 { await tier.clean() }
      clock.advance(by: 1)
    }
    await tier.clean()
    // Then its last ones are there, and all of the other host.
    #expect(await tier.source(for: key("big.example", number: 199)) != nil)
    #expect(await tier.source(for: key("big.example", number: 0)) == nil)
    #expect(bytes(of: "big.example", numbers: 0..<200, in: tier) > limit / 4)
    for number in 0..<10 {
      #expect(await tier.source(for: key("small.example", number: number)) != nil)
    }
    #expect(tier.figures.hostEvictions > 100)
    #expect(tier.figures.evictions == tier.figures.hostEvictions)
    try expectExact(tier)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a host that had more at the start is reduced to its share, without opening files`()
    async throws
  {
    let first = try open(limit: 8 << 20)
    for number in 0..<100 {
      first.store(try source("big.example", number: number))
      clock.advance(by: 10)
    }
    for number in 0..<5 { first.store(try source("small.example", number: number)) }
    await first.shutDown(within: .seconds(10))
    let second = try open(limit: 8 << 20) { $0.hostShare = 0.25 }
    try await eventually { second.isIndexed && second.figures.evictions > 0 }
    await second.clean()
    #expect(bytes(of: "big.example", numbers: 0..<100, in: second) <= 1 << 19)
    #expect(await second.source(for: key("big.example", number: 99)) != nil)
    for number in 0..<5 {
      #expect(await second.source(for: key("small.example", number: number)) != nil)
    }
    try expectExact(second)
    await second.shutDown(within: .seconds(10))
  }

  @Test func `the bytes of each host are exact after random operations and restarts`() async throws
  {
    var random = SeededGenerator(seed: 7)
    func reopen() throws -> DiskTier { try open(limit: 4 << 20) { $0.hostShare = 0.3 } }
    var tier = try reopen()
    #expect(await tier.ready())
    for step in 0..<600 {
      let host = "h\(Int.random(in: 0..<5, using: &random)).example"
      let number = Int.random(in: 0..<30, using: &random)
      switch Int.random(in: 0..<40, using: &random) {
      case 0..<30:
        let bytes = Int.random(in: 0..<60_000, using: &random)
        tier.store(try source(host, number: number, bytes: bytes))
      case 30..<34: await tier.remove(key(host, number: number))
      case 34..<37: tier.store(Sample.variant(number, bytes: Sample.bytes(5_000)))
      case 37: await tier.clean()
      default:
        if step % 7 == 0 {
          await tier.shutDown(within: .seconds(10))
          tier = try reopen()
          #expect(await tier.ready())
        }
      }
      clock.advance(by: 1)
    }
    #expect(await tier.quiet())
    await tier.clean()
    try expectExact(tier)
    try await tier.clear()
    try await eventually { tier.figures.sources?.entries == 0 }
    try expectExact(tier)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `by default a host may fill the sources' share`() async throws {
    let tier = try open(limit: 4 << 20)
    for number in 0..<60 {
      tier.store(try source("big.example", number: number))
      #expect(await tier.quiet())
    }
    #expect(bytes(of: "big.example", numbers: 0..<60, in: tier) > 1 << 20)
    #expect(tier.figures.hostEvictions == 0 && tier.figures.failures == 0)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a source larger than a quarter of its host's share is not stored`() async throws {
    let tier = try open(limit: 8 << 20) { $0.hostShare = 0.1 }
    let limit = (4 << 20) / 10
    #expect(!tier.store(try source("a.example", number: 1, bytes: limit / 4 + 1)))
    #expect(tier.store(try source("a.example", number: 2, bytes: limit / 5)))
    #expect(await tier.quiet())
    #expect(await tier.source(for: key("a.example", number: 2)) != nil)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `the names of sources tell their host, whatever the path, the port and the variation`()
  {
    let digests = [
      "https://a.example/1.jpg", "https://a.example/2.jpg?x", "http://a.example:81/1.jpg",
      "https://a.example/1.jpg#0123",
    ].map { EntryDigest(of: CacheKey(text: $0)) }
    #expect(Set(digests).count == 4 && Set(digests.map(\.host)).count == 1)
    let hosts = (0..<100).map {
      EntryDigest(of: CacheKey(text: "https://h\($0).example/1.jpg")).host
    }
    #expect(Set(hosts).count > 95)
    // Sources and variants of one URL are still found together.
    let source = CacheKey(text: "https://a.example/1.jpg")
    let variant = EntryDigest(of: CacheKey(text: source.text + " w=1"))
    #expect(EntryGroup.variants(of: source).contains(variant, kind: .variant))
    #expect(EntryDigest(of: source).high == variant.high)
  }
}

struct HostUseTests {
  @Test func `a reservation beyond the limit is refused, and a clean is due for that host alone`() {
    var use = HostUse(limit: 1_000)
    let first = use.reserve(800, of: 1)
    let second = use.reserve(201, of: 1)
    let other = use.reserve(900, of: 2)
    #expect(first && !second && other)
    #expect(use[1] == 800 && use[2] == 900 && use[3] == 0)
    let excess = use.takeExcess(leaving: 0.5)
    #expect(excess == [1: 300])
    // It is due once for a refusal, and for as long as the host is nearly full.
    use.add(50, of: 2)
    let later = [use.takeExcess(leaving: 0.5), use.takeExcess(leaving: 0.5)]
    #expect(later == [[2: 450], [2: 450]])
    use.add(-500, of: 2)
    let last = use.takeExcess(leaving: 0.5)
    #expect(last.isEmpty)
  }
}
