// HostileEntryTests: no number in a file of the disk tier can crash the server.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct HostileEntryTests {
  /// Returns a number that an attacker may choose.
  private func number(_ random: inout SeededGenerator) -> Int {
    let edges = [0, 1, -1, .max, .min, .max - 1, .min + 1, 1 << 31, 1 << 40, -(1 << 40), 1 << 62]
    return Bool.random(using: &random)
      ? edges.randomElement(using: &random) ?? 0 : Int(bitPattern: UInt(random.next()))
  }

  private func field(_ tag: UInt8, value: [UInt8]) -> [UInt8] {
    [tag] + withUnsafeBytes(of: UInt32(value.count).littleEndian) { Array($0) } + value
  }

  private func field(_ tag: UInt8, numbers: [Int]) -> [UInt8] {
    field(
      tag,
      value: numbers.flatMap { number in withUnsafeBytes(of: number.littleEndian) { Array($0) } })
  }

  /// Returns metadata with valid tags and random numbers.
  private func metadata(_ key: String, using random: inout SeededGenerator) -> [UInt8] {
    var bytes = field(1, value: Array(key.utf8))
    bytes += field(2, numbers: (0..<11).map { _ in number(&random) })
    bytes += field(3, value: Array("webp".utf8))
    for tag: UInt8 in [4, 7] { bytes += field(tag, numbers: [number(&random), number(&random)]) }
    let densities = [Double.nan, .infinity, -.infinity, -1, 0, 2, .leastNonzeroMagnitude]
    let density = densities.randomElement(using: &random) ?? 1
    for tag: UInt8 in [5, 10, 11, 12, 13, 32] { bytes += field(tag, numbers: [number(&random)]) }
    bytes += field(6, numbers: [Int(bitPattern: UInt(density.bitPattern))])
    return bytes + field(8, value: Array("etag".utf8))
  }

  /// Uses a freshness as the server does.
  private func use(_ freshness: Freshness, using random: inout SeededGenerator) {
    for now in [UnixTime.now, UnixTime(seconds: 0), UnixTime(seconds: 1 << 33)] {
      #expect(freshness.age(at: now) >= 0)
      _ = freshness.timeToLive(at: now)
      _ = freshness.isFresh(at: now)
      _ = freshness.mayBeServedWhileRevalidating(at: now)
      _ = freshness.mayBeServedOnError(at: now)
      _ = freshness.ending(within: 30, of: now).age(at: now)
      var demands = AgeDemands()
      demands.maxAge = number(&random)
      demands.maxStale = number(&random)
      _ = freshness.satisfies(demands, at: now)
    }
    let other = Freshness(
      receivedAt: UnixTime(seconds: number(&random)), initialAge: number(&random),
      lifetime: number(&random), clientLifetime: number(&random))
    _ = freshness.combined(with: other).age(at: .now)
    _ = other.combined(with: freshness).age(at: .now)
  }

  @Test(arguments: [EntryKind.variant, .source])
  func `files with valid checksums and random numbers are read or reported as damaged`(
    _ kind: EntryKind
  ) throws {
    // Given
    let folder = try TemporaryFolder()
    var random = SeededGenerator(seed: 17)
    let key = CacheKey(text: kind == .source ? "https://a.example/" : "https://a.example/ w=1")
    let options = EntryFile.ReadOptions(
      promotionThreshold: 1 << 20, memory: .unlimited)
    var found = 0
    for _ in 0..<2_000 {
      let body = Sample.bytes(10)
      let prefix = body.withUnsafeBytes { bytes in
        EntryHeader.prefix(
          kind: kind, metadata: metadata(key.text, using: &random), bodyLength: body.count,
          bodyChecksum: EntryHeader.checksum(bytes))
      }
      try folder.write("entry", bytes: prefix + body)
      // When
      switch EntryFile.read(folder.path + "/entry", key: key, options: options) {
      case .found((.variant(let variant), _)):
        found += 1
        // Then
        let info = variant.info
        use(info.freshness, using: &random)
        guard let image = info.image else { continue }
        #expect(image.size.width >= 0 && image.size.width * image.size.height >= 0)
        #expect(image.density >= 0 && image.density.isFinite && image.frames >= 1)
      case .found((.source(let source), _)):
        found += 1
        use(source.freshness, using: &random)
        #expect((100...999).contains(source.origin.status))
      case .damaged: break
      default: Issue.record("neither read nor damaged")
      }
    }
    // A random status of a source is rarely valid.
    #expect(kind == .source || found == 2_000)
  }

  @Test func `random metadata bytes are parsed without a crash`() {
    var random = SeededGenerator(seed: 18)
    for _ in 0..<5_000 {
      let count = Int.random(in: 0..<200, using: &random)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      for kind in [EntryKind.variant, .source] {
        _ = bytes.withUnsafeBytes { EntryMetadata(kind: kind, decoding: $0) }
      }
    }
  }

  @Test func `extreme ages and dates from an origin are handled without a crash`() throws {
    // Given
    let numbers = [
      "0", "-1", "1", "2147483648", "9223372036854775807", "9223372036854775808", "1e9", "",
      "99999999999999999999999999999", "+5", " 7 ",
    ]
    let dates = [
      "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "0",
      "Mon, 01 Jan 0001 00:00:00 GMT", "Sun, 06 Nov 99999999999 08:49:37 GMT",
    ]
    var random = SeededGenerator(seed: 19)
    let url = try SourceURL(parsing: "https://a.example/")
    let rules = FreshnessRules()
    for _ in 0..<5_000 {
      var origin = OriginResponse(status: 200)
      func one(_ texts: [String]) -> String { texts.randomElement(using: &random) ?? "" }
      origin.age = one(numbers)
      origin.date = one(dates)
      origin.expires = one(dates)
      origin.lastModified = one(dates)
      let names = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]
      origin.cacheControl = names.map { "\($0)=\(one(numbers))" }.joined(separator: ", ")
      // When
      let freshness = rules.freshness(
        of: origin, from: url, isAuthorized: Bool.random(using: &random),
        at: Moment(UnixTime(seconds: number(&random)).bounded))
      // Then
      use(freshness, using: &random)
    }
  }

  @Test func `a purge journal with maximum numbers leaves room for later purges`() {
    // Given
    let text = "9223372036854775807 last\n9223372036854775807 everything\n5 last\n"
    var complaints: [Int] = []
    // When
    let notes = PurgeJournal(parsing: text) { complaints.append($0) }
    // Then
    #expect(notes.last == 5 && notes.purges.isEmpty && complaints == [1, 2])
    let purges = Purges()
    purges.restore(notes.purges, last: notes.last)
    #expect(purges.add(.everything).number > 5)
  }

  @Test func `extreme file times are handled without a crash`() {
    for seconds in [Int.min, -1, 0, .max] {
      var status = stat()
      status.st_mtim = timespec(tv_sec: seconds, tv_nsec: 999_999_999)
      status.st_atim = timespec(tv_sec: seconds, tv_nsec: 0)
      let times = EntryTimes(of: status)
      #expect(times.bounded(by: .now).stored <= .now)
    }
  }
}
