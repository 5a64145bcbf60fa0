// WebPEncoderTests: WebPs that libwebp makes without libvips, decoded by libvips.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct WebPEncoderTests {
  private static func made(
    _ pixels: Pixels, quality: Int = 79, effort: Int = 3
  ) throws -> [UInt8] {
    var limits = ImagingLimits()
    limits.efforts.webp = effort
    return try Made(try TestImages.encode(pixels, as: ".png"), limits: limits) {
      $0.format = .webp
      $0.quality = quality
    }.bytes
  }

  @Test(arguments: EncoderScenes.sizes + [PixelSize(width: 16_383, height: 3)])
  func `an image of any size looks like its source`(size: PixelSize) throws {
    let scene = EncoderScenes.smooth(size)
    let file = try Self.made(scene)
    #expect(try Pixels(decoding: file).size == size)
    #expect(try Pixels(decoding: file).psnr(to: scene) > 36)
  }

  @Test(arguments: EncoderScenes.colours)
  func `a colour is kept`(colour: [UInt8]) throws {
    let file = try Self.made(Pixels(width: 40, height: 30, color: colour), quality: 85)
    let found = try Pixels(decoding: file).rgb(x: 20, y: 15)
    for (found, wanted) in zip(found, colour) { #expect(abs(Int(found) - Int(wanted)) <= 3) }
  }

  @Test(arguments: [0, 3, 6])
  func `a higher quality has more bytes and more likeness`(effort: Int) throws {
    let scene = Pixels.textured(width: 200, height: 150)
    var last = (bytes: 0, likeness: 0.0)
    for quality in [1, 20, 40, 60, 79, 90, 100] {
      let file = try Self.made(scene, quality: quality, effort: effort)
      let likeness = try Pixels(decoding: file).psnr(to: scene)
      #expect(file.count > last.bytes && likeness > last.likeness, "\(quality)")
      last = (file.count, likeness)
    }
  }

  @Test(arguments: [20, 50, 79, 95], [0, 3, 4, 6])
  func `a WebP is as small and as like as libvips's`(quality: Int, effort: Int) throws {
    let scene = Pixels.textured(width: 331, height: 219)
    let file = try Self.made(scene, quality: quality, effort: effort)
    let theirs = try TestImages.encode(scene, as: ".webp[Q=\(quality),effort=\(effort),strip]")
    // Without the Exif block that libvips writes in spite of `strip`.
    var rest = theirs
    let count = rest.withUnsafeMutableBytes { WebPContainer.dropMetadata(in: $0) }
    #expect(Double(file.count) < 1.03 * Double(count))
    let likeness = try [file, theirs].map { try Pixels(decoding: $0).psnr(to: scene) }
    #expect(likeness[0] > likeness[1] - 0.2)
  }

  @Test func `both settings have an effect`() throws {
    let scene = Pixels.textured(width: 200, height: 150)
    let image = try scene.image()
    func encoded(_ change: (inout WebPEncoder) -> Void) throws -> [UInt8] {
      var encoder = WebPEncoder(quality: 50, effort: 3)
      change(&encoder)
      return try encoder.encode(image).withUnsafeBytes { Array($0) }
    }
    let files = try [
      encoded { _ in }, encoded { $0.filterStrength = 60 }, encoded { $0.noiseShaping = 50 },
    ]
    #expect(Set(files).count == 3)
    // The filter changes a field of the header, and the coded blocks stay.
    #expect(files[0].count == files[1].count)
  }

  @Test func `a file is one lossy image and nothing else`() throws {
    let file = try Self.made(.scene(width: 90, height: 61))
    #expect(Array(file[8..<16]) == Array("WEBPVP8 ".utf8))
    #expect(file.count % 2 == 0)
    let count = file[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
    #expect(count + 8 == file.count)
  }

  @Test func `the result is what this encoder makes of the pixels, whatever led to them`() throws {
    let scene = Pixels.textured(width: 300, height: 200)
    let png = try TestImages.encode(scene, as: ".png")
    let deep = try TestImages.encode(scene, as: ".png", sixteenBits: true)
    let mark = Mark(try TestImages.png(width: 64, height: 32, alpha: true))
    let changes: [(source: [UInt8], mark: Mark?, change: (inout Transform) -> Void)] = [
      (png, nil, { $0.effects.blur = 2 }), (png, nil, { $0.effects.sharpen = 1 }),
      (png, nil, { $0.rotation = .quarter }), (deep, nil, { _ in }), (png, mark, { _ in }),
      (
        png, nil,
        {
          $0.width = 600
          $0.enlarge = true
        }
      ),
    ]
    for (index, (source, mark, change)) in changes.enumerated() {
      let files = try [ImageFormat.webp, .png].map { format in
        try Made(source, mark: mark) {
          $0.format = format
          change(&$0)
        }
      }
      let image = try files[1].pixels().image()
      let isSame = try WebPEncoder(quality: 79, effort: 3).encode(image).withUnsafeBytes {
        $0.elementsEqual(files[0].bytes)
      }
      #expect(isSame, "\(index)")
    }
  }

  @Test func `a limit of bytes is kept`() throws {
    let png = try TestImages.encode(.textured(width: 300, height: 200), as: ".png")
    #expect(try Made(png) { $0.format = .webp }.bytes.count > 4_000)
    let small = try Made(png) {
      $0.format = .webp
      $0.maxBytes = 4_000
    }
    #expect(small.bytes.count <= 4_000 && small.format == .webp)
  }

  private func has(_ chunk: String, _ file: [UInt8]) -> Bool {
    file.firstRange(of: Array(chunk.utf8)) != nil
  }

  @Test func `libvips encodes alpha, grey, frames and metadata`() throws {
    let alpha = try TestImages.encode(.scene(width: 90, height: 60, alpha: true), as: ".png")
    #expect(try Pixels(decoding: Made(alpha) { $0.format = .webp }.bytes).bands == 4)
    let grey = Pixels(width: 90, height: 60, bands: 1) { x, y in [UInt8(x + y)] }
    let made = try Made(try TestImages.encode(grey, as: ".png")) { $0.format = .webp }
    #expect(try made.pixels().rgb(x: 40, y: 30).allSatisfy { (66...74).contains($0) })
    let frames = try Made(try TestImages.gif(width: 20, height: 10, frames: 3)) {
      $0.format = .webp
      $0.width = 10
    }
    #expect(frames.frames == 3 && has("ANMF", frames.bytes))
    let photo =
      try TestImages.heif(.scene(width: 90, height: 60), isAVIF: false, exifOrientation: 1)
    for isBare in [true, false] {
      let file = try Made(photo) {
        $0.format = .webp
        $0.output.stripsMetadata = isBare
      }.bytes
      #expect(has("EXIF", file) != isBare)
    }
  }
}
