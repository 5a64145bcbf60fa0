// SealedResultsTests: sealing a worker changes no byte of a result.

import Core
import TestSupport
import Testing

@testable import ImagingPool

@Suite(
  .onOwnThreads, .serialized, .timeLimit(.minutes(3)),
  .ifSealable)
struct SealedResultsTests {
  /// A small result in each output format, and a placeholder.
  private static let transforms: [Transform] = {
    var small = Transform()
    small.width = 50
    var placeholder = small
    placeholder.product = .placeholder(.blurhash)
    return ImageFormat.outputs.map { format in
      var transform = small
      transform.format = format
      return transform
    } + [placeholder]
  }()

  /// Text, a filter that computes on threads, and an encoding that iconv(3) has in a module.
  private static func vector(encoding: String) -> [UInt8] {
    Array(
      """
      <?xml version="1.0" encoding="\(encoding)"?>
      <svg xmlns="http://www.w3.org/2000/svg" width="120" height="60">
        <filter id="blur"><feGaussianBlur stdDeviation="3"/></filter>
        <circle cx="30" cy="30" r="20" fill="red" filter="url(#blur)"/>
        <text x="40" y="40" font-size="20">text</text>
      </svg>
      """.utf8)
  }

  private static func sources() throws -> [String: [UInt8]] {
    var sources = [
      "jpeg": try TestImages.jpeg(width: 120, height: 80),
      "png": try TestImages.png(width: 120, height: 80),
      "webp": try TestImages.webp(width: 120, height: 80),
      "tiff": try TestImages.tiff(width: 120, height: 80),
      "avif": try TestImages.avif(width: 120, height: 80),
      "heic": try TestImages.heic(width: 120, height: 80),
      "gif": try TestImages.gif(width: 120, height: 80, frames: 2),
      "jxl": try TestImages.jxl(.scene(width: 120, height: 80)),
      "jp2": try TestImages.encode(.scene(width: 120, height: 80), as: ".jp2"),
    ]
    for encoding in ["UTF-8", "ISO-8859-15", "Shift_JIS"] {
      sources["svg in \(encoding)"] = vector(encoding: encoding)
    }
    return sources
  }

  /// Every operation between decoding and encoding.
  private static let operations: [Transform] = {
    let changes: [(inout Transform) -> Void] = [
      { $0.effects.blur = 2.5 },
      { $0.effects.blur = 40 },
      { $0.effects.sharpen = 2 },
      { $0.effects.radius = .points(9) },
      { $0.sizing.angle = 30 },
      { $0.output.profile = .keep },
      { $0.effects.tint = Color(red: 200, green: 0, blue: 9, alpha: 99) },
      { $0.effects.isGrayscale = true },
      { $0.effects.brightness = 1.4 },
      { $0.effects.saturation = 0.4 },
      { $0.rotation = .quarter },
      { $0.flip = .horizontal },
      { $0.crop = PixelArea(x: 3, y: 5, size: PixelSize(width: 60, height: 50)) },
      { $0.trim = 10 },
      { $0.scale = 0.37 },
      { $0.background = Color(red: 1, green: 2, blue: 3) },
      {
        $0.format = .jpeg; $0.maxBytes = 900
      },
      {
        $0.format = .jpeg; $0.progressive = true
      },
      {
        $0.width = 400; $0.enlarge = true
      },
    ]
    let positions: [Position] = [.center, .entropy, .attention, .faces, .leftTop]
    return changes.map { change in
      var transform = Transform()
      transform.width = 50
      change(&transform)
      return transform
    }
      + positions.map { position in
        var transform = Transform()
        transform.width = 40
        transform.height = 40
        transform.fit = .cover
        transform.position = position
        return transform
      }
  }()

  @Test func `a sealed worker makes the same bytes of every format`() async throws {
    let sources = try Self.sources()
    let open = try await digests(of: sources, transforms: Self.transforms, mode: .off)
    let sealed = try await digests(of: sources, transforms: Self.transforms, mode: .required)
    #expect(open.count == 12 * 8)
    #expect(sealed == open)
  }

  @Test func `a sealed worker makes the same bytes with every operation`() async throws {
    let sources = try Self.sources().filter { ["jpeg", "png", "gif", "webp"].contains($0.key) }
    let open = try await digests(of: sources, transforms: Self.operations, mode: .off)
    let sealed = try await digests(of: sources, transforms: Self.operations, mode: .required)
    #expect(open.count == 4 * Self.operations.count)
    #expect(sealed == open)
  }

  /// Returns the digest of each result, or the error's code, by source and product.
  private func digests(
    of sources: [String: [UInt8]], transforms: [Transform], mode: SandboxMode
  ) async throws -> [String: String] {
    var configuration = PoolSupport.configuration()
    configuration.settings.sandbox = mode
    configuration.settings.processorTime = .seconds(60)
    var digests: [String: String] = [:]
    try await PoolSupport.withPool(configuration) { pool in
      for (name, bytes) in sources {
        for (index, transform) in transforms.enumerated() {
          let job = ImageJob(
            file: try PoolSupport.file(of: bytes), transform: transform, density: 1)
          do {
            digests["\(name) \(index)"] = try await pool.process(job).report.digest
          } catch let error as ImageError {
            digests["\(name) \(index)"] = error.logDetail ?? error.code
          }
        }
      }
    }
    #expect(digests.values.allSatisfy { $0.utf8.count == 32 }, "\(digests)")
    return digests
  }

  @Test(arguments: [
    ".webp[effort=0]", ".png[interlace,compression=1]", ".jpg[interlace]", ".jp2",
  ])
  func `a source above the size at which libvips takes files for pixels is decoded`(suffix: String)
    async throws
  {
    // Given: 103 MiB of pixels; libvips uses a file for 100
    let source = try TestImages.encode(.scene(width: 100, height: 100), as: suffix, zoom: 60)
    var half = Transform()
    half.width = 3_000
    half.format = .jpeg
    // When
    let job = ImageJob(file: try PoolSupport.file(of: source), transform: half, density: 1)
    try await PoolSupport.withPool { pool in
      let image = try await pool.process(job)
      // Then
      #expect(image.rendered?.size == PixelSize(width: 3_000, height: 3_000))
    }
  }
}
