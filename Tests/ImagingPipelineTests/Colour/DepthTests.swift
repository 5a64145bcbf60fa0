// DepthTests: more than 8 bits per band are rounded to 8 bits.

import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DepthTests {
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
