// PNGColourTests: PNGs with gAMA and cHRM, compared with littleCMS.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PNGColourTests {
  /// Returns a PNG of the chart (RGB) or a ramp (grey) with chunks before its pixels.
  private static func png(
    depth: Int = 8, isGrey: Bool = false, _ chunks: [(name: String, content: [UInt8])]
  ) -> [UInt8] {
    let samples = isGrey ? (0..<256).map { Int($0) } : ProfileTests.chart.map { Int($0) }
    return CodedPNG(
      size: PixelSize(width: 16, height: isGrey ? 16 : 32), colorType: isGrey ? 0 : 2,
      depth: depth, samples: depth == 8 ? samples : samples.map { $0 * 257 }, before: chunks
    ).bytes
  }

  private static func gamma(_ value: Int) -> (name: String, content: [UInt8]) {
    ("gAMA", CodedPNG.big(value, width: 4))
  }

  private static func chromaticities(
    _ primaries: LittleCMS.Primaries
  ) -> (name: String, content: [UInt8]) {
    let points = [primaries.white, primaries.red, primaries.green, primaries.blue]
    return (
      "cHRM",
      points.flatMap { [$0.x, $0.y] }.flatMap {
        CodedPNG.big(Int(($0 * 100_000).rounded()), width: 4)
      }
    )
  }

  struct Meaning: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let gamma: Int?
    let primaries: LittleCMS.Primaries?
  }

  static let foreign = [
    Meaning(testDescription: "linear light", gamma: 100_000, primaries: nil),
    Meaning(testDescription: "an old Mac", gamma: 55_556, primaries: nil),
    Meaning(
      testDescription: "Adobe RGB", gamma: 45_455, primaries: LittleCMS.adobeRGB),
    Meaning(testDescription: "P3 without a power", gamma: nil, primaries: LittleCMS.displayP3),
    Meaning(
      testDescription: "ProPhoto, white D50", gamma: 55_556, primaries: LittleCMS.proPhoto),
  ]

  @Test(arguments: foreign, [8, 16])
  func `gAMA and cHRM match littleCMS`(_ meaning: Meaning, depth: Int) throws {
    // Given
    let chunks = [
      meaning.gamma.map(Self.gamma), meaning.primaries.map(Self.chromaticities),
    ].compactMap { $0 }
    let profile = LittleCMS.profile(
      meaning.primaries ?? LittleCMS.sRGB, gamma: meaning.gamma.map { 100_000 / Double($0) })
    let reference =
      depth == 8
      ? LittleCMS.sRGB(of: ProfileTests.chart, bands: 3, profile: profile)
      : LittleCMS.sRGB(
        of: ProfileTests.chart.map { UInt16($0) * 257 }, bands: 3, profile: profile)
    // When
    let made = try Made(Self.png(depth: depth, chunks)) { $0.format = .png }
    // Then
    #expect(difference(try colours(of: made), from: reference) < 0.5)
    #expect(difference(reference, from: ProfileTests.chart) > 2)
    for chunk in ["gAMA", "cHRM", "iCCP"] { #expect(!made.bytes.contains(chunk)) }
  }

  @Test(arguments: [8, 16])
  func `gAMA changes the curve of grey and keeps it grey`(depth: Int) throws {
    // Given
    let ramp = (0..<256).map { UInt8($0) }
    let profile = LittleCMS.greyProfile(gamma: 1)
    let reference = LittleCMS.sRGB(of: ramp, bands: 1, profile: profile)
    // When
    let made = try Made(Self.png(depth: depth, isGrey: true, [Self.gamma(100_000)])) {
      $0.format = .png
    }
    // Then
    #expect(try made.pixels().bands == 1)
    #expect(difference(try colours(of: made), from: reference) < 0.5)
  }

  static let plain: [(name: String, chunks: [(name: String, content: [UInt8])])] = [
    ("nothing", []),
    ("sRGB's power", [gamma(45_455)]),
    ("nearly sRGB's power", [gamma(45_600)]),
    ("sRGB's primaries", [chromaticities(LittleCMS.sRGB)]),
    ("both", [gamma(45_455), chromaticities(LittleCMS.sRGB)]),
    ("sRGB by name, which goes before", [gamma(100_000), ("sRGB", [0])]),
    ("sRGB by name in front", [("sRGB", [0]), chromaticities(LittleCMS.displayP3)]),
    ("a power of nothing", [gamma(0)]),
    ("chromaticities of nothing", [("cHRM", [UInt8](repeating: 0, count: 32))]),
    (
      "three primaries in one place",
      [("cHRM", (0..<8).flatMap { _ in CodedPNG.big(33_000, width: 4) })]
    ),
    ("chunks too short", [("gAMA", [0, 0]), ("cHRM", [1, 2, 3])]),
  ]

  @Test(arguments: plain.indices)
  func `sRGB values and useless chunks do not change pixels`(index: Int) throws {
    let made = try Made(Self.png(Self.plain[index].chunks)) { $0.format = .png }
    #expect(try colours(of: made) == ProfileTests.chart, "\(Self.plain[index].name)")
  }

  @Test func `an embedded profile takes precedence over gAMA and cHRM`() throws {
    // Given
    let profile = LittleCMS.profile(LittleCMS.displayP3)
    let png = try TestImages.encode(
      ProfileTests.chart, width: 16, bands: 3, as: .sRGB, profile: profile, suffix: ".png")
    // Signature and header have 33 bytes.
    let (name, content) = Self.gamma(100_000)
    let both = Array(png[..<33]) + CodedPNG.chunk(name, content: content) + png[33...]
    // When
    let (made, reference) = try (
      Made(both) { $0.format = .png }, Made(png) { $0.format = .png }
    )
    // Then
    #expect(try colours(of: made) == colours(of: reference))
  }

  @Test(arguments: [8, 16])
  func `cICP takes precedence over a profile, gAMA and cHRM`(depth: Int) throws {
    // Given: Display P3 by code points, and other chunks that say otherwise
    let display: (name: String, content: [UInt8]) = ("cICP", [12, 13, 0, 1])
    let others = [Self.gamma(100_000), Self.chromaticities(LittleCMS.adobeRGB)]
    let made = try Made(Self.png(depth: depth, others + [display])) { $0.format = .png }
    // Then they are converted as a profile of the same colours is
    let profile = LittleCMS.profile(LittleCMS.displayP3)
    let reference = LittleCMS.sRGB(of: ProfileTests.chart, bands: 3, profile: profile)
    #expect(difference(try colours(of: made), from: reference) < 0.5)
    #expect(try colours(of: made) != ProfileTests.chart)
    // And sRGB by code points is sRGB
    let named = try Made(Self.png(depth: depth, others + [("cICP", [1, 13, 0, 1])])) {
      $0.format = .png
    }
    #expect(try colours(of: named) == ProfileTests.chart)
  }

  @Test(arguments: [16, 18] as [UInt8], [8, 16])
  func `grey of a high dynamic range is shown as equal colours are`(
    transfer: UInt8, depth: Int
  ) throws {
    for primaries in [1, 9] as [UInt8] {
      let chunks: [(name: String, content: [UInt8])] = [("cICP", [primaries, transfer, 0, 1])]
      let grey = try Made(Self.png(depth: depth, isGrey: true, chunks)) { $0.format = .png }
      #expect(try grey.pixels().bands == 1)
      let ramp = (0..<256).map { Int($0) * (depth == 8 ? 1 : 257) }
      let equal = CodedPNG(
        size: PixelSize(width: 16, height: 16), colorType: 2, depth: depth,
        samples: ramp.flatMap { [$0, $0, $0] }, before: chunks)
      let reference = try colours(of: try Made(equal.bytes) { $0.format = .png })
      #expect(try colours(of: grey) == reference)
      // And alpha stays as it is.
      let alpha = CodedPNG(
        size: PixelSize(width: 16, height: 16), colorType: 4, depth: depth,
        samples: ramp.flatMap { [$0, $0] }, before: chunks)
      let made = try Made(alpha.bytes) { $0.format = .png }.pixels()
      #expect(made[15, 8].last == 143 && made.rgb(x: 15, y: 8)[0] == reference[3 * 143])
    }
  }

  @Test func `primaries do not change grey`() throws {
    let made = try Made(Self.png(isGrey: true, [("cICP", [12, 13, 0, 1])])) { $0.format = .png }
    #expect(try colours(of: made) == (0..<256).flatMap { [UInt8](repeating: UInt8($0), count: 3) })
  }

  @Test(arguments: [[12, 13, 1, 1], [12, 13, 0, 0], [12, 13, 0], [2, 2, 0, 1]] as [[UInt8]])
  func `code points that are not allowed, or say nothing, change no colour`(content: [UInt8]) throws
  {
    let made = try Made(Self.png([("cICP", content)])) { $0.format = .png }
    #expect(try colours(of: made) == ProfileTests.chart)
  }

  @Test func `a description names no profile for gAMA`() throws {
    let info = try SourceInfo(Self.png([Self.gamma(100_000)]))
    #expect(info.colour.profile == nil && info.colour.space == "rgb")
  }

  @Test func `random gAMA and cHRM chunks are handled without a crash`() throws {
    var random = SeededGenerator(seed: 11)
    for _ in 0..<200 {
      let maximum = Bool.random(using: &random) ? 100_000 : 0xffff_ffff
      let numbers = (0..<8).flatMap { _ in
        CodedPNG.big(.random(in: 0...maximum, using: &random), width: 4)
      }
      let made = try Made(
        Self.png([Self.gamma(.random(in: 0...0xffff_ffff, using: &random)), ("cHRM", numbers)]))
      #expect(made.size == PixelSize(width: 16, height: 32))
    }
  }
}
