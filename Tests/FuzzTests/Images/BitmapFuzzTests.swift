// BitmapFuzzTests: BMPs of all kinds, drawn as a simple reference draws them, damaged ones, and
// icons whose directories lie.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct BitmapFuzzTests {
  /// The most pixels that damaged headers may state.
  private static let maximumPixels = 20_000

  private static let words: [[UInt8]] =
    [12, 40, 52, 56, 64, 108, 124].map {
      CodedBitmap.little($0, width: 4)
    } + [
      [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [24, 0], [32, 0], [3, 0, 0, 0], [6, 0, 0, 0],
      [0, 1], [0, 2, 9, 9],
    ]

  /// Returns the pixels of an image, or `nil` if it has too many.
  static func pixels(of bitmap: Bitmap) throws(ImageError) -> [UInt8]? {
    guard bitmap.header.size.pixels <= maximumPixels else { return nil }
    let image = try bitmap.image()
    let described = try bitmap.described()
    guard image.size == described.size, image.bands == described.bands else { return [] }
    let rows = try PixelRows(of: image)
    var values: [UInt8] = []
    for y in 0..<image.size.height {
      let row = try rows.row(y)
      values += UnsafeBufferPointer(start: row, count: image.size.width * image.bands)
    }
    return values
  }

  /// Returns an uncompressed bitmap and its pixels.
  private static func plain(
    _ generator: inout SeededGenerator
  ) -> (bitmap: CodedBitmap, values: [UInt8]) {
    let size = PixelSize(width: generator.number(1...40), height: generator.number(1...9))
    let depth = generator.pick(1, 2, 4, 8, 16, 24, 32)
    var bitmap = CodedBitmap(size: size, depth: depth)
    bitmap.headerLength = generator.pick(40, 52, 108, 124)
    bitmap.isTopDown = generator.isOne(of: 2)
    var values: [UInt8] = []
    if depth <= 8 {
      bitmap.palette = (0..<1 << depth).map { _ in generator.bytes(3) }
    }
    for _ in 0..<size.pixels {
      let pixel = UInt32(generator.number(0...1 << min(depth, 24) - 1))
      bitmap.pixels.append(pixel)
      switch depth {
      case ...8: values += bitmap.palette[Int(pixel)]
      case 16:
        // Five bits each, red in the highest.
        values += [10, 5, 0].map { UInt8(((pixel >> $0 & 31) * 255 + 15) / 31) }
      default: values += [16, 8, 0].map { UInt8(pixel >> $0 & 255) }
      }
    }
    return (bitmap, values)
  }

  /// Returns a bitmap of random runs.
  private static func inRuns(_ generator: inout SeededGenerator) -> CodedBitmap {
    let depth = generator.pick(4, 8)
    let size = PixelSize(width: generator.number(1...30), height: generator.number(1...9))
    var bitmap = CodedBitmap(size: size, depth: depth)
    bitmap.compression = depth == 8 ? 1 : 2
    bitmap.palette = (0..<1 << depth).map { _ in generator.bytes(3) }
    var runs: [UInt8] = []
    for _ in 0..<generator.number(0...30) {
      switch generator.number(0...5) {
      case 0: runs += [0, 0]
      case 1: runs += [0, 2] + [UInt8(generator.number(0...5)), UInt8(generator.number(0...3))]
      case 2:
        let count = generator.number(3...20)
        let bytes = depth == 8 ? count : (count + 1) / 2
        runs += [0, UInt8(count)] + generator.bytes(bytes + bytes % 2)
      default: runs += [UInt8(generator.number(1...40)), generator.bytes(1)[0]]
      }
    }
    bitmap.runs = runs + [0, 1]
    return bitmap
  }

  /// Draws runs on a canvas by coordinates ("Bitmap Compression" in Microsoft's GDI manual).
  private static func drawn(_ bitmap: CodedBitmap) -> [UInt8] {
    let width = bitmap.size.width
    let height = bitmap.size.height
    var canvas = [UInt8](repeating: 0, count: width * height)
    var x = 0
    var y = 0
    var rest = (bitmap.runs ?? [])[...]
    func put(_ index: UInt8) {
      if x < width, y < height { canvas[y * width + x] = index }
      x += 1
    }
    func indices(_ byte: UInt8) -> [UInt8] { bitmap.depth == 8 ? [byte] : [byte >> 4, byte & 15] }
    loop: while let first = rest.popFirst(), let second = rest.popFirst() {
      switch (first, second) {
      case (0, 0):
        x = 0
        y += 1
      case (0, 1): break loop
      case (0, 2):
        x += Int(rest.removeFirst())
        y += Int(rest.removeFirst())
      case (0, let count):
        let bytes = bitmap.depth == 8 ? Int(count) : (Int(count) + 1) / 2
        rest.prefix(bytes).flatMap(indices).prefix(Int(count)).forEach(put)
        rest = rest.dropFirst(bytes + bytes % 2)
      case (let count, let value):
        let pair = indices(value)
        for index in 0..<Int(count) { put(pair[index % pair.count]) }
      }
    }
    let rows = (0..<height).map { canvas[$0 * width..<($0 + 1) * width] }
    let ordered = bitmap.isTopDown ? rows : rows.reversed()
    return ordered.joined().flatMap { bitmap.palette[Int($0)] }
  }

  @Test func `pixels are those of a simple reference`() throws {
    TestImages.start()
    for seed in FuzzSeeds.run(usual: 400) {
      var generator = SeededGenerator(seed: seed)
      let (bitmap, values) = Self.plain(&generator)
      let runs = Self.inRuns(&generator)
      let drawn = try GuardedBytes(bitmap.file).withBytes { try Self.pixels(of: Bitmap($0)) }
      #expect(drawn == values, "seed \(seed): \(bitmap)")
      let played = try GuardedBytes(runs.file).withBytes { try Self.pixels(of: Bitmap($0)) }
      #expect(played == Self.drawn(runs), "seed \(seed): \(runs)")
    }
  }

  @Test func `damaged bitmaps are refused, or are as large as they say`() throws {
    TestImages.start()
    var decoded = 0
    try Fuzz.run(
      "bitmaps", usual: 1_500,
      make: { generator in
        let bitmap =
          generator.isOne(of: 2) ? Self.inRuns(&generator) : Self.plain(&generator).bitmap
        var bytes = bitmap.file
        Damage.apply(to: &bytes, words: Self.words, using: &generator)
        return bytes
      },
      check: { bytes in
        try GuardedBytes(bytes).withBytes { buffer in
          do throws(ImageError) {
            let bitmap = try Bitmap(buffer)
            guard let values = try Self.pixels(of: bitmap) else { return }
            let bands = bitmap.header.hasAlpha ? 4 : 3
            guard values.count == bitmap.header.size.pixels * bands else {
              throw .internal(detail: "\(values.count) values of \(bitmap.header.size)")
            }
            decoded += 1
          } catch {
            guard ["undecodable", "unsupported_format"].contains(error.code) else { throw error }
          }
        }
      })
    #expect(decoded > 0)
  }

  /// Returns an image of an icon: a bitmap or a PNG.
  private static func image(_ generator: inout SeededGenerator) -> [UInt8] {
    let size = PixelSize(width: generator.number(1...20), height: generator.number(1...20))
    if generator.isOne(of: 2) {
      let samples = [Int](repeating: 0, count: size.pixels)
      return CodedPNG(size: size, colorType: 0, depth: 8, samples: samples).bytes
    }
    var bitmap = CodedBitmap(size: size, depth: generator.pick(1, 4, 8, 24, 32))
    bitmap.pixels = [UInt32](repeating: 0, count: size.pixels)
    bitmap.clear = [Bool](repeating: false, count: size.pixels)
    return bitmap.icon
  }

  /// Returns an icon whose entries may share images, and may state more of them than there are.
  private static func icon(_ generator: inout SeededGenerator) -> [UInt8] {
    let images = (0..<generator.number(1...6)).map { _ in image(&generator) }
    var icon = CodedBitmap.icon(of: images)
    if generator.isOne(of: 3) {
      let entry = Array(icon[6..<22])
      for index in 1..<images.count where generator.isOne(of: 2) {
        icon.replaceSubrange(6 + 16 * index..<22 + 16 * index, with: entry)
      }
    }
    if generator.isOne(of: 4) { icon.replaceSubrange(4..<6, with: [255, 255]) }
    return icon
  }

  /// Damage to a PNG's pixels is found when they are decoded.
  private static let limits: ImagingLimits = {
    var limits = ImagingLimits()
    limits.failOn = .none
    return limits
  }()

  /// Returns the size of the image that counts: the largest, then the deepest, then the first.
  /// Reads each image as if it were alone.
  private static func best(of icon: UnsafeRawBufferPointer, _ places: [Range<Int>]) -> PixelSize? {
    var best: (pixels: Int, depth: Int, size: PixelSize)?
    for place in places {
      let image = Array(icon[place])
      let found: (depth: Int, size: PixelSize)? = image.withUnsafeBytes { bytes in
        guard FormatSigns.format(of: bytes) == .png else {
          return (try? Bitmap(inIcon: bytes)).map { ($0.header.depth, $0.header.size) }
        }
        let isWhole = (try? ContainerLengths.check(bytes, as: .png, limits: limits)) != nil
        guard isWhole, bytes.count >= 24 else { return nil }
        func side(_ place: Int) -> Int { image[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }
        return (32, PixelSize(width: side(16), height: side(20)))
      }
      guard let found else { continue }
      let pixels = found.size.width.multipliedReportingOverflow(by: found.size.height)
      guard !pixels.overflow else { continue }
      if best.map({ ($0.pixels, $0.depth) < (pixels.partialValue, found.depth) }) ?? true {
        best = (pixels.partialValue, found.depth, found.size)
      }
    }
    return best?.size
  }

  @Test func `work on an icon is bounded by its bytes, and the largest image counts`() throws {
    TestImages.start()
    var decoded = 0
    try Fuzz.run(
      "icons", usual: 1_500,
      make: { generator in
        var bytes = Self.icon(&generator)
        Damage.apply(to: &bytes, words: [[255, 255], [22, 0, 0, 0]], using: &generator)
        return bytes
      },
      check: { bytes in
        try GuardedBytes(bytes).withBytes { buffer in
          guard let images = try? IconDirectory(of: buffer).images else {
            return try hold(bytes.count < 6, "an icon without a directory")
          }
          let read = images.reduce(0) { $0 + $1.count }
          try hold(read <= IconDirectory.maximumReadings * bytes.count, "\(read) bytes are read")
          try hold(Set(images).count == images.count, "an image is read twice")
          try hold(images.count <= (bytes.count - 6) / 16, "\(images.count) images")
          try hold(images.allSatisfy { $0.upperBound <= bytes.count }, "an image past the end")
          let size: PixelSize?
          switch try? Icon(buffer) {
          case .bitmap(let bitmap):
            size = bitmap.header.size
            if try BitmapFuzzTests.pixels(of: bitmap) != nil { decoded += 1 }
          case .png(let png): size = Self.best(of: png, [0..<png.count])
          case nil: size = nil
          }
          let expected = Self.best(of: buffer, images)
          try hold(
            size == expected, "\(String(describing: size)), not \(String(describing: expected))")
        }
      })
    #expect(decoded > 0)
  }
}
