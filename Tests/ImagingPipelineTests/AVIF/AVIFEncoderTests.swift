// AVIFEncoderTests: AVIFs that libaom makes without libheif, decoded by libheif.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct AVIFEncoderTests {
  private static func made(
    _ pixels: Pixels, quality: Int = 63, threads: Int = 1
  ) throws -> [UInt8] {
    var limits = ImagingLimits()
    limits.maximumThreads = threads
    return try Made(try TestImages.encode(pixels, as: ".png"), limits: limits) {
      $0.format = .avif
      $0.quality = quality
    }.bytes
  }

  /// Whether the container is Pictor's own: it gives the primaries, and libheif does not.
  private static func isOwn(_ file: [UInt8]) -> Bool {
    HEIFBoxes.first("colr", in: file) == HEIFBoxes.nclx(coefficients: 6)
  }

  @Test(arguments: EncoderScenes.sizes)
  func `an image of any size looks like its source`(size: PixelSize) throws {
    let scene = EncoderScenes.smooth(size)
    let file = try Self.made(scene)
    #expect(Self.isOwn(file))
    #expect(try Pixels(decoding: file).psnr(to: scene) > 36)
  }

  @Test(arguments: EncoderScenes.colours)
  func `a colour is kept`(colour: [UInt8]) throws {
    let file = try Self.made(Pixels(width: 40, height: 30, color: colour), quality: 85)
    let found = try Pixels(decoding: file).rgb(x: 20, y: 15)
    for (found, wanted) in zip(found, colour) { #expect(abs(Int(found) - Int(wanted)) <= 3) }
  }

  @Test func `a higher quality has more bytes and more likeness`() throws {
    let scene = Pixels.textured(width: 200, height: 150)
    var last = (bytes: 0, likeness: 0.0)
    for quality in [1, 20, 40, 63, 80, 89] {
      let file = try Self.made(scene, quality: quality)
      let likeness = try Pixels(decoding: file).psnr(to: scene)
      #expect(file.count > last.bytes && likeness > last.likeness, "\(quality)")
      last = (file.count, likeness)
    }
  }

  @Test(arguments: [20, 63, 85])
  func `it has the bytes and the likeness of libheif's`(quality: Int) throws {
    let scene = Pixels.textured(width: 331, height: 219)
    let file = try Self.made(scene, quality: quality)
    let theirs = try TestImages.encode(scene, as: ".avif[Q=\(quality),effort=1]")
    #expect(Double(file.count) < 1.05 * Double(theirs.count))
    let likeness = try [file, theirs].map { try Pixels(decoding: $0).psnr(to: scene) }
    #expect(likeness[0] > likeness[1] - 0.5)
  }

  /// Photographs, and what libaom takes for a screen: few colours, repeated shapes; few rows.
  private static let kinds: [Pixels] = [
    .textured(width: 901, height: 603), .textured(width: 90, height: 2_300),
    .textured(width: 1_900, height: 66),
    Pixels(width: 640, height: 480) { x, y in
      (x / 8 + y / 16) % 3 == 0 ? [20, 20, 30] : x % 40 < 3 ? [200, 30, 30] : [250, 250, 250]
    },
    Pixels(width: 500, height: 400, color: [10, 120, 200]),
  ]

  @Test(arguments: kinds.indices, [20, 63, 89])
  func `the result does not depend on the number of threads`(kind: Int, quality: Int) throws {
    let one = try Self.made(Self.kinds[kind], quality: quality)
    for threads in [2, 3, 4] {
      let isSame = try Self.made(Self.kinds[kind], quality: quality, threads: threads) == one
      #expect(isSame, "\(threads)")
    }
  }

  @Test func `effects, deep sources and a limit of bytes lead to it`() throws {
    let scene = Pixels.textured(width: 300, height: 200)
    let png = try TestImages.encode(scene, as: ".png")
    let changes: [(inout Transform) -> Void] = [
      { $0.effects.blur = 2 }, { $0.effects.sharpen = 1 }, { $0.rotation = .quarter },
      {
        $0.width = 600
        $0.enlarge = true
      },
      { $0.maxBytes = 3_000 },
    ]
    for (index, change) in changes.enumerated() {
      let file = try Made(png) {
        $0.format = .avif
        change(&$0)
      }.bytes
      let reference = try Made(png) {
        $0.format = .png
        if index < 4 { change(&$0) }
      }
      #expect(Self.isOwn(file), "\(index)")
      #expect(try Pixels(decoding: file).psnr(to: try reference.pixels()) > 20, "\(index)")
      if index == 4 { #expect(file.count <= 3_000) }
    }
    let deep = try TestImages.encode(scene, as: ".png", sixteenBits: true)
    #expect(Self.isOwn(try Made(deep) { $0.format = .avif }.bytes))
  }

  @Test func `the container holds one image in sRGB`() throws {
    let file = try Self.made(Pixels.scene(width: 90, height: 60))
    try file.withUnsafeBytes { bytes in
      let image = try #require(HEIFImage(of: bytes))
      #expect(image.codec == .av1 && image.grid == nil && image.orientation == .up)
      let model = image.tiles.first?.model
      #expect(model?.coefficients == 6 && model?.isFullRange == true)
      // No temporal delimiter (OBU type 2) in front of the sequence header.
      #expect(image.tiles.first?.data.first == 0x0a)
      #expect(HEIFContainer.codePoints(of: bytes) == nil)
      try ContainerLengths.check(bytes, as: .avif, limits: ImagingLimits())
    }
    let description = try Made(file) { $0.product = .info(nil) }
    #expect(description.isDescription)
  }

  @Test func `what it is not for, libvips encodes`() throws {
    let scene = Pixels.scene(width: 90, height: 60)
    let png = try TestImages.encode(scene, as: ".png")
    let alpha = try TestImages.encode(.scene(width: 90, height: 60, alpha: true), as: ".png")
    let grey = try TestImages.encode(
      Pixels(width: 90, height: 60, bands: 1) { x, y in [UInt8(x + y)] }, as: ".png")
    for (source, bands) in [(alpha, 4), (grey, 3)] {
      let file = try Made(source) { $0.format = .avif }.bytes
      #expect(!Self.isOwn(file))
      #expect(try Pixels(decoding: file).bands == bands)
    }
    #expect(!Self.isOwn(try Self.made(scene, quality: 90)))
    let photo = try TestImages.heif(scene, isAVIF: false, exifOrientation: 1)
    for isBare in [true, false] {
      let file = try Made(photo) {
        $0.format = .avif
        $0.output.stripsMetadata = isBare
      }.bytes
      #expect(Self.isOwn(file) == isBare)
    }
    var limits = ImagingLimits()
    limits.efforts.avif = 2
    #expect(!Self.isOwn(try Made(png, limits: limits) { $0.format = .avif }.bytes))
  }

  @Test func `a coded image without a sequence header is no file`() {
    let size = PixelSize(width: 1, height: 1)
    for frame in [[], [0x12, 0], [0x0a, 0x0a, 0x18], [0x0a, 0x80, 0x18, 0], [0x0a, 0x0a, 0, 0]]
      as [[UInt8]]
    {
      #expect(AVIFContainer.file(of: frame, size) == nil)
    }
  }
}
