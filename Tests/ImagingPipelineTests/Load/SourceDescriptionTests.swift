// SourceDescriptionTests: the JSON of /info.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

extension SourceInfo {
  /// Describes a source with the pipeline.
  init(_ source: [UInt8], placeholder kind: PlaceholderKind? = nil, density: Int = 1) throws {
    let made = try Made(source, density: density) { $0.product = .info(kind) }
    #expect(made.isDescription)
    try self.init(json: made.bytes)
  }
}

@Suite(.onOwnThreads) struct SourceDescriptionTests {
  @Test func `a rotated photo is described upright, with its orientation`() throws {
    let photo = try TestImages.jpeg(width: 300, height: 200, orientation: 6)
    let info = try SourceInfo(photo, density: 2)
    #expect(info.format == "jpeg")
    #expect((info.width, info.height, info.orientation) == (300, 200, 6))
    #expect((info.frames, info.pages, info.loop, info.duration_ms) == (1, nil, nil, nil))
    #expect((info.colour.space, info.colour.bits, info.alpha) == ("rgb", 8, false))
    #expect((info.bytes, info.density) == (photo.count, 2))
    #expect(info.placeholder == nil)
  }

  @Test func `a description is one line with a fixed order of keys`() throws {
    let source = try TestImages.encode(Pixels(width: 3, height: 2, color: [7]), as: ".png[strip]")
    let made = try Made(source) { $0.product = .info(nil) }
    #expect(
      String(decoding: made.bytes, as: UTF8.self)
        == #"{"format":"png","width":3,"height":2,"orientation":1,"frames":1,"alpha":false,"#
        + #""colour":{"space":"grey","bits":8},"bytes":\#(source.count),"density":1}"# + "\n")
  }

  @Test func `the description of an animation has frames, loops and a duration`() throws {
    for source in [
      try TestImages.gif(width: 20, height: 10, frames: 3, delays: [100, 200, 50], loop: 2),
      try TestImages.animatedWebP(
        width: 20, height: 10, frames: 3, delays: [100, 200, 50], loop: 2),
    ] {
      let info = try SourceInfo(source)
      #expect((info.width, info.height) == (20, 10))
      #expect((info.frames, info.loop, info.duration_ms) == (3, 2, 350))
    }
  }

  @Test func `a description has the source's own alpha, depth and colour space`() throws {
    let deep = try SourceInfo(TestImages.png(width: 9, height: 6, alpha: true, sixteenBits: true))
    #expect((deep.alpha, deep.colour.space, deep.colour.bits) == (true, "rgb", 16))
    let ink = try SourceInfo(
      TestImages.cmykJPEG(width: 9, height: 6, color: [0, 9, 9, 0], profile: true))
    #expect((ink.alpha, ink.colour.space, ink.colour.profile != nil) == (false, "cmyk", true))
    let drawing = try SourceInfo(TestImages.svg(width: 40, height: 30))
    #expect((drawing.format, drawing.width, drawing.height) == ("svg", 40, 30))
  }

  @Test func `a description contains the profile's own name`() throws {
    let info = try SourceInfo(TestImages.jpeg(width: 30, height: 20, profile: "p3"))
    #expect(info.colour.profile?.contains("P3") == true)
    #expect(
      try SourceInfo(TestImages.jpeg(width: 30, height: 20, bare: true)).colour.profile == nil)
  }

  @Test func `a truncated source can be described if its pixels are not needed`() throws {
    let photo = try TestImages.jpeg(width: 300, height: 200)
    let half = Array(photo.prefix(photo.count / 2))
    #expect(try SourceInfo(half).width == 300)
    #expect(Made.isUndecodable(half) { $0.product = .info(.color) })
    // given: run-length data that ends at once, in a format that is decoded when opened
    var bitmap = CodedBitmap(size: PixelSize(width: 400, height: 300), depth: 8)
    bitmap.compression = 1
    bitmap.palette = [[10, 20, 30]]
    bitmap.runs = [4]
    #expect(try SourceInfo(bitmap.file).width == 400)
  }

  @Test func `a source that may not be decoded is not described`() throws {
    let limits = ImagingLimits { $0.maximumPixels = 100 }
    #expect(
      Made.error(try TestImages.png(width: 20, height: 10), limits: limits) {
        $0.product = .info(nil)
      }
        == .tooManyPixels(pixels: 200, limit: 100))
    let text = Made.error(Array("text".utf8)) { $0.product = .info(nil) }
    #expect(text?.code == "unsupported_format")
  }

  // MARK: Parts

  @Test func `JSON text is escaped where required`() {
    let text = JSONText.object([
      "a\"b": JSONText.quoted("c\\d\n\u{1f}é"), "e": JSONText.object([:]),
    ])
    #expect(text == #"{"a\"b":"c\\d\u000a\u001fé","e":{}}"#)
  }

  @Test func `profiles of versions 2 and 4 have a description`() {
    func bytes(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - $0 * 8) & 255) } }
    func profile(_ tag: [UInt8]) -> [UInt8] {
      [UInt8](repeating: 0, count: 128) + bytes(2) + Array("cprt".utf8) + bytes(999) + bytes(9)
        + Array("desc".utf8) + bytes(156) + bytes(tag.count) + tag
    }
    let old = Array("desc".utf8) + bytes(0) + bytes(8) + Array("My RGB\u{7}\0".utf8)
    #expect(ProfileDescription.read(profile(old)) == "My RGB")
    let new =
      Array("mluc".utf8) + bytes(0) + bytes(1) + bytes(12) + Array("enUS".utf8) + bytes(6)
      + bytes(28) + [0, 0x41, 0, 0xe9, 0x20, 0xac]
    #expect(ProfileDescription.read(profile(new)) == "Aé€")
    // A profile cut at any byte has no description or a part of it.
    for count in 0..<profile(new).count {
      #expect(ProfileDescription.read(Array(profile(new).prefix(count))) == nil)
    }
    let long = Array("desc".utf8) + bytes(0) + bytes(400) + [UInt8](repeating: 0x41, count: 400)
    #expect(ProfileDescription.read(profile(long))?.count == 80)
  }
}
