// MemorySeeds: small inputs of all formats that decoders may leave unwritten in part.

import Model
import TestSupport

/// The corpus of `MemoryFuzzTests`.
enum MemorySeeds {
  struct Seed {
    let name: String
    let bytes: [UInt8]
    /// Whether a worker makes an image of it, or refuses it.
    var isDecoded = true
  }

  static let all = Result<[Seed], any Error> {
    TestImages.start()
    let named = try FileSeeds.all().enumerated().map {
      Seed(name: "\($0.element.format) \($0.offset)", bytes: $0.element.bytes)
    }
    return try named + vips() + coded() + jpeg2000() + tiffs()
  }

  private static let scene = Pixels.scene(width: 90, height: 70)
  private static let grey = Pixels(width: 90, height: 70, bands: 1) { x, y in [UInt8(x + y)] }

  /// What libvips writes.
  private static func vips() throws -> [Seed] {
    let clear = Pixels.scene(width: 90, height: 70, alpha: true)
    return try [
      ".jpg", ".jpg[subsample-mode=off]", ".png[interlace]", ".png[palette]", ".webp",
      ".webp[lossless]", ".gif", ".jxl", ".jp2", ".jp2[tile-width=32,tile-height=32]",
      ".tif[compression=jpeg,tile,tile-width=32,tile-height=32]", ".tif[compression=lzw]",
      ".tif[compression=deflate,tile,tile-width=32,tile-height=32]", ".tif[compression=webp]",
      ".avif[effort=0]", ".heic[compression=hevc,effort=0]",
    ].map { Seed(name: $0, bytes: try TestImages.encode(scene, as: $0)) }
      + [".png", ".webp", ".gif", ".jp2", ".tif", ".avif[effort=0]"].map {
        Seed(name: "alpha \($0)", bytes: try TestImages.encode(clear, as: $0))
      }
      + [".jpg", ".png", ".tif", ".jp2", ".png[bitdepth=1]"].map {
        Seed(name: "grey \($0)", bytes: try TestImages.encode(grey, as: $0))
      }
      + [".png", ".tif", ".jp2"].map {
        Seed(name: "deep \($0)", bytes: try TestImages.encode(scene, as: $0, sixteenBits: true))
      } + [
        Seed(name: "frames", bytes: try TestImages.gif(width: 30, height: 20, frames: 4)),
        Seed(
          name: "frames of WebP",
          bytes: try TestImages.animatedWebP(width: 30, height: 20, frames: 4)),
        Seed(
          name: "CMYK", bytes: try TestImages.cmykJPEG(width: 40, height: 30, color: [9, 90, 9, 0])),
        Seed(name: "SVG", bytes: TestImages.svg(width: 40, height: 30)),
      ]
  }

  /// What the kit and other libraries write.
  private static func coded() throws -> [Seed] {
    let size = PixelSize(width: 21, height: 13)
    var bitmap = CodedBitmap(size: size, depth: 8)
    bitmap.palette = (0..<256).map { [UInt8($0), 9, UInt8(255 - $0)] }
    var plain = bitmap
    plain.pixels = (0..<size.pixels).map { UInt32($0 & 255) }
    // Runs that end early: the rest of the pixels is not stated.
    bitmap.compression = 1
    bitmap.runs = [9, 7, 0, 2, 3, 2, 5, 9, 0, 1]
    var icon = plain
    icon.clear = (0..<size.pixels).map { $0.isMultiple(of: 3) }
    return [
      Seed(name: "ICO", bytes: CodedBitmap.icon(of: [icon.icon])),
      Seed(name: "BMP", bytes: plain.file), Seed(name: "BMP in runs", bytes: bitmap.file),
      Seed(
        name: "4:2:0", bytes: try TestImages.jpeg(scene, as: .ycc, sampling: (2, 2), quality: 80)),
      Seed(
        name: "restarts",
        bytes: try TestImages.jpeg(scene, as: .ycc, progressive: true, restartInterval: 3)),
      Seed(name: "arithmetic", bytes: try TestImages.jpeg(scene, as: .ycc, arithmetic: true)),
      Seed(name: "JXL", bytes: try TestImages.jxl(scene)),
      Seed(name: "HEIC of 10 bits", bytes: try TestImages.heif(scene, isAVIF: false, bits: 10)),
    ]
  }

  /// An image whose first tile is not whole, which libvips takes for a whole one.
  static func beside() throws -> [UInt8] {
    var form = TestImages.JPEG2000Form()
    form.offset = (20, 12)
    return try TestImages.jp2(scene, form)
  }

  private static func jpeg2000() throws -> [Seed] {
    func seed(
      _ name: String, isDecoded: Bool = true, change: (inout TestImages.JPEG2000Form) -> Void
    ) throws -> Seed {
      var form = TestImages.JPEG2000Form()
      change(&form)
      return Seed(name: name, bytes: try TestImages.jp2(scene, form), isDecoded: isDecoded)
    }
    return [
      Seed(name: "image offset", bytes: try beside(), isDecoded: false),
      try seed("image offset, tiles", isDecoded: false) {
        $0.offset = (20, 12)
        $0.tile = 32
        $0.isBare = true
      },
      try seed("equal offsets") {
        $0.offset = (20, 12)
        $0.tileOffset = (20, 12)
        $0.tile = 32
      },
      try seed("sub-sampled") {
        $0.sampling = 2
        $0.tile = 32
        $0.isBare = true
      },
      try seed("parts of tiles") {
        $0.isInParts = true
        $0.tile = 32
      },
    ]
  }

  /// Tiles that are smaller than their place.
  private static func tiffs() throws -> [Seed] {
    let small = Pixels(width: 8, height: 8, bands: 1) { x, y in [UInt8(x * y * 4)] }
    var form = TestImages.JPEG2000Form()
    form.isBare = true
    return [
      Seed(
        name: "small tiles of JPEG 2000",
        bytes: TiledTIFF(compression: 33_005, tile: try TestImages.jp2(small, form)).bytes,
        isDecoded: false),
      Seed(
        name: "small tiles of JPEG",
        bytes: TiledTIFF(compression: 7, tile: try TestImages.encode(small, as: ".jpg[strip]"))
          .bytes,
        isDecoded: false),
    ]
  }
}
