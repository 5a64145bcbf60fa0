// Filling: a disk folder with many variants, written by the disk tier itself, to be read back by a server.

import Caching
import Core
import Glibc

/// `benchmark-fill FOLDER COUNT WIDTH BODY URL`: stores the bytes of the file `BODY` as what `/image?url=URL1&w=WIDTH`
/// gives, and so on to `URL` followed by COUNT.
enum Filling {
  static func run() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count == 5, let count = Int(arguments[1]), let width = Int(arguments[2]) else {
      fail("benchmark-fill FOLDER COUNT WIDTH BODY URL")
    }
    let descriptor = open(arguments[3], O_RDONLY)
    let size = Int(lseek(descriptor, 0, SEEK_END))
    guard descriptor >= 0, size > 0 else { fail("cannot read \(arguments[3])") }
    do {
      let body = try ImageBytes(
        contentsOf: FileRegion(owning: descriptor, count: size), mayMap: false)
      let tier = try DiskTier(
        DiskTierConfiguration(path: arguments[0]), log: Log(level: .warning))
      var transform = Transform()
      transform.sizing.width = width
      for number in 1...count {
        let source = try SourceURL(parsing: arguments[4] + "\(number)")
        try await store(body, as: CacheKey(source: source, transform: transform), in: tier)
      }
      guard await tier.shutDown(within: .seconds(60)) else { fail("not all was written") }
    } catch {
      fail("\(error)")
    }
  }

  /// Stores a variant once the tier has room for it in its queue.
  private static func store(
    _ body: ImageBytes, as key: CacheKey, in tier: DiskTier
  ) async throws {
    let info = VariantInfo(
      .image(RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: EntityTag("\"\(key.storedHash)\""),
      freshness: Freshness(receivedAt: .now, lifetime: 604_800))
    while tier.pendingBytes > 32 << 20 { try await Task.sleep(for: .milliseconds(2)) }
    guard tier.store(Variant(key: key, info: info, body: .memory(body))) else {
      fail("the tier does not keep \(key)")
    }
  }

  private static func fail(_ reason: String) -> Never {
    var line = "benchmark-fill: \(reason)\n"
    line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    exit(1)
  }
}
