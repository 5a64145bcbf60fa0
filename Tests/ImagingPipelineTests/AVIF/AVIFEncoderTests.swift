// AVIFEncoderTests: AVIFs that libaom makes without libheif, decoded by libheif, and their planes.

import CVips
import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct AVIFEncoderTests {
  private static let sizes: [PixelSize] = [
    PixelSize(width: 1, height: 1), PixelSize(width: 2, height: 1), PixelSize(width: 1, height: 7),
    PixelSize(width: 15, height: 16), PixelSize(width: 64, height: 65),
    PixelSize(width: 331, height: 219), PixelSize(width: 1_003, height: 40),
  ]

  private static let colours: [[UInt8]] = [
    [0, 0, 0], [255, 255, 255], [128, 128, 128], [255, 0, 0], [0, 255, 0], [0, 0, 255],
    [255, 255, 0], [0, 255, 255], [255, 0, 255], [200, 130, 90],
  ]

  /// An image without edges of colours, which would be lost.
  private static func smooth(_ size: PixelSize) -> Pixels {
    Pixels(width: size.width, height: size.height) { x, y in
      let shade = 60 + 120 * x / size.width + 60 * y / size.height
      return [UInt8(shade), UInt8(shade + 12), UInt8(shade - 20)]
    }
  }

  private static func made(
    _ pixels: Pixels, quality: Int = 63, threads: Int = 1
  ) throws -> [UInt8] {
    let limits = ImagingLimits { $0.maximumThreads = threads }
    return try Made(
      try TestImages.encode(pixels, as: ".png"), limits: limits, format: .avif, quality: quality
    ).bytes
  }

  /// Whether the container is Pictor's own: it gives the primaries, and libheif does not.
  private static func isOwn(_ file: [UInt8]) -> Bool {
    HEIFBoxes.first("colr", in: file) == HEIFBoxes.nclx(coefficients: 6)
  }

  @Test(arguments: sizes)
  func `an image of any size looks like its source`(size: PixelSize) throws {
    let scene = Self.smooth(size)
    let file = try Self.made(scene)
    #expect(Self.isOwn(file))
    #expect(try Pixels(decoding: file).psnr(to: scene) > 36)
  }

  @Test(arguments: colours)
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
      let file = try Made(photo, format: .avif) { $0.output.stripsMetadata = isBare }.bytes
      #expect(Self.isOwn(file) == isBare)
    }
    let limits = ImagingLimits { $0.efforts.avif = 2 }
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

  @Test func `an image that is not in memory has the same bytes`() throws {
    func encoded(_ image: borrowing Image) throws -> [UInt8] {
      try AVIFEncoder(quality: 63, threads: 1).encode(image).withUnsafeBytes { Array($0) }
    }
    let image = try Pixels.textured(width: 150, height: 90).image()
    let lazy = try image.copied()
    #expect(image.pixels != nil && lazy.pixels == nil)
    let isSame = try encoded(image) == encoded(lazy)
    #expect(isSame)
  }
}

@Suite struct ChromaSubsamplingTests {
  /// A plane with a byte around each row that must not change.
  private struct Canvas {
    static let guardByte: UInt8 = 0xa5
    let size: PixelSize
    var bytes: [UInt8]

    init(_ size: PixelSize) {
      self.size = size
      bytes = Array(repeating: Self.guardByte, count: (size.width + 2) * (size.height + 2))
    }

    var stride: Int { size.width + 2 }

    mutating func withSamples(_ body: (ChromaSubsampling.Samples) throws -> Void) throws {
      let stride = stride
      try bytes.withUnsafeMutableBufferPointer { bytes in
        let first = try #require(bytes.baseAddress) + stride + 1
        try body(ChromaSubsampling.Samples(first, stride: CInt(stride)))
      }
    }

    subscript(x: Int, y: Int) -> UInt8 { bytes[(y + 1) * stride + x + 1] }

    /// Whether all bytes around the plane are as they were.
    var isIntact: Bool {
      bytes.indices.allSatisfy { index in
        let (x, y) = (index % stride, index / stride)
        let isInside = 1...size.width ~= x && 1...size.height ~= y
        return isInside || bytes[index] == Self.guardByte
      }
    }
  }

  /// Converts pixels that end where readable memory ends.
  private func converted(
    _ pixels: Pixels, by subsampling: ChromaSubsampling
  ) throws -> (luma: Canvas, blue: Canvas, red: Canvas) {
    let size = pixels.size
    let half = PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
    var (luma, blue, red) = (Canvas(size), Canvas(half), Canvas(half))
    let source = try GuardedBytes(pixels.values)
    try luma.withSamples { y in
      try blue.withSamples { cb in
        try red.withSamples { cr in
          let planes = ChromaSubsampling.Planes(luma: y, cb: cb, cr: cr)
          try source.withBytes { bytes in
            let start = try #require(bytes.baseAddress).assumingMemoryBound(to: UInt8.self)
            subsampling.convert(start, size, to: planes)
          }
        }
      }
    }
    return (luma, blue, red)
  }

  private static let sizes: [PixelSize] = (1...26).flatMap { width in
    (1...5).map { PixelSize(width: width, height: $0) }
  }

  @Test func `every sample is the rounded sum, at any size`() throws {
    var chance = SeededGenerator(seed: 7)
    for size in Self.sizes {
      let pixels = Pixels(width: size.width, height: size.height) { _, _ in
        // Extremes are likelier than by chance.
        (0..<3).map { _ in
          [0, 255, UInt8.random(in: 0...255, using: &chance)][Int.random(in: 0...2, using: &chance)]
        }
      }
      let planes = try converted(pixels, by: .fullRange)
      #expect(planes.luma.isIntact && planes.blue.isIntact && planes.red.isIntact, "\(size)")
      func level(_ x: Int, _ y: Int) -> [Double] {
        pixels.rgb(x: min(x, size.width - 1), y: min(y, size.height - 1)).map(Double.init)
      }
      func luma(_ level: [Double]) -> Double {
        0.299 * level[0] + 0.587 * level[1] + 0.114 * level[2]
      }
      var worst = 0.0
      for y in 0..<size.height {
        for x in 0..<size.width {
          let wanted = luma(level(x, y))
          worst = max(worst, abs(Double(planes.luma[x, y]) - wanted))
        }
      }
      for y in 0..<(size.height + 1) / 2 {
        for x in 0..<(size.width + 1) / 2 {
          let square = [(0, 0), (1, 0), (0, 1), (1, 1)].map { level(2 * x + $0.0, 2 * y + $0.1) }
          let mean = (0..<3).map { band in square.map { $0[band] }.reduce(0, +) / 4 }
          for (band, share, plane) in [(2, 0.114, planes.blue), (0, 0.299, planes.red)] {
            let wanted = (mean[band] - luma(mean)) / (1 - share) / 2 + 128
            worst = max(worst, abs(Double(plane[x, y]) - min(wanted, 255)))
          }
        }
      }
      // Half a level of rounding, and the weights' own.
      #expect(worst < 0.52, "\(size)")
    }
  }
}
