// EntryFileTests: the file format and the detection of every kind of damage.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class EntryFileTests: DiskFolderTests {
  /// Returns the path of the only entry's file.
  func entryFile() throws -> String {
    let files = TemporaryFolder.files(below: folder.path + "/cache")
    return try #require(files.first { !$0.hasSuffix("/lock") && !$0.hasSuffix("/CACHEDIR.TAG") })
  }

  func change(_ path: String, at offset: Int, by change: (UInt8) -> UInt8) {
    let descriptor = Glibc.open(path, O_RDWR)
    var byte: UInt8 = 0
    #expect(pread(descriptor, &byte, 1, off_t(offset)) == 1)
    byte = change(byte)
    #expect(pwrite(descriptor, &byte, 1, off_t(offset)) == 1)
    close(descriptor)
  }

  @Test func `metadata is read back unchanged, with and without optional fields`() throws {
    var bare = Sample.info()
    bare.content = .image(
      RenderedImage(format: .png, size: PixelSize(width: 1, height: 2), density: 1))
    bare.lastModified = nil
    bare.sourceVersion = 0
    var described = Sample.info()
    described.content = .sourceDescription
    var marked = Sample.info()
    marked.watermarkVersion = Sample.version
    marked.isRecompressed = true
    marked.isLocal = true
    var uploaded = Sample.origin
    uploaded.isUploaded = true
    let contents: [EntryMetadata.Content] = [
      .variant(Sample.info()), .variant(bare), .variant(described), .variant(marked),
      .source(Sample.origin, Sample.freshness, version: Sample.version, generation: 7),
      .source(uploaded, Sample.freshness, version: Sample.version, generation: 7),
      .source(
        OriginResponse(status: 203),
        Freshness(
          receivedAt: UnixTime(seconds: -5), lifetime: .max, isStorable: false, mayBeStale: false,
          isStated: false, clientLifetime: 7, clientTime: 9),
        version: 0, generation: 0),
    ]
    for content in contents {
      let metadata = EntryMetadata(key: "https://ü.example/ w=1", content: content)
      let kind: EntryKind = if case .variant = content { .variant } else { .source }
      let bytes = metadata.encoded()
      #expect(bytes.withUnsafeBytes { EntryMetadata(kind: kind, decoding: $0) } == metadata)
      // A field of a later version is ignored.
      let later = bytes + [250, 3, 0, 0, 0, 1, 2, 3]
      #expect(later.withUnsafeBytes { EntryMetadata(kind: kind, decoding: $0) } == metadata)
      for end in 0..<bytes.count {
        let cut = bytes.prefix(end)
        #expect(cut.withUnsafeBytes { EntryMetadata(kind: kind, decoding: $0) } != metadata)
      }
    }
  }

  @Test func `fields missing from older metadata read as unknown or forbidden`() throws {
    // Given a key, a freshness and a status, as older versions wrote them, byte for byte.
    func field(_ tag: UInt8, value: [UInt8]) -> [UInt8] {
      [tag, UInt8(value.count), 0, 0, 0] + value
    }
    func numbers(_ values: [UInt8]) -> [UInt8] { values.flatMap { [$0, 0, 0, 0, 0, 0, 0, 0] } }
    let source =
      field(1, value: Array("https://a.example/".utf8)) + field(2, value: numbers([9, 0, 60, 1]))
      + field(32, value: numbers([200]))
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 9), lifetime: 60, mayBeStale: false, clientLifetime: 0,
      clientTime: 0)
    // Then the version is 0, stale responses are forbidden, and clients revalidate each time.
    let expected = EntryMetadata(
      key: "https://a.example/",
      content: .source(OriginResponse(status: 200), freshness, version: 0, generation: 0))
    #expect(source.withUnsafeBytes { EntryMetadata(kind: .source, decoding: $0) } == expected)

    let variant =
      field(1, value: Array("https://a.example/ w=1".utf8))
      + field(2, value: numbers([9, 0, 60, 1]))
      + field(3, value: Array("webp".utf8)) + field(4, value: numbers([3, 4]))
      + field(5, value: numbers([1]))
      + field(6, value: numbers([0])) + field(8, value: Array("e".utf8))
    let info = VariantInfo(
      .image(RenderedImage(format: .webp, size: PixelSize(width: 3, height: 4), density: 0)),
      etag: "e",
      freshness: freshness, sourceVersion: 0)
    #expect(
      variant.withUnsafeBytes { EntryMetadata(kind: .variant, decoding: $0) }
        == EntryMetadata(key: "https://a.example/ w=1", content: .variant(info)))
  }

  @Test func `a description is stored with the format json, as in earlier versions`() throws {
    func field(_ tag: UInt8, value: [UInt8]) -> [UInt8] {
      [tag, UInt8(value.count), 0, 0, 0] + value
    }
    func numbers(_ values: [UInt8]) -> [UInt8] { values.flatMap { [$0, 0, 0, 0, 0, 0, 0, 0] } }
    // Given an entry as earlier versions wrote it: with the size and the density of the source.
    let key = "https://a.example/ info=1"
    let beginning =
      field(1, value: Array(key.utf8))
      + field(2, value: numbers([9, 0, 60, 1, 1, 0, 0, 0, 1, 0, 0]))
      + field(3, value: Array("json".utf8))
    let rest = field(5, value: numbers([1])) + field(6, value: [0, 0, 0, 0, 0, 0, 0xf0, 0x3f])
    let etag = field(8, value: Array("e".utf8))
    let earlier = beginning + field(4, value: numbers([64, 48])) + rest + etag
    // Then it is read, and written with the same fields.
    let metadata = EntryMetadata(
      key: key,
      content: .variant(
        VariantInfo(
          .sourceDescription, etag: "e",
          freshness: Freshness(
            receivedAt: UnixTime(seconds: 9), lifetime: 60, clientLifetime: 0, clientTime: 0))))
    #expect(earlier.withUnsafeBytes { EntryMetadata(kind: .variant, decoding: $0) } == metadata)
    #expect(metadata.encoded() == beginning + field(4, value: numbers([1, 1])) + rest + etag)
  }

  @Test func `digests are words of SHA-256 and are parsed from file names`() throws {
    let digest = EntryDigest(of: CacheKey(text: "abc"))
    #expect(digest.hexadecimal == "ba7816bf8f01cfea414140de5dae2223")
    #expect(EntryDigest(hexadecimal: digest.hexadecimal) == digest)
    #expect(digest.folder == 0xba)
    // A variant's digest: the URL's first word, half of the source's second word, and half of the
    // second word of "abc w=1".
    let variant = EntryDigest(of: CacheKey(text: "abc w=1"))
    #expect(variant.hexadecimal == "ba7816bf8f01cfea" + "414140de" + "8e2f67cc")
    #expect(EntryDigest(hexadecimal: variant.hexadecimal) == variant)
    #expect(variant != EntryDigest(of: CacheKey(text: "abc w=2")))
    // A varied source's digest has the source part of "abc#7f". A source's last bit is set.
    let varied = CacheKey(text: "abc").varied(by: "7f")
    #expect(EntryDigest(of: varied).hexadecimal == "ba7816bf8f01cfea" + "6fee2c2f" + "6dc86ac7")
    #expect(
      EntryDigest(of: CacheKey(text: "abc w=1").varied(by: "7f")).hexadecimal
        == "ba7816bf8f01cfea" + "6fee2c2f" + "76d73126")
    for name in ["", "lock", "BA7816BF8F01CFEA414140DE5DAE2223", digest.hexadecimal + "0"] {
      #expect(EntryDigest(hexadecimal: name) == nil)
    }
  }

  @Test func `entry groups are recognized by file names`() throws {
    let url = try SourceURL(parsing: "https://a.example/1.jpg")
    let plain = CacheKey(source: url)
    let varied = plain.varied(by: "0123456789abcdef")
    let all = EntryGroup.all(of: url)
    let ofPlain = EntryGroup.variants(of: plain)
    let ofVaried = EntryGroup.variants(of: varied)
    for width in 1...50 {
      let digests = [plain, varied].map {
        EntryDigest(of: CacheKey(text: $0.text + " w=\(width)"))
      }
      #expect(digests.map { all.contains($0, kind: .variant) } == [true, true])
      #expect(digests.map { ofPlain.contains($0, kind: .variant) } == [true, false])
      #expect(digests.map { ofVaried.contains($0, kind: .variant) } == [false, true])
      let other = EntryDigest(of: CacheKey(text: "https://a.example/2.jpg w=\(width)"))
      #expect(!all.contains(other, kind: .variant))
    }
    for source in [plain, varied] {
      let digest = EntryDigest(of: source)
      #expect(all.contains(digest, kind: .source))
      #expect(!ofPlain.contains(digest, kind: .source) && !ofVaried.contains(digest, kind: .source))
    }
  }

  @Test func `any flipped byte is a miss, removes the file and is counted`() async throws {
    for isSource in [false, true] {
      // Given one entry, every byte of its prefix, and some bytes of its body.
      let body = Sample.bytes(100_000)
      let writer = try open()
      if isSource {
        writer.store(try Sample.source(1, bytes: body))
      } else {
        writer.store(Sample.variant(1, bytes: body))
      }
      await writer.shutDown(within: .seconds(10))
      let path = try entryFile()
      let whole = try #require(FileRegion(path))
      let bytes = whole.bytes
      let positions =
        Array(0..<(bytes.count - body.count)) + [
          bytes.count - body.count, bytes.count - 50_000, bytes.count - 1,
        ]
      let tier = try open()
      #expect(await tier.ready())
      let key = isSource ? Sample.sourceKey(1) : Sample.variantKey(1)
      let digest = EntryDigest(of: key)
      for (count, position) in positions.enumerated() {
        // When one byte changes.
        change(path, at: position) { $0 ^ UInt8(1 << (position % 8)) }
        // Then the entry is not found, and its file is gone.
        let found: Bool =
          if isSource { await tier.source(for: key) != nil } else {
            await tier.variant(for: key) != nil
          }
        #expect(!found, "byte \(position) was not missed")
        #expect(tier.figures.damaged == count + 1)
        #expect(tier.figures.entries == 0)
        #expect(access(path, F_OK) != 0)
        // Stored again and marked unverified, as after a start.
        if isSource {
          tier.store(try Sample.source(1, bytes: body))
        } else {
          tier.store(Sample.variant(1, bytes: body))
        }
        #expect(await tier.quiet())
        tier.unverify(digest)
      }
      await tier.remove(key)
      await tier.shutDown(within: .seconds(10))
    }
  }

  @Test func `a truncated, extended or empty file or one of another version is a miss`()
    async throws
  {
    let body = Sample.bytes(5_000)
    let tier = try open()
    let key = Sample.variantKey(1)
    let changes: [(String) -> Void] = [
      { truncate($0, 0) }, { truncate($0, 20) }, { truncate($0, 39) }, { truncate($0, 60) },
      { truncate($0, 5_000) }, { truncate($0, 100_000) },
      { path in self.change(path, at: 8) { $0 + 1 } },
    ]
    for (count, damage) in changes.enumerated() {
      await tier.keep(Sample.variant(1, bytes: body))
      // Lengths and header are checked on every read, even of a verified body.
      damage(try entryFile())
      #expect(await tier.variant(for: key) == nil)
      #expect(tier.figures.damaged == count + 1)
    }
  }

  @Test func `a body damaged at run time is a miss, for variants and for sources`()
    async throws
  {
    let tier = try open()
    let body = Sample.bytes(5_000)
    await tier.keep(Sample.variant(1, bytes: body))
    #expect(await tier.variant(for: Sample.variantKey(1))?.bytes == body)
    change(try entryFile(), at: 3_000) { $0 ^ 0x55 }
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)

    tier.store(try Sample.source(1, bytes: Sample.bytes(200_000)))
    #expect(await tier.quiet())
    #expect(await tier.source(for: Sample.sourceKey(1)) != nil)
    change(try entryFile(), at: 150_000) { $0 ^ 0x55 }
    #expect(await tier.source(for: Sample.sourceKey(1)) == nil)
    #expect(tier.figures.damaged == 2)
  }

  @Test func `a file under the name of another key is a miss`() async throws {
    let tier = try open()
    tier.store(Sample.variant(1, bytes: Sample.bytes(500)))
    await tier.keep(Sample.variant(2, bytes: Sample.bytes(600)))
    let one = tier.path(of: Sample.variantKey(1))
    let two = tier.path(of: Sample.variantKey(2))
    #expect(rename(one, two) == 0)
    #expect(await tier.variant(for: Sample.variantKey(2)) == nil)
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.damaged == 1)
    #expect(tier.figures.entries == 0)
  }

  @Test func `a source shorter than its stated length is not stored`() async throws {
    let tier = try open()
    let whole = try Sample.memoryFile(Sample.bytes(1_000), offset: 0)
    let region = FileRegion(owning: dup(whole.descriptor), count: 1_001)
    let key = Sample.sourceKey(1)
    tier.store(Source(key: key, file: region, origin: Sample.origin, freshness: Sample.freshness))
    #expect(await tier.quiet())
    #expect(await tier.source(for: key) == nil)
    #expect(tier.figures.failures == 1)
    #expect(TemporaryFolder.files(below: folder.path + "/cache/tmp").isEmpty)
  }
}

extension FileRegion {
  convenience init?(_ path: String) {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else { return nil }
    self.init(owning: descriptor, count: Int(lseek(descriptor, 0, SEEK_END)))
  }
}
