// FacesTests: faces that are found in a source, and the part of it that shows them.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct FacesTests {
  /// 1,000 × 300 with a large face at 300 and a small one at 650.
  private static let two = Pixels.heads(
    width: 1_000, height: 300, [(300, 150, 70), (650, 150, 50)])
  private static let none = Pixels.heads(width: 400, height: 300, [])

  private func png(_ pixels: Pixels) throws -> [UInt8] { try TestImages.encode(pixels, as: ".png") }

  /// The faces that a job has found.
  private func faces(in source: [UInt8]) throws -> [PixelArea] {
    try #require(try Made(source) { $0.selection.crop = .faces(0) }.report.faces)
  }

  @Test(arguments: [".png", ".jpg[Q=85]", ".webp", ".tif", ".gif"])
  func `faces are found in a source of any size and format`(suffix: String) throws {
    let photo = Pixels.heads(width: 400, height: 300, [(150, 140, 55)])
    // The largest has to be shrunk, the smallest enlarged.
    for (pixels, zoom) in [(photo, 6), (photo, 1)] {
      let source = try TestImages.encode(pixels, as: suffix, zoom: zoom)
      let found = try faces(in: source)
      let face = try #require(found.first)
      let side = Double(face.size.width) / Double(zoom)
      #expect(found.count == 1)
      #expect(abs(Double(face.x) / Double(zoom) + side / 2 - 150) < 10, "\(found)")
      #expect(abs(Double(face.y) / Double(zoom) + side / 2 - 145) < 12, "\(found)")
      #expect((80...125).contains(side), "\(found)")
    }
  }

  @Test(arguments: 1...8) func `a turned source shows the same faces`(tag: Int) throws {
    // The size of the copy: no pixel is resampled, so that all are alike.
    let upright = Pixels.heads(width: 500, height: 400, [(170, 150, 60)])
    let source = try TestImages.encode(
      upright.stored(forOrientation: tag), as: ".webp[lossless]", orientation: tag)
    let made = try Made(source, format: .png) { $0.selection.crop = .faces(0.2) }
    let plain = try Made(try png(upright), format: .png) { $0.selection.crop = .faces(0.2) }
    #expect(try made.pixels().meanDifference(to: plain.pixels()) < 1)
    // A requested turn is one of the result.
    let turned = try Made(source, format: .png) {
      $0.selection.crop = .faces(0.2)
      ($0.rotation, $0.flip) = (.quarter, .horizontal)
    }
    let reference = try plain.pixels().turned(by: .quarter, flip: .horizontal)
    #expect(try turned.pixels().meanDifference(to: reference) < 1)
  }

  @Test(arguments: [
    // Both fit, and their middle is in the middle; then only the larger one does.
    (600, 300, 166), (440, 300, 80), (300, 300, 150), (1_000, 100, 0),
  ])
  func `cover keeps as many faces as fit, the largest first`(
    width: Int, height: Int, left: Int
  ) throws {
    let made = try Made(
      try png(Self.two), width: width, height: height, fit: .cover, format: .png
    ) { $0.position = .faces }
    let pixels = try made.pixels()
    #expect(made.size == PixelSize(width: width, height: height))
    #expect(abs(Int(pixels[0, 0][2]) * 4 - left) <= 16, "\(pixels[0, 0])")
  }

  @Test func `only faces of the used part count`() throws {
    let made = try Made(try png(Self.two), width: 150, height: 300, fit: .cover, format: .png) {
      $0.crop = PixelArea(x: 450, y: 0, size: PixelSize(width: 550, height: 300))
      $0.position = .faces
    }
    #expect(abs(Int(try made.pixels()[0, 0][2]) * 4 - 575) <= 16)
  }

  @Test func `without a face attention decides, and a crop is the whole image`() throws {
    let source = try png(Self.none)
    func bytes(_ position: Position) throws -> [UInt8] {
      try Made(source, width: 100, height: 200, fit: .cover) { $0.position = position }.bytes
    }
    #expect(try bytes(.faces) == bytes(.attention))
    let whole = try Made(source) { $0.selection.crop = .faces(0.5) }
    #expect(whole.size == PixelSize(width: 400, height: 300) && whole.report.faces == [])
    let contained = try Made(source, width: 500, height: 100, fit: .contain) {
      $0.position = .faces
    }
    #expect(contained.report.faces == nil, "nothing is cut, and no face is searched for")
  }

  @Test(arguments: [0, 0.5, 0.8, 10])
  func `a crop has all faces with a margin, as far as the image goes`(margin: Double) throws {
    let source = try png(Self.two)
    let faces = try faces(in: source)
    try #require(faces.count == 2 && faces[0].size.width > faces[1].size.width)
    func edges(_ start: (PixelArea) -> Int, _ side: (PixelArea) -> Int, _ end: Int) -> Int {
      let starts = faces.map { max(Double(start($0)) - margin * Double(side($0)), 0) }
      let ends = faces.map {
        min(Double(start($0)) + (1 + margin) * Double(side($0)), Double(end))
      }
      return Int((ends.max() ?? 0).rounded(.up)) - Int(starts.min() ?? 0)
    }
    let made = try Made(source) { $0.selection.crop = .faces(margin) }
    #expect(made.size.width == edges(\.x, \.size.width, 1_000))
    #expect(made.size.height == edges(\.y, \.size.height, 300))
  }

  @Test func `known faces are not searched for, and may be anything`() throws {
    let source = try png(Self.none)
    let known = [
      (PixelArea(x: 50, y: 60, size: PixelSize(width: 70, height: 80)), "70x80"),
      (PixelArea(x: 390, y: 290, size: PixelSize(width: 99, height: 99)), "10x10"),
      (PixelArea(x: 9_999_999, y: 0, size: PixelSize(width: 10_000_000, height: 1)), "1x1"),
    ]
    for (face, size) in known {
      let made = try Made(source, faces: [face]) { $0.selection.crop = .faces(0) }
      #expect("\(made.size)" == size && made.report.faces == [face])
      let covering = try Made(source, width: 50, height: 50, fit: .cover, faces: [face]) {
        $0.position = .faces
      }
      #expect(covering.size == PixelSize(width: 50, height: 50))
    }
  }

  @Test func `an animation has the faces of its first frame`() throws {
    let frames = [150.0, 450, 440].map { Pixels.heads(width: 600, height: 300, [($0, 150, 60)]) }
    let source = try TestImages.animation(frames, as: ".webp[lossless]")
    let made = try Made(source, width: 200, height: 300, fit: .cover) { $0.position = .faces }
    #expect(made.frames == 3 && made.report.faces?.count == 1)
    #expect(abs(Int(try made.pixels(frame: 2)[0, 0][2]) * 4 - 50) <= 16)
  }

  @Test func `sources without room for a face have none`() throws {
    let sources = [
      try TestImages.png(width: 1, height: 1), try TestImages.png(width: 31, height: 90),
      try TestImages.png(width: 5_000, height: 3), try TestImages.jpeg(width: 2, height: 4_000),
      TestImages.svg(width: 300, height: 200),
      try TestImages.png(width: 90, height: 40, alpha: true),
      try TestImages.png(width: 300, height: 200, alpha: true, sixteenBits: true),
    ]
    for source in sources { #expect(try faces(in: source).isEmpty) }
  }

  @Test func `a search is estimated, once`() throws {
    let source = try png(Self.two)
    func costs(_ faces: [PixelArea]?, _ change: (inout Transform) -> Void) throws -> [Double] {
      try Made.costs(of: source, faces: faces, isBegun: true, change: change).map(\.seconds)
    }
    let both: (inout Transform) -> Void = {
      ($0.width, $0.height, $0.fit, $0.position) = (50, 50, .cover, .faces)
      $0.selection.crop = .faces(0.5)
    }
    let (searched, known) = (try costs(nil, both), try costs([], both))
    #expect(searched.count == 2 && known.count == 1)
    #expect(searched[1] - known[0] >= 0.02)
  }
}

extension Crop {
  /// All faces with a margin.
  fileprivate static func faces(_ margin: Double) -> Crop {
    Crop(width: .pixels(0), height: .pixels(0), at: .faces(margin: margin))
  }
}
