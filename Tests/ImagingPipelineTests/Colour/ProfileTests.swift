// ProfileTests: ICC profiles, compared with littleCMS, invalid ones, and more than 8 bits.

import CLcms
import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ProfileTests {
  /// 16 by 32 pixels that cover a colour space of 8 by 8 by 8.
  static let chart: [UInt8] = (0..<512).flatMap { index in
    [index >> 6, index >> 3 & 7, index & 7].map { UInt8(Double($0) * 255 / 7) }
  }

  static let profiles: [(name: String, bytes: [UInt8])] = [
    ("Display P3", LittleCMS.profile(LittleCMS.displayP3)),
    ("Adobe RGB (1998)", LittleCMS.profile(LittleCMS.adobeRGB, gamma: 563.0 / 256)),
    ("ProPhoto RGB", LittleCMS.profile(LittleCMS.proPhoto, gamma: 1.8)),
    ("a table", LittleCMS.tableProfile(inks: false)),
    ("a perceptual table", LittleCMS.tableProfile(inks: false, for: [cmsSigAToB0Tag])),
  ]

  @Test(arguments: profiles.indices, [8, 16])
  func `converted colours match littleCMS`(index: Int, depth: Int) throws {
    // given
    let profile = Self.profiles[index].bytes
    let wide = Self.chart.map { UInt16($0) * 257 }
    let source =
      depth == 8
      ? try TestImages.encode(
        Self.chart, width: 16, bands: 3, as: .sRGB, profile: profile, suffix: ".png")
      : try TestImages.encode(
        wide, width: 16, bands: 3, as: .rgb16, profile: profile, suffix: ".png")
    let intent =
      Self.profiles[index].name == "a perceptual table"
      ? INTENT_PERCEPTUAL : INTENT_RELATIVE_COLORIMETRIC
    let reference =
      depth == 8
      ? LittleCMS.sRGB(of: Self.chart, bands: 3, profile: profile, intent: intent)
      : LittleCMS.sRGB(of: wide, bands: 3, profile: profile, intent: intent)
    // when
    let made = try Made(source) { $0.format = .png }
    // then
    #expect(
      difference(try colours(of: made), from: reference) < 0.5, "\(Self.profiles[index].name)")
    #expect(reference != Self.chart && !made.bytes.contains("iCCP"))
  }

  @Test(arguments: [ImageFormat.jpeg, .webp, .tiff])
  func `a profile is applied in every format that can embed one`(format: ImageFormat) throws {
    // given: one colour, which compression does not change
    let color: [UInt8] = [200, 100, 50]
    let values = (0..<64 * 48).flatMap { _ in color }
    let suffix = [.jpeg: ".jpg[Q=100]", .webp: ".webp[lossless]"][format] ?? ".tif"
    let source = try TestImages.encode(
      values, width: 64, bands: 3, as: .sRGB, profile: Self.profiles[1].bytes, suffix: suffix)
    // when: reduced, so that JPEG and WebP shrink on load
    let made = try Made(source, width: 16, format: .png)
    // then
    let reference = LittleCMS.sRGB(of: color, bands: 3, profile: Self.profiles[1].bytes)
    #expect(isClose(try made.pixels().rgb(x: 8, y: 6), to: reference, within: 2))
  }

  @Test func `converting after the resize matches converting before it`() throws {
    // given
    let profile = Self.profiles[0].bytes
    let source = try TestImages.encode(
      Pixels.scene(width: 192, height: 128).values, width: 192, bands: 3, as: .sRGB,
      profile: profile, suffix: ".png")
    let small = Pixels.scene(width: 48, height: 32)
    let values = LittleCMS.sRGB(of: small.values, bands: 3, profile: profile)
    let reference = Pixels(width: 48, height: 32) { x, y in
      Array(values[(y * 48 + x) * 3..<(y * 48 + x) * 3 + 3])
    }
    // when
    let made = try Made(source, width: 48, format: .png)
    // then
    #expect(try made.pixels().psnr(to: reference) > 30)
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif, .tiff])
  func `a kept profile stays with the values that it explains`(format: ImageFormat) throws {
    // given: a colour that sRGB does not have, beside others
    let values = Pixels.scene(width: 64, height: 48).values
    for (index, suffix) in [".png", ".tif", ".jpg[Q=100,subsample_mode=off]"].enumerated() {
      let profile = Self.profiles[index].bytes
      let source = try TestImages.encode(
        values, width: 64, bands: 3, as: .sRGB, profile: profile, suffix: suffix)
      // when
      let made = try Made(source, format: format, quality: 95) {
        ($0.output.profile, $0.output.chroma, $0.output.isLossless) = (.keep, .full, true)
      }
      // then
      let found = try TestImages.metadata(of: made.bytes)
      #expect(found["icc-profile-data"] == profile && found.count <= 2)
      #expect(try made.pixels().psnr(to: Pixels.scene(width: 64, height: 48)) > 34)
      if format == .png, index < 2 { #expect(try made.pixels().values == values) }
      let plain = try Made(source, format: format, quality: 95) { $0.output.chroma = .full }
      #expect(try plain.pixels().values != made.pixels().values)
    }
  }

  @Test func `a profile is kept of colours alone, by formats that hold one`() throws {
    // given
    let profile = Self.profiles[0].bytes
    let source = try TestImages.encode(
      Self.chart, width: 16, bands: 3, as: .sRGB, profile: profile, suffix: ".png")
    func made(_ source: [UInt8], _ format: ImageFormat, _ change: (inout Transform) -> Void) throws
      -> Made
    {
      try Made(source, format: format) {
        $0.output.profile = .keep
        change(&$0)
      }
    }
    // when, then
    for format in [ImageFormat.gif, .jxl] {
      #expect(try made(source, format) { _ in }.bytes == Made(source, format: format).bytes)
    }
    let grey = try made(source, .png) { $0.effects.isGrayscale = true }
    #expect(try grey.bytes.contains("iCCP") && grey.pixels().bands == 3)
    let few = try made(source, .png) { $0.output.colours = 16 }
    #expect(few.bytes.contains("PLTE") && few.bytes.contains("iCCP"))
    let small = try made(source, .jpeg) { ($0.width, $0.maxBytes) = (9, 3_000) }
    #expect(try TestImages.metadata(of: small.bytes)["icc-profile-data"] == profile)
    let ramp = try TestImages.encode(
      (0..<256).map { UInt8($0) }, width: 256, bands: 1, as: .grey,
      profile: LittleCMS.greyProfile(gamma: 1.6), suffix: ".png")
    #expect(try made(ramp, .png) { _ in }.bytes == Made(ramp, format: .png).bytes)
    #expect(
      try made(source, .png) { $0.product = .placeholder(.color) }.bytes
        == Made(source, format: .png) { $0.product = .placeholder(.color) }.bytes)
  }

  @Test(arguments: [8, 16])
  func `grey with a profile stays grey`(depth: Int) throws {
    // given
    let profile = LittleCMS.greyProfile(gamma: 1.6)
    let ramp = (0..<256).map { UInt8($0) }
    let source =
      depth == 8
      ? try TestImages.encode(
        ramp, width: 256, bands: 1, as: .grey, profile: profile, suffix: ".png")
      : try TestImages.encode(
        ramp.map { UInt16($0) * 257 }, width: 256, bands: 1, as: .grey16, profile: profile,
        suffix: ".png")
    let reference = LittleCMS.sRGB(of: ramp, bands: 1, profile: profile)
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    #expect(made.bands == 1)
    // One of the two uses byte tables: at most two steps of difference, and one on average.
    let found = Pixels(width: 256, height: 1, bands: 1) { x, _ in [made[x, 0][0]] }
    let exact = Pixels(width: 256, height: 1, bands: 1) { x, _ in [reference[x * 3]] }
    #expect(found.psnr(to: exact) > 50)
  }

  @Test func `a profile does not change alpha, and 16-bit alpha is rounded`() throws {
    // given: every alpha value, with a varying 16-bit remainder
    let values: [UInt16] = (0..<512).flatMap { (index: Int) -> [UInt16] in
      let alpha = index / 2 * 257 + (index.isMultiple(of: 2) ? -100 : 100)
      return [51_400, 25_700, 12_850, UInt16(clamping: alpha)]
    }
    let source = try TestImages.encode(
      values, width: 512, bands: 4, as: .rgb16, profile: Self.profiles[0].bytes, suffix: ".png")
    let color = LittleCMS.sRGB(
      of: [200, 100, 50] as [UInt8], bands: 3, profile: Self.profiles[0].bytes)
    // when
    let made = try Made(source).pixels()
    // then
    for x in 0..<512 {
      #expect(made[x, 0][3] == UInt8(x / 2))
      #expect(isClose(made.rgb(x: x, y: 0), to: color, within: 1))
    }
  }

  @Test func `a profile of another kind is ignored`() throws {
    let profiles = [
      LittleCMS.greyProfile(gamma: 1), LittleCMS.tableProfile(inks: true), [1, 2, 3],
      Array("no profile at all, but a text that goes on for a while longer than a header".utf8),
    ]
    for profile in profiles {
      let source = try TestImages.encode(
        Self.chart, width: 16, bands: 3, as: .sRGB, profile: profile,
        suffix: ".jpg[Q=100,subsample_mode=off]")
      let plain = try TestImages.encode(
        Self.chart, width: 16, bands: 3, as: .sRGB, suffix: ".jpg[Q=100,subsample_mode=off]")
      let made = try Made(source) { $0.format = .png }
      let reference = try Made(plain) { $0.format = .png }
      let (found, exact) = (try made.pixels(), try reference.pixels())
      #expect(found.values == exact.values, "\(profile.count): \(found.psnr(to: exact))")
    }
  }

  @Test func `a profile without tables is ignored`() throws {
    // given: an RGB profile header without any table
    for profile in Self.profiles.map(\.bytes) {
      var torn = Array(profile.prefix(132))
      torn.replaceSubrange(128..<132, with: [0, 0, 0, 0])
      torn.replaceSubrange(0..<4, with: [0, 0, 0, 132])
      let source = try TestImages.encode(
        Self.chart, width: 16, bands: 3, as: .sRGB, profile: torn, suffix: ".tif")
      // when, then
      #expect(try Made(source) { $0.format = .png }.pixels().values == Self.chart)
    }
  }

  @Test func `damaged profiles never cause an error`() throws {
    // given: reproducible damage
    var random = SeededGenerator(seed: 5)
    let inks = LittleCMS.tableProfile(inks: true)
    let four = Self.chart.flatMap { (value: UInt8) -> [UInt8] in [value, value / 2, 255 - value, 0]
    }
    for round in 0..<30 {
      let hasInks = round.isMultiple(of: 5)
      var profile = hasInks ? inks : Self.profiles[round % Self.profiles.count].bytes
      // Most damage is in the header and the tag table, where it has the most effect.
      for _ in 0..<6 {
        let place = Int.random(
          in: 0..<(round.isMultiple(of: 2) ? 400 : profile.count), using: &random)
        profile[place % profile.count] = UInt8.random(in: 0...255, using: &random)
      }
      if round.isMultiple(of: 7) { profile.removeLast(profile.count / 3) }
      let source =
        hasInks
        ? try TestImages.encode(
          four, width: 16, bands: 4, as: .cmyk, profile: profile, suffix: ".tif")
        : try TestImages.encode(
          Self.chart, width: 16, bands: 3, as: .sRGB, profile: profile, suffix: ".tif")
      // when, then
      #expect(Made.error(source) { $0.format = .png } == nil)
    }
  }

  @Test func `an sRGB profile does not change colours`() throws {
    let source = try TestImages.encode(
      Pixels(width: 64, height: 48, color: [200, 100, 50]), as: ".png[profile=srgb]")
    let made = try Made(source) { $0.format = .png }
    #expect(isClose(try made.pixels().rgb(x: 16, y: 12), to: [200, 100, 50], within: 1))
  }

  @Test func `a profile for another colour model is ignored`() throws {
    // given: a grey image with a CMYK profile
    let source = try TestImages.encode(
      Pixels(width: 64, height: 48, color: [90]), as: ".tif[profile=cmyk]")
    // when
    let made = try Made(source) { $0.format = .png }
    // then
    #expect(isClose(try made.pixels().rgb(x: 10, y: 10), to: [90, 90, 90], within: 2))
  }

  /// Returns the nearest 8-bit value.
  private func nearest(_ value: Int, of full: Int = 65_535) -> UInt8 {
    UInt8((Double(value) * 255 / Double(full)).rounded())
  }

  @Test(arguments: [".png", ".tif"])
  func `each 16-bit grey is rounded to the nearest 8-bit grey`(suffix: String) throws {
    // given
    let values = (0..<65_536).map { UInt16($0) }
    let source = try TestImages.encode(values, width: 256, bands: 1, as: .grey16, suffix: suffix)
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    #expect(made.bands == 1)
    #expect(made.values == values.map { nearest(Int($0)) })
  }

  @Test(arguments: [3, 4])
  func `16-bit colours and alpha are rounded to the nearest 8-bit value`(bands: Int) throws {
    // given: a different ramp in each band
    let values: [UInt16] = (0..<4_096).flatMap { (index: Int) -> [UInt16] in
      let up = UInt16(index * 16)
      return Array([up, 65_535 - UInt16(index * 13), UInt16(index * 7 + 129), up + 15][..<bands])
    }
    for suffix in [".png", ".tif"] {
      let source = try TestImages.encode(
        values, width: 64, bands: bands, as: .rgb16, suffix: suffix)
      // when
      let made = try Made(source) { $0.format = .png }.pixels()
      // then
      #expect(made.bands == bands && made.values == values.map { nearest(Int($0)) })
    }
  }

  @Test func `a dark 16-bit gradient keeps its mean light when reduced`() throws {
    // given: 16 of 255 steps along 1,024 pixels
    let slope = (0..<1_024).map { UInt16(2_000 + $0 * 4) }
    let source = try TestImages.encode(
      (0..<64).flatMap { _ in slope }, width: 1_024, bands: 1, as: .grey16, suffix: ".png")
    // when
    let made = try Made(source, width: 256, format: .png).pixels()
    // then: four pixels become one with their mean light
    var bias = 0.0
    for x in 2..<254 {
      let exact = (2_000 + (Double(x) * 4 + 1.5) * 4) / 257
      bias += (Double(made[x, 8][0]) - exact) / 252
      #expect(abs(Double(made[x, 8][0]) - exact) <= 0.52)
    }
    #expect(abs(bias) < 0.05)
  }

  @Test func `10-bit values cover black to white`() throws {
    // given: sRGB code points, in grey, which the encoder hardly changes
    let codes: [UInt16] = [0, 1_023, 512, 768]
    let values: [UInt16] = (0..<64 * 64).flatMap { (index: Int) -> [UInt16] in
      let code = codes[index / 2_048 * 2 + index % 64 / 32]
      return [code, code, code]
    }
    let source = try TestImages.heic(
      values, width: 64, primaries: 1, transfer: 13,
      insteadOf: LittleCMS.profile(LittleCMS.displayP3))
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    for (code, place) in zip(codes, [(16, 16), (48, 16), (16, 48), (48, 48)]) {
      let gray = nearest(Int(code), of: 1_023)
      #expect(isClose(made.rgb(x: place.0, y: place.1), to: [gray, gray, gray], within: 1))
    }
  }

  @Test func `floats without a profile are read as linear light`() throws {
    // given
    let light: [Float] = [0.75, 0.214, 0.02]
    let source = try TestImages.encode(
      (0..<64).flatMap { _ in light }, width: 8, bands: 3, as: .linear, suffix: ".tif")
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then: IEC 61966-2-1
    let reference = light.map {
      UInt8((255 * (1.055 * pow(Double($0), 1 / 2.4) - 0.055)).rounded())
    }
    #expect(isClose(made.rgb(x: 4, y: 4), to: reference, within: 1))
  }

  @Test func `floats with a profile are read as the profile's values`() throws {
    // given
    let profile = LittleCMS.profile(LittleCMS.adobeRGB, gamma: 2.2)
    let color: [UInt8] = [51, 153, 102]
    let source = try TestImages.encode(
      (0..<64).flatMap { _ in color.map { Float($0) / 255 } }, width: 8, bands: 3, as: .linear,
      profile: profile, suffix: ".tif")
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    let reference = LittleCMS.sRGB(of: color, bands: 3, profile: profile)
    #expect(isClose(made.rgb(x: 4, y: 4), to: reference, within: 1))
  }
}
