// HighDynamicRangeTests: PQ, HLG and wide primaries, compared with the standards' formulas.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HighDynamicRangeTests {
  private typealias Primaries = LittleCMS.Primaries

  private static let bt709 = Primaries(
    white: (0.3127, 0.3290), red: (0.640, 0.330), green: (0.300, 0.600), blue: (0.150, 0.060))
  private static let bt2020 = Primaries(
    white: (0.3127, 0.3290), red: (0.708, 0.292), green: (0.170, 0.797), blue: (0.131, 0.046))

  // MARK: Reference

  /// Returns the light of a PQ signal in cd/m² (SMPTE ST 2084); `pq` is the inverse.
  private func light(ofPQ signal: Double) -> Double {
    let v = pow(signal, 32 / 2_523.0)
    return 10_000 * pow(max(v - 0.8359375, 0) / (18.8515625 - 18.6875 * v), 16_384 / 2_610.0)
  }

  private func pq(_ light: Double) -> Double {
    let v = pow(light / 10_000, 2_610 / 16_384.0)
    return pow((0.8359375 + 18.8515625 * v) / (1 + 18.6875 * v), 2_523 / 32.0)
  }

  /// Returns the light in cd/m² of HLG signals on a display of 1,000 cd/m² (ITU-R BT.2100, table
  /// 5).
  private func light(ofHLG signals: [Double]) -> [Double] {
    let scene = signals.map {
      $0 <= 0.5 ? $0 * $0 / 3 : (exp(($0 - 0.55991073) / 0.17883277) + 0.28466892) / 12
    }
    let y = 0.2627 * scene[0] + 0.6780 * scene[1] + 0.0593 * scene[2]
    return scene.map { 1_000 * pow(y, 0.2) * $0 }
  }

  /// Applies the curve of ITU-R BT.2390 from 1,000 to 203 cd/m², by its formulas.
  private func toned(_ light: Double) -> Double {
    let source = pq(1_000)
    let maximum = pq(203) / pq(1_000)
    let ks = 1.5 * maximum - 0.5
    let e = min(pq(light) / source, 1)
    guard e >= ks else { return light }
    let t = (e - ks) / (1 - ks)
    let p =
      (2 * t * t * t - 3 * t * t + 1) * ks + (t * t * t - 2 * t * t + t) * (1 - ks)
      + (3 * t * t - 2 * t * t * t) * maximum
    return self.light(ofPQ: p * source)
  }

  /// Returns what an sRGB display of 203 cd/m² shows for light in BT.2020.
  private func shown(_ light: [Double]) -> [UInt8] {
    let maximum = light.max() ?? 0
    let scale = maximum > 0 ? toned(maximum) / maximum / 203 : 0
    return encode(convert(light.map { $0 * scale }, from: Self.bt2020))
  }

  private func encode(_ light: [Double]) -> [UInt8] {
    light.map {
      let v = min(max($0, 0), 1)
      return UInt8((255 * (v <= 0.0031308 ? v * 12.92 : 1.055 * pow(v, 1 / 2.4) - 0.055)).rounded())
    }
  }

  /// Converts light from other primaries to BT.709, via XYZ.
  private func convert(_ light: [Double], from primaries: Primaries) -> [Double] {
    solve(matrix(Self.bt709), equals: apply(matrix(primaries), to: light))
  }

  /// Returns the matrix to XYZ; its columns are the primaries, scaled so that their sum is white
  /// (SMPTE RP 177).
  private func matrix(_ p: Primaries) -> [[Double]] {
    func xyz(_ c: (x: Double, y: Double)) -> [Double] { [c.x / c.y, 1, (1 - c.x - c.y) / c.y] }
    let columns = [p.red, p.green, p.blue].map(xyz)
    let rows = (0..<3).map { row in columns.map { $0[row] } }
    let amounts = solve(rows, equals: xyz(p.white))
    return rows.map { zip($0, amounts).map(*) }
  }

  private func apply(_ m: [[Double]], to v: [Double]) -> [Double] {
    m.map { $0[0] * v[0] + $0[1] * v[1] + $0[2] * v[2] }
  }

  /// Solves by Cramer's rule.
  private func solve(_ m: [[Double]], equals v: [Double]) -> [Double] {
    func determinant(_ m: [[Double]]) -> Double {
      m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    }
    return (0..<3).map { column in
      var replaced = m
      for row in 0..<3 { replaced[row][column] = v[row] }
      return determinant(replaced) / determinant(m)
    }
  }

  // MARK: Test images

  /// Returns 10-bit colours in squares of 32 pixels, four in a row.
  private func image(_ colors: [[UInt16]]) -> [UInt16] {
    (0..<32).flatMap { _ in
      colors.flatMap { color in (0..<32).flatMap { _ in color } }
    }
  }

  private func heic(
    _ values: [UInt16], width: Int, primaries: UInt8, transfer: UInt8, bands: Int = 3
  ) throws -> [UInt8] {
    try TestImages.heic(
      values, width: width, bands: bands, primaries: primaries, transfer: transfer,
      insteadOf: LittleCMS.profile(LittleCMS.displayP3))
  }

  private static let colors: [[UInt16]] = [
    // Black, a shadow, HDR's reference white (203 cd/m²), the peak of 1,000, and a value beyond it.
    [0, 0, 0], [300, 300, 300], [594, 594, 594], [769, 769, 769], [900, 900, 900],
    // Skin, foliage, sky, and a red outside sRGB.
    [520, 460, 430], [380, 440, 330], [480, 540, 620], [700, 200, 150],
  ]

  @Test func `PQ is tone-mapped by the formulas of BT.2390`() throws {
    // given
    let source = try heic(
      image(Self.colors), width: 32 * Self.colors.count, primaries: 9, transfer: 16)
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    for (index, color) in Self.colors.enumerated() {
      let reference = shown(color.map { light(ofPQ: Double($0) / 1_023) })
      #expect(
        isClose(made.rgb(x: index * 32 + 16, y: 16), to: reference, within: 4),
        "\(color): \(made.rgb(x: index * 32 + 16, y: 16)), \(reference)")
    }
    #expect(made.bands == 3 && made.rgb(x: 16, y: 16).allSatisfy { $0 <= 2 })
    #expect(made.rgb(x: 3 * 32 + 16, y: 16).allSatisfy { $0 >= 253 })
  }

  @Test func `HLG is tone-mapped like PQ`() throws {
    // given
    let colors: [[UInt16]] = [
      [0, 0, 0], [390, 390, 390], [767, 767, 767], [1_023, 1_023, 1_023], [600, 520, 470],
      [420, 500, 360], [560, 640, 760],
    ]
    let source = try heic(image(colors), width: 32 * colors.count, primaries: 9, transfer: 18)
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    for (index, color) in colors.enumerated() {
      let reference = shown(light(ofHLG: color.map { Double($0) / 1_023 }))
      #expect(
        isClose(made.rgb(x: index * 32 + 16, y: 16), to: reference, within: 4),
        "\(color): \(made.rgb(x: index * 32 + 16, y: 16)), \(reference)")
    }
  }

  @Test func `tone mapping is monotonic and keeps neutral colours and alpha`() throws {
    // given: a ramp of greys with a transparent lower half
    let values = (0..<32).flatMap { y in
      (0..<256).flatMap { x in
        let gray = UInt16(x / 4 * 16)
        return [gray, gray, gray, y < 16 ? 1_023 : 0]
      }
    }
    let source = try heic(values, width: 256, primaries: 9, transfer: 16, bands: 4)
    // when
    let made = try Made(source).pixels()
    // then
    #expect(made.bands == 4 && made[128, 2][3] == 255 && made[128, 29][3] == 0)
    var last = 0
    for x in stride(from: 2, to: 256, by: 4) {
      let pixel = made.rgb(x: x, y: 4).map { Int($0) }
      #expect((pixel.max() ?? 0) - (pixel.min() ?? 0) <= 3)
      #expect(pixel[1] >= last - 2)
      last = max(last, pixel[1])
    }
    #expect(last == 255)
  }

  @Test(arguments: [(12, 13), (9, 1)] as [(UInt8, UInt8)])
  func `wide primaries of standard range are converted to sRGB`(primaries: UInt8, transfer: UInt8)
    throws
  {
    // given: an 8-bit AVIF
    let colors: [[UInt8]] = [[180, 120, 90], [110, 140, 110], [200, 200, 200], [70, 90, 150]]
    let row = colors.flatMap { color in (0..<32).flatMap { _ in color } }
    let avif = try TestImages.encode(
      (0..<32).flatMap { _ in row }, width: 128, bands: 3, as: .sRGB,
      suffix: ".avif[Q=85,effort=0]")
    let source = try HEIFFile(
      avif: avif,
      colours: HEIFBoxes.nclx(primaries: primaries, transfer: transfer, coefficients: 6)
    ).bytes
    // when
    let made = try Made(source) { $0.format = .png }.pixels()
    // then
    for (index, color) in colors.enumerated() {
      let light = color.map {
        let v = Double($0) / 255
        return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4)
      }
      let reference = encode(
        convert(light, from: primaries == 12 ? LittleCMS.displayP3 : Self.bt2020))
      #expect(
        isClose(made.rgb(x: index * 32 + 16, y: 16), to: reference, within: 5),
        "\(color): \(made.rgb(x: index * 32 + 16, y: 16)), \(reference)")
    }
  }

  @Test func `a JPEG with a gain map is rendered from its base image`() throws {
    // given: a gain map after the end of the image (CIPA DC-007)
    let base = try TestImages.jpeg(width: 400, height: 300)
    let map = try TestImages.encode(Pixels(width: 100, height: 75, color: [255]), as: ".jpg")
    for width in [40, 400] {
      // when
      let made = try Made(base + map, width: width, format: .png)
      let reference = try Made(base, width: width, format: .png)
      // then
      #expect(made.bytes == reference.bytes)
    }
  }

  // MARK: Container

  /// Returns the boxes of a HEIC without an image: item 7 is primary and has the properties with
  /// these indices.
  private func container(_ properties: [[UInt8]], of primary: [UInt8]) -> [UInt8] {
    let associations =
      [0, 0, 0, 0, 0, 0, 0, 2, 0, 6, 1, 1, 0, 7, UInt8(primary.count)] + primary
    return HEIFBoxes.box("ftyp", content: Array("heic".utf8))
      + HEIFBoxes.box(
        "meta",
        content: [0, 0, 0, 0] + HEIFBoxes.box("pitm", content: [0, 0, 0, 0, 0, 7])
          + HEIFBoxes.box(
            "iprp",
            content: HEIFBoxes.box("ipco", content: properties.flatMap { $0 })
              + HEIFBoxes.box("ipma", content: associations)))
  }

  @Test func `the primary image has the code points, and a profile takes precedence`() {
    // given
    func colr(primaries: UInt8, transfer: UInt8) -> [UInt8] {
      HEIFBoxes.box("colr", content: Array("nclx".utf8) + [0, primaries, 0, transfer, 0, 9, 0x80])
    }
    let profile = HEIFBoxes.box("colr", content: Array("prof".utf8) + [1, 2, 3])
    let light = HEIFBoxes.box("clli", content: [0x07, 0xd0, 0, 100])
    let properties = [
      colr(primaries: 12, transfer: 13), colr(primaries: 9, transfer: 16), light, profile,
      colr(primaries: 1, transfer: 13),
    ]
    func read(_ primary: [UInt8]) -> CodePoints? {
      container(properties, of: primary).withUnsafeBytes(HEIFContainer.codePoints)
    }
    // when, then: the highest bit marks a property as essential
    #expect(read([0x82, 3]) == CodePoints(primaries: 9, transfer: 16, peak: 2_000))
    #expect(read([2]) == CodePoints(primaries: 9, transfer: 16))
    #expect(read([1]) == CodePoints(primaries: 12, transfer: 13))
    #expect(read([2, 4]) == nil && read([5]) == nil && read([3]) == nil && read([]) == nil)
    let whole = container(properties, of: [2])
    for count in 0..<whole.count - 1 {
      #expect(Array(whole.prefix(count)).withUnsafeBytes(HEIFContainer.codePoints) == nil)
    }
  }

  @Test func `the peak luminance stated by the container maps to white`() throws {
    let points = try #require(CodePoints(primaries: 9, transfer: 16, peak: 4_000))
    let tables = LightTables(points)
    func shown(_ light: Double) -> Float {
      tables.shown(SIMD3(repeating: Float(light / 203)), luminance: [0.2627, 0.6780, 0.0593]).max()
    }
    #expect(abs(shown(4_000) - 1) < 0.01 && shown(8_000) == 1)
    #expect(shown(1_000) < 0.98 && shown(1_000) > shown(203) && abs(shown(20) - 20 / 203) < 0.001)
  }

  @Test func `damaged boxes cause an error of the contract or an image`() throws {
    // given: reproducible damage before the image's data
    let whole = try heic(image([[500, 500, 500]]), width: 32, primaries: 9, transfer: 16)
    var random = SeededGenerator(seed: 3)
    for _ in 0..<60 {
      var bytes = whole
      for _ in 0..<4 {
        bytes[Int.random(in: 12..<min(560, bytes.count), using: &random)] = UInt8.random(
          in: 0...255, using: &random)
      }
      // when, then
      switch Made.error(bytes) {
      case nil, .undecodable, .unsupportedFormat, .tooManyPixels, .tooManyFrames: break
      case let error: Issue.record("\(String(describing: error))")
      }
    }
  }
}
