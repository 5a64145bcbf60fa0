// UploadTests: tests images that operators upload into the cache.

import Core
import TestSupport
import Testing

@testable import Managing

final class UploadTests: ManagedTests {
  private let url = "http://origin/a.jpg"

  private func put(
    _ bytes: [UInt8], change: (inout OriginResponse) -> Void = { _ in }
  ) async throws -> PurgeReport {
    var origin = OriginResponse(status: 200)
    change(&origin)
    return try await manager.put(
      try SourceURL(parsing: url), file: try .sealed(bytes), origin: origin)
  }

  private func version() async throws -> UInt64? {
    await disk.source(for: try request().key.source)?.version
  }

  @Test func `an uploaded image replaces all entries of its URL`()
    async throws
  {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    let old = try await version()
    #expect(try await put(try TestImages.png(width: 8, height: 8)).memory == 1)
    let new = try await version()
    #expect(new != nil && new != old)
    let delivery = try await manager.variant(for: request)
    #expect(delivery.cacheStatus == .hit(.source))
    #expect(delivery.variant.info.sourceVersion == new)
    #expect(manager.cachedVariant(for: request.key) != nil)
    #expect(loader.started.value == 1)
  }

  @Test func `an SVG is taken compressed and in UTF-16 as well`() async throws {
    openAll()
    let text = "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>"
    let wide = text.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
    for source in [
      Array(text.utf8), TestCoding.gzip.encode(Array(text.utf8)), [0xff, 0xfe] + wide,
      [0xfe, 0xff, 0] + wide.dropLast(),
    ] {
      _ = try await put(source)
    }
    await #expect(throws: ImageError.self) { try await put([0xff, 0xfe] + wide.dropFirst(4)) }
  }

  @Test func `a running load neither replaces an uploaded image nor is joined`() async throws {
    let first = Gate()
    loader.gates.withLock { $0 = [1: first] }
    processor.gate.open()
    let request = try request()
    let before = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    _ = try await put(try TestImages.png(width: 8, height: 8))
    let put = try await version()
    let after = asking(request)
    try await eventually { [processor] in processor.started.value == 1 }
    #expect(try await after.value.cacheStatus == .hit(.source))
    first.open()
    #expect(try await before.value.variant.info.sourceVersion != put)
    #expect(try await version() == put)
    #expect(memory.peek(request.key)?.info.sourceVersion == put)
    #expect(loader.started.value == 1)
  }

  @Test func `a load that began during an upload's purge does not replace the uploaded image`()
    async throws
  {
    let purging = Gate()
    let first = Gate()
    disk.purgeGate.withLock { $0 = purging }
    loader.gates.withLock { $0 = [1: first] }
    processor.gate.open()
    let request = try request()
    let putting = Task { [manager] in
      try await manager.put(
        request.source, file: .sealed(try TestImages.png(width: 8, height: 8)),
        origin: OriginResponse(status: 200))
    }
    try await eventually { [disk] in disk.purged.withLock { $0.count } == 1 }
    let before = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    purging.open()
    _ = try await putting.value
    let put = try await version()
    let later = asking(request)
    try await eventually { [processor] in processor.started.value == 1 }
    let after = try await later.value
    #expect(after.cacheStatus == .hit(.source) && after.variant.info.sourceVersion == put)
    first.open()
    #expect(try await before.value.variant.info.sourceVersion != put)
    #expect(try await version() == put)
    #expect(memory.peek(request.key) === after.variant)
  }

  @Test func `an upload replaces a source that changed before`() async throws {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    _ = try await manager.variant(for: try self.request { $0.cache = .refresh })
    _ = try await put(try TestImages.png(width: 8, height: 8))
    _ = try await manager.variant(for: request)
    #expect(try await manager.variant(for: request).cacheStatus == .hit(.memory))
  }

  @Test func `every decodable format is accepted, and anything else is refused`() async throws {
    for bytes in [
      try TestImages.jpeg(width: 8, height: 8), try TestImages.png(width: 8, height: 8),
      try TestImages.gif(width: 8, height: 8, frames: 2), try TestImages.webp(width: 8, height: 8),
      try TestImages.tiff(width: 8, height: 8), try TestImages.avif(width: 64, height: 64),
      try TestImages.heic(width: 64, height: 64),
      Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8),
    ] { _ = try await put(bytes) }
    let taken = try await version()
    for bytes in [[], Array("<html>".utf8), [0xff]] {
      await #expect {
        _ = try await self.put(bytes)
      } throws: {
        ($0 as? ImageError)?.code == "unsupported_format"
      }
    }
    #expect(try await version() == taken, "what was refused purged nothing")
  }

  @Test func `memory that is full of variants refuses no upload`() async throws {
    let full = VariantStorage(memory: ByteBudget(limit: 0), files: nil, maximumInMemory: .max)
    let file = try FileRegion.sealed(try TestImages.png(width: 8, height: 8))
    _ = try await manager(storage: full).put(
      try SourceURL(parsing: self.url), file: file, origin: OriginResponse(status: 200))
  }

  @Test func `a disabled format is refused`() async throws {
    let manager = manager { $0.formats = [.jpeg] }
    let file = try FileRegion.sealed(try TestImages.png(width: 8, height: 8))
    await #expect(throws: ImageError.unsupportedFormat(detail: "\(file.count) bytes of png")) {
      try await manager.put(
        try SourceURL(parsing: self.url), file: file, origin: OriginResponse(status: 200))
    }
  }

  @Test func `an unstorable image, a local file and a full disk are refused`()
    async throws
  {
    let image = try TestImages.png(width: 8, height: 8)
    await #expect {
      _ = try await self.put(image) { $0.cacheControl = "no-store" }
    } throws: {
      ($0 as? ImageError)?.status == 400
    }
    let file = try FileRegion.sealed(image)
    await #expect {
      try await self.manager.put(
        try SourceURL(parsing: "local:///a.png"), file: file, origin: OriginResponse(status: 200))
    } throws: {
      ($0 as? ImageError)?.code == "forbidden_source"
    }
    disk.isFull.withLock { $0 = true }
    await #expect(throws: ImageError.overloaded(queue: "disk", retryAfter: 1)) {
      _ = try await self.put(image)
    }
  }
}
