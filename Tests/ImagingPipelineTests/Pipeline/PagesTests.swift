// PagesTests: pages of TIFFs and HEICs are counted without reduced copies.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PagesTests {
  /// A named test file; its bytes would fill the log.
  struct Sample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: @Sendable () throws -> [UInt8]

    init(_ name: String, bytes: @escaping @Sendable () throws -> [UInt8]) {
      testDescription = name
      self.bytes = bytes
    }
  }

  private static let large = Pixels.scene(width: 700, height: 500)
  static let singles = [
    Sample("JPEG 2000") { try TestImages.encode(large, as: ".jp2[lossless]") },
    Sample("JPEG 2000 in tiles") {
      try TestImages.encode(large, as: ".jp2[tile-width=256,tile-height=256]")
    },
    Sample("pyramid TIFF") { try TestImages.encode(large, as: ".tif[pyramid,tile]") },
    Sample("pyramid TIFF in sub-directories") {
      try TestImages.encode(large, as: ".tif[pyramid,subifd,tile]")
    },
    Sample("pyramid BigTIFF") { try TestImages.encode(large, as: ".tif[pyramid,tile,bigtiff]") },
    Sample("SVG") { TestImages.svg(width: 700, height: 500) },
    Sample("JPEG XL") { try TestImages.jxl(large) },
    Sample("PNG") { try TestImages.encode(large, as: ".png") },
    Sample("JPEG") { try TestImages.encode(large, as: ".jpg") },
  ]

  @Test(arguments: singles)
  func `one image in several sizes counts as one frame`(_ sample: Sample) throws {
    // Given
    let source = try sample.bytes()
    // When
    let info = try SourceInfo(source)
    // Then
    #expect((info.width, info.height) == (700, 500))
    #expect((info.frames, info.pages) == (1, nil))
    #expect(
      try Made(source, width: 70, frame: 0).size == PixelSize(width: 70, height: 50))
    #expect(
      Made.error(source, frame: 1)
        == .invalidParameter(name: "frame", value: "1", allowed: "the source has one frame, 0"))
  }

  @Test(arguments: [false, true], [false, true])
  func `copies and masks in a TIFF are not pages, regardless of their position`(
    isBigEndian: Bool, isBigTIFF: Bool
  ) throws {
    // Given
    let tiff = CodedTIFF(
      directories: [
        .init(width: 4, height: 4, grey: 10, kind: 1), .init(grey: 50, kind: 0),
        .init(width: 4, height: 4, grey: 60, kind: 1), .init(grey: 70, kind: 4),
        .init(grey: 100), .init(width: 4, height: 4, grey: 110, oldKind: 2),
        .init(grey: 150, kind: 2),
      ], isBigEndian: isBigEndian, isBigTIFF: isBigTIFF)
    let source = tiff.bytes
    // When
    let info = try SourceInfo(source)
    let frames = try (0..<3).map { frame in
      try Made(source, format: .png, frame: frame).pixels()
    }
    let unnamed = try Made(source) { $0.format = .png }.pixels()
    // Then
    #expect((info.pages, info.width, info.height) == (3, 8, 8))
    #expect(frames.map { $0[3, 3][0] } == [50, 100, 150])
    #expect(frames.allSatisfy { $0.size == PixelSize(width: 8, height: 8) })
    #expect(unnamed[3, 3][0] == 50)
    #expect(Made.error(source) { $0.frame = 3 } != nil)
  }

  @Test func `a TIFF with only reduced copies shows them`() throws {
    let tiff = CodedTIFF(directories: [.init(grey: 10, kind: 1), .init(grey: 50, kind: 1)])
    #expect(try SourceInfo(tiff.bytes).pages == 2)
    #expect(
      try Made(tiff.bytes, format: .png, frame: 1).pixels()[3, 3][0] == 50)
  }

  @Test func `a cyclic chain of directories ends`() throws {
    // Given
    var source = CodedTIFF(directories: [.init(grey: 10), .init(grey: 50, kind: 1)]).bytes
    // The link of the last directory precedes its 64 pixels.
    source.replaceSubrange(source.count - 68..<source.count - 64, with: [8, 0, 0, 0])
    // When
    let made = try? Made(source) { $0.format = .png }
    // Then
    #expect(made == nil || made?.size == PixelSize(width: 8, height: 8))
  }

  @Test(arguments: [false, true])
  func `the first frame of a HEIC is its first image, even if another is primary`(isAVIF: Bool)
    throws
  {
    // Given: a cover, half as bright, before the primary image.
    let scene = Pixels(width: 144, height: 96, color: [200, 180, 160])
    let heif = try TestImages.heif(scene, isAVIF: isAVIF, hasCover: true)
    // When
    let primary = try Made(heif) { $0.format = .png }.pixels()
    let frames = try (0..<2).map { frame in
      try Made(heif, format: .png, frame: frame).pixels()
    }
    // Then
    #expect(try SourceInfo(heif).pages == 2)
    #expect(isClose(primary.rgb(x: 70, y: 40), to: [200, 180, 160]))
    #expect(isClose(frames[0].rgb(x: 70, y: 40), to: [100, 90, 80]))
    #expect(isClose(frames[1].rgb(x: 70, y: 40), to: [200, 180, 160]))
  }

  @Test func `the entries of an icon are one image in several sizes`() throws {
    // Given
    let icon = CodedBitmap.icon(
      of: try [32, 64].map { try TestImages.encode(.scene(width: $0, height: $0), as: ".png") })
    // When
    let info = try SourceInfo(icon)
    // Then
    #expect((info.width, info.frames, info.pages) == (64, 1, nil))
  }
}
