// IconFuzzTests: icons whose directories lie.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct IconFuzzTests {
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
