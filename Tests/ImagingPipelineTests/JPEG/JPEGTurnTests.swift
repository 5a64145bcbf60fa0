// JPEGTurnTests: lossless rotations, compared with the decoded and rotated source.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

extension Pixels {
  /// Returns the scene with noise that differs in every block.
  static func noisy(width: Int, height: Int, bands: Int = 3, seed: UInt64 = 5) -> Pixels {
    var random = SeededGenerator(seed: seed)
    let scene = Pixels.scene(width: width, height: height)
    return Pixels(width: width, height: height, bands: bands) { x, y in
      scene[x, y].prefix(bands).map {
        UInt8(clamping: Int($0) + Int.random(in: -30...30, using: &random))
      }
    }
  }

  /// Returns a stored image made upright, without the pipeline's code.
  func upright(from tag: Int) -> Pixels { stored(forOrientation: [6: 8, 8: 6][tag] ?? tag) }
}

@Suite(.onOwnThreads) struct JPEGTurnTests {
  struct Kind: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let colors: TestImages.JPEGColors
    var sampling = (across: 1, down: 1)
    var isProgressive = false
    var restartInterval = 0

    /// The maximum rounding difference of a value. The inverse cosine transform processes columns
    /// before rows, so a rotated block may round differently. In RGB a difference of 1 in lightness
    /// and each colour adds up to 1 + 1.772, rounded; upsampled colour rounds once more.
    var maximumRounding: Int {
      guard colors == .ycc else { return 1 }
      return sampling == (1, 1) ? 3 : 4
    }

    func jpeg(_ size: PixelSize) throws -> [UInt8] {
      try TestImages.jpeg(
        .noisy(width: size.width, height: size.height, bands: colors == .grey ? 1 : 3), as: colors,
        sampling: sampling, progressive: isProgressive, quality: 75,
        restartInterval: restartInterval)
    }
  }

  static let kinds = [
    Kind(testDescription: "grey", colors: .grey),
    Kind(testDescription: "grey of 2 by 2", colors: .grey, sampling: (2, 2)),
    Kind(testDescription: "4:4:4", colors: .ycc),
    Kind(testDescription: "4:2:2", colors: .ycc, sampling: (2, 1)),
    Kind(testDescription: "4:4:0", colors: .ycc, sampling: (1, 2)),
    Kind(testDescription: "4:2:0", colors: .ycc, sampling: (2, 2)),
    Kind(testDescription: "RGB", colors: .rgb),
    Kind(testDescription: "progressive", colors: .ycc, sampling: (2, 2), isProgressive: true),
    Kind(testDescription: "restarts", colors: .ycc, sampling: (2, 1), restartInterval: 3),
  ]
  static let sizes = [
    PixelSize(width: 64, height: 48), PixelSize(width: 40, height: 64),
    PixelSize(width: 72, height: 37), PixelSize(width: 33, height: 80),
    PixelSize(width: 21, height: 13),
  ]

  private func turned(_ jpeg: [UInt8], by tag: Int, isProgressive: Bool = false) -> [UInt8]? {
    jpeg.withUnsafeBytes { bytes in
      guard let turn = JPEGTurn(bytes) else { return nil }
      return turn.turned(by: Orientation(tag: tag), isProgressive: isProgressive)
    }
  }

  /// Returns whether the rotation leaves partial blocks at the right and lower edges.
  private func isSuited(_ kind: Kind, size: PixelSize, tag: Int) -> Bool {
    let isGrey = kind.colors == .grey
    let across = isGrey ? 8 : 8 * kind.sampling.across
    let down = isGrey ? 8 : 8 * kind.sampling.down
    let mirrorsX = [2, 3, 7, 8].contains(tag)
    let mirrorsY = [3, 4, 6, 7].contains(tag)
    return (!mirrorsX || size.width.isMultiple(of: across))
      && (!mirrorsY || size.height.isMultiple(of: down))
  }

  @Test(arguments: kinds, sizes)
  func `a lossless rotation shows the upright pixels, and rotating back restores the source`(
    kind: Kind, size: PixelSize
  ) throws {
    // Given
    let source = try kind.jpeg(size)
    let stored = try Pixels(decoding: source)
    for tag in 1...8 {
      // When
      let result = turned(source, by: tag)
      // Then
      #expect((result != nil) == isSuited(kind, size: size, tag: tag), "\(tag)")
      guard let result else { continue }
      let pixels = try Pixels(decoding: result)
      #expect(pixels.size == stored.upright(from: tag).size)
      let difference = pixels.largestDifference(to: stored.upright(from: tag))
      #expect(difference <= kind.maximumRounding, "\(tag)")
      let back = [6: 8, 8: 6][tag] ?? tag
      if let same = turned(result, by: back) {
        #expect(try Pixels(decoding: same).values == stored.values, "\(tag)")
      }
      let progressive = try #require(turned(source, by: tag, isProgressive: true))
      #expect(try Pixels(decoding: progressive).values == pixels.values, "\(tag)")
    }
  }

  @Test func `a JPEG that libjpeg refuses is not rotated losslessly`() throws {
    // Given
    let jpeg = try Self.kinds[5].jpeg(Self.sizes[0])
    var random = SeededGenerator(seed: 3)
    // When, then
    #expect(turned([], by: 6) == nil)
    #expect(turned(Array(jpeg.prefix(jpeg.count / 2)), by: 6) == nil)
    #expect(turned(Array("no JPEG at all, but some bytes".utf8), by: 6) == nil)
    for _ in 0..<2_000 {
      var damaged = jpeg
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        damaged[.random(in: 0..<damaged.count, using: &random)] = .random(
          in: 0...255, using: &random)
      }
      if let result = turned(damaged, by: 6) { #expect(result.starts(with: [0xff, 0xd8])) }
    }
  }

  @Test func `CMYK is not rotated losslessly`() throws {
    let inks = Pixels(width: 16, height: 16, color: [0, 90, 90, 0])
    #expect(turned(try TestImages.jpeg(inks, as: .cmyk), by: 3) == nil)
    #expect(turned(try TestImages.jpeg(inks, as: .ycck), by: 3) == nil)
  }
}
