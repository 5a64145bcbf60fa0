// InkTests: CMYK in its variants, and Lab, are converted to sRGB.

import CLcms
import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct InkTests {
  /// Inks: 0 none, 255 full.
  private static let inks: [[UInt8]] = [
    [0, 0, 0, 0], [200, 30, 40, 0], [20, 180, 60, 30], [10, 40, 220, 60], [90, 80, 70, 120],
  ]

  /// Encodes each ink as a square of 32 pixels, side by side.
  private func encode(_ inks: [[UInt8]], profile: [UInt8] = [], as suffix: String) throws -> [UInt8]
  {
    let row = inks.flatMap { color in (0..<32).flatMap { _ in color } }
    return try TestImages.encode(
      (0..<32).flatMap { _ in row }, width: 32 * inks.count, bands: 4, as: .cmyk, profile: profile,
      suffix: suffix)
  }

  private func expect(
    _ source: [UInt8], toShow references: [[UInt8]], within tolerance: Int,
    at location: SourceLocation = #_sourceLocation
  ) throws {
    let made = try Made(source) { $0.format = .png }.pixels()
    #expect(made.bands == 3, sourceLocation: location)
    for (index, reference) in references.enumerated() {
      let found = made.rgb(x: index * 32 + 16, y: 16)
      #expect(
        isClose(found, to: reference, within: tolerance), "\(Self.inks[index])",
        sourceLocation: location)
    }
  }

  /// Returns the result of inks without a profile.
  private func plain(_ suffix: String) throws -> [[UInt8]] {
    let made = try Made(encode(Self.inks, as: suffix)) { $0.format = .png }.pixels()
    return Self.inks.indices.map { made.rgb(x: $0 * 32 + 16, y: 16) }
  }

  private static let profile = LittleCMS.tableProfile(inks: true)
  private static let references = inks.map {
    LittleCMS.sRGB(of: $0, bands: 4, profile: profile)
  }

  @Test(arguments: [".tif", ".jpg[Q=100]"])
  func `CMYK with a profile matches littleCMS`(suffix: String) throws {
    try expect(
      encode(Self.inks, profile: Self.profile, as: suffix), toShow: Self.references, within: 2)
  }

  @Test func `a profile with a perceptual table alone is applied, as scanners and older CMYK have`()
    throws
  {
    let profile = LittleCMS.tableProfile(inks: true, for: [cmsSigAToB0Tag])
    let references = Self.inks.map {
      LittleCMS.sRGB(of: $0, bands: 4, profile: profile, intent: INTENT_PERCEPTUAL)
    }
    for suffix in [".tif", ".jpg[Q=100]"] {
      try expect(
        encode(Self.inks, profile: profile, as: suffix), toShow: references, within: 2)
    }
  }

  @Test func `16-bit CMYK is reduced to 8 bits`() throws {
    let row = Self.inks.flatMap { color in (0..<32).flatMap { _ in color.map { UInt16($0) * 257 } }
    }
    let source = try TestImages.encode(
      (0..<32).flatMap { _ in row }, width: 32 * Self.inks.count, bands: 4, as: .cmyk,
      profile: Self.profile, suffix: ".tif")
    try expect(source, toShow: Self.references, within: 2)
  }

  @Test func `CMYK without a usable profile uses the default profile`() throws {
    // given
    let untagged = try plain(".tif")
    // A CMYK profile header without any table.
    var torn = Array(Self.profile.prefix(132))
    torn.replaceSubrange(128..<132, with: [0, 0, 0, 0])
    torn.replaceSubrange(0..<4, with: [0, 0, 0, 132])
    // when, then
    for profile in [LittleCMS.profile(LittleCMS.displayP3), [1, 2, 3], torn] {
      try expect(encode(Self.inks, profile: profile, as: ".tif"), toShow: untagged, within: 0)
    }
    // libvips's own profile, embedded by name.
    let named = try TestImages.cmykJPEG(width: 64, height: 48, color: Self.inks[2], profile: true)
    let made = try Made(named) { $0.format = .png }.pixels()
    #expect(isClose(made.rgb(x: 16, y: 16), to: untagged[2], within: 3))
  }

  @Test func `YCCK with an Adobe marker is read as CMYK`() throws {
    // given: JFIF's conversion of inks, which Adobe's marker implies to be inverted
    let stored = Self.inks.map { (inks: [UInt8]) -> [UInt8] in
      let c = Double(inks[0])
      let m = Double(inks[1])
      let y = Double(inks[2])
      let light = [
        0.299 * c + 0.587 * m + 0.114 * y, 128 - 0.168736 * c - 0.331264 * m + 0.5 * y,
        128 + 0.5 * c - 0.418688 * m - 0.081312 * y,
      ]
      return light.map { 255 - UInt8($0.rounded()) } + [inks[3]]
    }
    var bytes = try encode(stored, as: ".jpg[Q=100,subsample_mode=off]")
    // The last byte of the marker is the colour transform: 2 is YCCK (ITU-T T.872, 6.5.3).
    let marker = try #require(place(of: "Adobe", in: bytes))
    bytes[marker + 11] = 2
    // when, then
    try expect(bytes, toShow: plain(".jpg[Q=100]"), within: 4)
  }

  @Test func `CMYK without an Adobe marker is inverted as well`() throws {
    // given: CMYK that libvips takes as inverted, as the writers of such files do
    var bytes = try encode(Self.inks, as: ".jpg[Q=100]")
    // The segment is marker, length and content.
    let marker = try #require(place(of: "Adobe", in: bytes)) - 4
    let length = Int(bytes[marker + 2]) << 8 + Int(bytes[marker + 3])
    bytes.removeSubrange(marker..<marker + 2 + length)
    // when, then
    try expect(bytes, toShow: plain(".jpg[Q=100]"), within: 3)
  }

  private func place(of text: String, in bytes: [UInt8]) -> Int? {
    bytes.indices.first { bytes[$0...].starts(with: text.utf8) }
  }

  // MARK: Lab

  private static let lab: [[Double]] = [
    [0, 0, 0], [100, 0, 0], [50, 0, 0], [60, 30, 20], [70, -30, 40], [40, 10, -40],
  ]

  @Test func `Lab in a TIFF is converted like the Lab of ICC profiles`() throws {
    for color in Self.lab {
      let values = (0..<64).flatMap { _ in color.map { Float($0) } }
      let source = try TestImages.encode(values, width: 8, bands: 3, as: .lab, suffix: ".tif")
      let made = try Made(source)
      #expect(made.format == .jpeg)
      let pixels = try Made(source) { $0.format = .png }.pixels()
      let reference = LittleCMS.sRGB(of: color, bands: 3, profile: nil)
      #expect(isClose(pixels.rgb(x: 4, y: 4), to: reference, within: 3), "\(color)")
    }
  }

  @Test func `8-bit Lab has no alpha`() throws {
    for color in Self.lab {
      // given: TIFF 6.0, section 23: L from 0 to 255, a and b signed
      let bytes = [
        UInt8((color[0] * 2.55).rounded()), UInt8(bitPattern: Int8(color[1])),
        UInt8(bitPattern: Int8(color[2])),
      ]
      var tiff = TiledTIFF(tile: (0..<32 * 32).flatMap { _ in bytes })
      (tiff.samples, tiff.photometric) = (3, 8)
      let source = tiff.bytes
      // when
      let made = try Made(source)
      let pixels = try Made(source) { $0.format = .png }.pixels()
      // then
      let exact = [Double(bytes[0]) / 2.55, color[1], color[2]]
      let reference = LittleCMS.sRGB(of: exact, bands: 3, profile: nil)
      #expect(made.format == .jpeg && pixels.bands == 3)
      #expect(isClose(pixels.rgb(x: 4, y: 4), to: reference, within: 3), "\(color)")
    }
  }
}
