// DerivationCandidatesTests: tests from which variants an image may be derived.

import Core
import TestSupport
import Testing

@testable import Managing

struct DerivationCandidatesTests {
  private func transform(_ change: (inout Transform) -> Void = { _ in }) -> Transform {
    var transform = Transform()
    transform.width = 1_000
    transform.quality = 90
    change(&transform)
    return transform
  }

  private func request(_ transform: Transform, number: Int = 0) throws -> ImageRequest {
    ImageRequest(
      source: try SourceURL(parsing: "http://origin/\(number).jpg"), transform: transform)
  }

  private func variant(
    _ transform: Transform, number: Int = 0, format: ImageFormat = .jpeg,
    width: Int = 1_000, height: Int = 750, frames: Int = 1, scaledDownFrom: PixelSize? = nil,
    quality: Int? = nil, colourType: UInt8 = 2
  ) throws -> Variant {
    Variant(
      key: try request(transform, number: number).key,
      info: VariantInfo(
        .image(
          RenderedImage(
            format: format, size: PixelSize(width: width, height: height), frames: frames,
            density: 1, scaledDownFrom: scaledDownFrom, quality: quality)), etag: "\"e\"",
        freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: 1)),
      body: .memory(Self.bytes(colourType).withUnsafeBytes { ImageBytes(copying: $0) }))
  }

  /// The beginning of a PNG.
  private static func bytes(_ colourType: UInt8) -> [UInt8] {
    [UInt8](repeating: 0, count: 25) + [colourType, 0, 0, 0]
  }

  private func isMade(_ wanted: Transform, from larger: Variant, as made: Transform) throws -> Bool
  {
    var variants = DerivationCandidates()
    variants.note(larger, of: made)
    return try !variants.candidates(for: request(wanted)).isEmpty
  }

  @Test func `a variant at half size is derived from one of quality 90 or a lossless one`() throws {
    let small = transform {
      $0.width = 500
      $0.quality = nil
    }
    let lossless = transform { $0.quality = nil }
    #expect(try isMade(small, from: variant(transform()), as: transform()))
    #expect(try isMade(small, from: variant(lossless, number: 0, format: .png), as: lossless))
    let found = transform { $0.maxBytes = 9 }
    #expect(try isMade(small, from: variant(found, quality: 90), as: found))
    for fit in [Fit.inside, .outside, .fill] {
      let boxed = transform {
        $0.width = 400
        $0.height = 300
        $0.fit = fit
      }
      #expect(try isMade(boxed, from: variant(transform()), as: transform()))
    }
  }

  @Test func `a variant of lower fidelity is not used for derivation`() throws {
    let small = transform { $0.width = 500 }
    let changes: [(inout Transform) -> Void] = [
      { $0.quality = 89 }, { $0.quality = nil }, { $0.enlarge = true }, { $0.fit = .cover },
      { $0.fit = .contain }, { $0.fit = .fill }, { $0.effects.isGrayscale = true },
      { $0.product = .placeholder(.lqip) }, { $0.maxBytes = 9 },
    ]
    for change in changes {
      let made = transform(change)
      #expect(try !isMade(small, from: variant(made), as: made))
    }
    let made = transform()
    #expect(try !isMade(small, from: variant(made, frames: 2), as: made))
    #expect(try !isMade(small, from: variant(made, number: 0, format: .gif), as: made))
    #expect(try !isMade(small, from: variant(made, number: 0, format: .png), as: made))
    #expect(try !isMade(small, from: variant(made, quality: 60), as: made))
    let size = PixelSize(width: 9_000, height: 6_750)
    #expect(try !isMade(small, from: variant(made, scaledDownFrom: size), as: made))
  }

  @Test func `a PNG with a palette, which may have lost colours, is not used for derivation`()
    throws
  {
    let made = transform { $0.quality = nil }
    let small = transform {
      $0.width = 500
      $0.quality = nil
    }
    #expect(try isMade(small, from: variant(made, format: .png, colourType: 6), as: made))
    #expect(try !isMade(small, from: variant(made, format: .png, colourType: 3), as: made))
    for (type, isUsed) in [(UInt8(6), true), (3, false)] {
      let larger = try variant(made, format: .png)
      let file = Variant(
        key: larger.key, info: larger.info, body: .file(try .sealed(Self.bytes(type))))
      #expect(try isMade(small, from: file, as: made) == isUsed)
    }
  }

  @Test func `a variant with another crop, turn or fit is not derived`() throws {
    let made = transform()
    let larger = try variant(transform())
    let changes: [(inout Transform) -> Void] = [
      { $0.width = 501 }, { $0.width = nil }, { $0.fit = .cover }, { $0.fit = .contain },
      { $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 9, height: 9)) },
      { $0.rotation = .quarter }, { $0.flip = .vertical }, { $0.trim = 1 }, { $0.frame = 0 },
      { $0.isAnimated = false }, { $0.stripsMetadata = false }, { $0.effects.blur = 1 },
      { $0.background = Color(red: 0, green: 0, blue: 0) }, { $0.limitBytes = 1_000 },
      { $0.product = .info(nil) },
      {
        $0.width = 300
        $0.fit = .fill
      },
    ]
    for change in changes {
      var wanted = transform { $0.width = 500 }
      change(&wanted)
      if wanted.fit == .cover || wanted.fit == .contain { wanted.height = 300 }
      #expect(try !isMade(wanted, from: larger, as: made))
    }
    // An explicit format may have lost alpha or animation. A request for the same format loses
    // them, too.
    let named = transform { $0.format = .jpeg }
    #expect(try !isMade(transform { $0.width = 500 }, from: variant(named), as: named))
    #expect(
      try isMade(
        transform {
          $0.width = 500
          $0.format = .jpeg
        }, from: variant(named), as: named))
    #expect(
      try isMade(
        transform {
          $0.width = 500
          $0.format = .webp
        }, from: larger, as: made))
  }

  @Test func `a derivation does not repeat the crop and turn of the larger variant`() throws {
    func cut(_ width: Int) -> Transform {
      transform {
        $0.width = width
        $0.crop = PixelArea(x: 1, y: 2, size: PixelSize(width: 2_000, height: 1_500))
        $0.rotation = .quarter
        $0.flip = .both
        $0.trim = 9
      }
    }
    var variants = DerivationCandidates()
    variants.note(try variant(cut(1_000)), of: cut(1_000))
    let found = try #require(try variants.candidates(for: request(cut(400))).first)
    #expect(found.rest == transform { $0.width = 400 })
  }

  /// Returns the output size by the rules of docs/http-api.md, without enlarging.
  private func size(of transform: Transform, _ source: PixelSize) -> PixelSize {
    func side(_ exact: Double) -> Int { max(1, Int(exact.rounded())) }
    let width = Double(source.width)
    let height = Double(source.height)
    let x = transform.width.map { Double(side(Double($0) * (transform.scale ?? 1))) / width }
    let y = transform.height.map { Double(side(Double($0) * (transform.scale ?? 1))) / height }
    let factors: (Double, Double) =
      switch (x, y) {
      case (let x?, let y?):
        transform.fit == .fill
          ? (x, y) : transform.fit == .inside ? (min(x, y), min(x, y)) : (max(x, y), max(x, y))
      default: (x ?? y ?? 1, y ?? x ?? 1)
      }
    return PixelSize(
      width: side(width * min(factors.0, 1)), height: side(height * min(factors.1, 1)))
  }

  @Test func `a derived variant has the same size as one from the source`() throws {
    var random = SeededGenerator(seed: 5)
    var made = 0
    for _ in 0..<20_000 {
      let source = PixelSize(
        width: .random(in: 50...6_000, using: &random),
        height: .random(in: 50...6_000, using: &random))
      let larger = transform { $0.width = .random(in: 50...3_000, using: &random) }
      let wanted = transform {
        $0.width = Bool.random(using: &random) ? .random(in: 1...1_000, using: &random) : nil
        let isBoth = $0.width == nil || Bool.random(using: &random)
        $0.height = isBoth ? .random(in: 1...1_000, using: &random) : nil
        $0.fit = [.inside, .outside, .fill].randomElement(using: &random) ?? .inside
        $0.scale = [nil, 0.3, 1.5].randomElement(using: &random) ?? nil
      }
      let kept = size(of: larger, source)
      var variants = DerivationCandidates()
      variants.note(try variant(larger, width: kept.width, height: kept.height), of: larger)
      for found in variants.candidates(for: try request(wanted)) {
        made += 1
        let derived = size(of: found.rest, kept)
        #expect(derived == size(of: wanted, source), "\(source) \(kept) \(wanted)")
        #expect(kept.width >= 2 * derived.width && kept.height >= 2 * derived.height)
      }
    }
    #expect(made > 3_000, "it is not refused each time")
  }

  @Test func `few candidates per source and few sources are listed, smallest first`() throws {
    var variants = DerivationCandidates()
    for width in [3_000, 1_000, 2_000, 4_000, 5_000] {
      let made = transform { $0.width = width }
      variants.note(try variant(made, width: width, height: width * 3 / 4), of: made)
    }
    let small = try request(transform { $0.width = 400 })
    #expect(
      variants.candidates(for: small).map(\.candidate.size.width) == [1_000, 2_000, 4_000, 5_000])
    variants.remove(try request(transform { $0.width = 2_000 }).key)
    #expect(variants.candidates(for: small).map(\.candidate.size.width) == [1_000, 4_000, 5_000])
    for number in 1...DerivationCandidates.limit {
      variants.note(try variant(transform(), number: number), of: transform())
    }
    #expect(variants.count == DerivationCandidates.limit)
    #expect(variants.candidates(for: small).isEmpty)
  }
}
