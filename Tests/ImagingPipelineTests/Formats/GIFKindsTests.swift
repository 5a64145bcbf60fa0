// GIFKindsTests: GIFs with partial frames are rendered as complete frames.

import CVips
import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct GIFKindsTests {
  private static let palette: [[UInt8]] = [
    [220, 30, 30], [30, 200, 40], [30, 40, 220], [230, 220, 40],
  ]

  /// Returns a background, a partial frame with this disposal, and another partial frame next to
  /// it.
  private static func gif(_ disposal: Int, transparent: UInt8? = nil) -> CodedGIF {
    CodedGIF(
      size: PixelSize(width: 40, height: 30), palette: palette,
      frames: [
        .init(x: 0, y: 0, width: 40, height: 30, index: 0),
        .init(
          x: 5, y: 5, width: 20, height: 15, index: 1, disposal: disposal, transparent: transparent),
        .init(x: 15, y: 12, width: 20, height: 15, index: 2),
      ])
  }

  private func compare(_ gif: CodedGIF) throws {
    // when
    let made = try Made(gif.bytes) { $0.format = .gif }
    // then: libvips 8.16 writes a frame that repeats the one before as a longer delay
    #expect(made.format == .gif && made.frames == gif.frames.count)
    let shown = gif.shown
    let isRepeated =
      vips_version(1) >= 16 && zip(shown, shown.dropFirst()).contains { $0.values == $1.values }
    for (index, expected) in shown.enumerated() {
      let pixels =
        try isRepeated
        ? Made(gif.bytes, format: .png, frame: index).pixels() : made.pixels(frame: index)
      for place in 0..<pixels.size.width * pixels.size.height {
        let x = place % pixels.size.width
        let y = place / pixels.size.width
        let alpha = pixels.bands == 4 ? pixels[x, y][3] : 255
        guard alpha == expected[x, y][3],
          alpha == 0 || isClose(pixels.rgb(x: x, y: y), to: expected.rgb(x: x, y: y), within: 6)
        else {
          Issue.record("frame \(index) at \(x), \(y): \(pixels[x, y]), not \(expected[x, y])")
          return
        }
      }
    }
  }

  @Test(arguments: [
    ("NETSCAPE2.0", false), ("ANIMEXTS1.0", false), ("ICCRGBG1012", true), ("XMP DataXMP", true),
  ])
  func `a single frame without a trailer is complete unless it begins an animation`(
    application: String, isWhole: Bool
  ) throws {
    // given: one frame, an application extension of that name, no trailer
    let gif = CodedGIF(
      size: PixelSize(width: 8, height: 8), palette: Self.palette,
      frames: [.init(x: 0, y: 0, width: 8, height: 8, index: 1)])
    var bytes = gif.bytes
    let name = try #require(
      bytes.indices.first { bytes[$0...].starts(with: "NETSCAPE2.0".utf8) })
    bytes.replaceSubrange(name..<name + 11, with: application.utf8)
    #expect(Made.error(bytes) == nil)
    // when, then
    #expect((Made.error(Array(bytes.dropLast())) == nil) == isWhole)
  }

  @Test(arguments: [0, 1, 2, 3])
  func `frame disposal is applied`(disposal: Int) throws {
    try compare(Self.gif(disposal))
  }

  @Test(arguments: [1, 2, 3], [1, 3])
  func `transparent pixels show the frame below`(disposal: Int, transparent: UInt8) throws {
    // Whether all or none of the partial frame is transparent, clearing it leaves transparent
    // pixels.
    try compare(Self.gif(disposal, transparent: transparent))
  }

  @Test func `an area that no frame paints is transparent`() throws {
    // given: a partial first frame that is cleared, and a second one
    let gif = CodedGIF(
      size: PixelSize(width: 40, height: 30), palette: Self.palette,
      frames: [
        .init(x: 0, y: 0, width: 10, height: 10, index: 3, disposal: 2, transparent: 0),
        .init(x: 20, y: 10, width: 20, height: 20, index: 2, transparent: 0),
      ])
    try compare(gif)
  }

  /// A frame smaller than the canvas, alone or with a larger one.
  private static let gaps: [String: [CodedGIF.Frame]] = [
    "offset first": [.init(x: 5, y: 5, width: 20, height: 15, index: 1)],
    "offset first of two": [
      .init(x: 5, y: 5, width: 20, height: 15, index: 1),
      .init(x: 0, y: 0, width: 40, height: 30, index: 2),
    ],
    "disposal 2 of all": [
      .init(x: 0, y: 0, width: 40, height: 30, index: 1, disposal: 2),
      .init(x: 5, y: 5, width: 20, height: 15, index: 2),
    ],
    "disposal 2 of a part": [
      .init(x: 0, y: 0, width: 40, height: 30, index: 1),
      .init(x: 5, y: 5, width: 20, height: 15, index: 2, disposal: 2),
      .init(x: 15, y: 12, width: 20, height: 15, index: 3),
    ],
    "disposal 3 first": [
      .init(x: 0, y: 0, width: 40, height: 30, index: 1, disposal: 3),
      .init(x: 5, y: 5, width: 20, height: 15, index: 2),
    ],
    "a transparent index later": [
      .init(x: 0, y: 0, width: 40, height: 30, index: 1, disposal: 2),
      .init(x: 0, y: 0, width: 40, height: 30, index: 2, transparent: 2),
    ],
  ]

  @Test(arguments: gaps.keys.sorted())
  func `what no frame covers is transparent`(name: String) throws {
    let gif = CodedGIF(
      size: PixelSize(width: 40, height: 30), palette: Self.palette,
      frames: try #require(Self.gaps[name]))
    try compare(gif)
    let info = try Made(gif.bytes) { $0.product = .info(nil) }
    let text = String(decoding: info.bytes, as: UTF8.self).filter { !$0.isWhitespace }
    #expect(text.contains("\"alpha\":true"))
  }

  /// Frames that use all 256 colours, and leave parts of the canvas uncovered.
  private static let fullGaps: [String: [CodedGIF.Frame]] = [
    "alone": [.init(ofAllIndicesAt: 5, y: 5)],
    "two": [.init(ofAllIndicesAt: 5, y: 5), .init(ofAllIndicesAt: 20, y: 10)],
    "with another": [
      .init(ofAllIndicesAt: 5, y: 5), .init(x: 0, y: 0, width: 10, height: 10, index: 0),
    ],
    "disposal 2 of the last but one": [
      .init(x: 0, y: 0, width: 40, height: 30, index: 200),
      .init(ofAllIndicesAt: 7, y: 3, disposal: 2),
      .init(x: 15, y: 12, width: 20, height: 15, index: 90),
    ],
  ]

  @Test(arguments: fullGaps.keys.sorted(), [nil, 0, 255] as [UInt8?])
  func `what no frame covers is transparent in spite of 256 colours`(
    name: String, twin: UInt8?
  ) throws {
    // Colours that differ little, two of them perhaps not at all.
    var palette = (0...255).map { [UInt8($0), UInt8($0 / 2), UInt8(255 - $0)] }
    if let twin { palette[Int(twin)] = palette[77] }
    let gif = CodedGIF(
      size: PixelSize(width: 40, height: 30), palette: palette,
      frames: try #require(Self.fullGaps[name]))
    try compare(gif)
    let still = try Made(gif.bytes) { $0.format = .png }.pixels()
    let first = gif.shown[0]
    for y in 0..<30 {
      for x in 0..<40 {
        #expect(still[x, y][3] == first[x, y][3])
        // A colour gives way to its twin, and to no other.
        if twin != nil, first[x, y][3] == 255 { #expect(still[x, y] == first[x, y]) }
      }
    }
  }

  @Test(arguments: [1, 2, 3])
  func `frames that cover the canvas need no alpha`(disposal: Int) throws {
    let gif = CodedGIF(
      size: PixelSize(width: 40, height: 30), palette: Self.palette,
      frames: (1...3).map {
        .init(x: 0, y: 0, width: 40, height: 30, index: $0, disposal: disposal)
      })
    #expect(gif.bytes.withUnsafeBytes { SourceMending.mended($0) } == nil)
    try compare(gif)
  }

  @Test func `whole frames need no trailer`() throws {
    let gif = Self.gif(1)
    let made = try Made(gif.bytes.dropLast())
    #expect(made.frames == 3)
    #expect(made.bytes == (try Made(gif.bytes)).bytes)
    #expect(Made.error(gif.bytes.dropLast(3)) != nil)
  }
}
