// TransformTests: decisions on whole groups, compared with lists of single parameters.

import TestSupport
import Testing

@testable import Core

struct TransformTests {
  /// One change of each parameter.
  static let changes: [@Sendable (inout Transform) -> Void] = [
    { $0.scale = 0.5 }, { $0.width = 9 }, { $0.height = 9 }, { $0.fit = .cover },
    { $0.position = .top }, { $0.focalPoint = FocalPoint(x: 0, y: 1) }, { $0.enlarge = true },
    { $0.limitBytes = 9 }, { $0.frame = 0 }, { $0.rotation = .half }, { $0.flip = .both },
    { $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 9, height: 9)) }, { $0.trim = 9 },
    { $0.format = .webp }, { $0.accepted = [.webp] }, { $0.quality = 9 },
    { $0.qualities[.jpeg] = 9 }, { $0.maxBytes = 9 },
    { $0.background = Color(red: 0, green: 0, blue: 0) }, { $0.isAnimated = false },
    { $0.stripsMetadata = false }, { $0.progressive = true }, { $0.effects.blur = 9 },
    { $0.effects.isGrayscale = true }, { $0.effects.pixelate = 9 }, { $0.effects.hue = 9 },
    { $0.effects.isNegative = true }, { $0.sizing.extend = .box }, { $0.sizing.minWidth = 9 },
    { $0.sizing.padding.left = 9 }, { $0.sizing.aspectRatio = AspectRatio(2) },
    { $0.selection.isUpright = false }, { $0.output.keepsFormat = true },
    { $0.sizing.angle = 9 }, { $0.output.profile = .keep }, { $0.product = .info(nil) },
    { $0.product = .placeholder(.color) },
    { $0.watermark = (try? SourceURL(parsing: "http://a/m.png")).map { Watermark(source: $0) } },
  ]

  /// Returns a transform with a few random changes.
  static func random(_ generator: inout SeededGenerator) -> Transform {
    var transform = Transform()
    for _ in 0..<Int.random(in: 0...3, using: &generator) {
      changes.randomElement(using: &generator)?(&transform)
    }
    return transform
  }

  @Test func `every parameter belongs to a group whose default has no effect`() {
    for (index, change) in Self.changes.enumerated() {
      var transform = Transform()
      change(&transform)
      #expect(transform != Transform(), "change \(index)")
      let isKnown =
        transform.selection != Selection() || transform.sizing != Sizing()
        || transform.effects != Effects() || transform.watermark != nil
        || transform.output != OutputOptions() || transform.product != .image
      #expect(isKnown, "change \(index)")
    }
  }

  @Test func `group comparisons for kept pixels agree with a list of parameters`() {
    var generator = SeededGenerator(seed: 13)
    for _ in 0..<5_000 {
      let transform = Self.random(&generator)
      let isPlain =
        transform.product == .image && transform.effects == Effects() && transform.watermark == nil
      let isWhole = transform.crop == nil && transform.trim == nil && transform.frame == nil
      let isUpright =
        transform.rotation == .none && transform.flip == .none && transform.selection.isUpright
      let sizing = transform.sizing
      let isBare = sizing.padding == Edges() && sizing.minWidth == nil && sizing.angle == 0
      #expect(transform.isPlainImage == isPlain)
      #expect(transform.keepsPixels == (isPlain && isWhole && isBare))
      #expect(transform.keepsStoredPixels == (isPlain && isWhole && isUpright && isBare))
      #expect(
        transform.leavesFormatOpen
          == (transform.format == nil && !transform.output.keepsFormat
            && transform.product == .image))
    }
  }

  @Test func `group comparisons for derivation agree with a list of parameters`() {
    var generator = SeededGenerator(seed: 14)
    var derivable = 0
    for _ in 0..<20_000 {
      let larger = Self.random(&generator)
      let wanted = Self.random(&generator)
      let isListed =
        (larger.format == nil || larger.format == wanted.format)
        && larger.background == wanted.background && larger.isAnimated == wanted.isAnimated
        && wanted.stripsMetadata && larger.output.keepsFormat == wanted.output.keepsFormat
        && larger.output.profile == wanted.output.profile
      #expect(wanted.output.isDerivable(from: larger.output) == isListed)
      if isListed { derivable += 1 }
    }
    #expect((1_000..<19_000).contains(derivable))
  }
}
