// CacheKeyTests: tests that equivalent requests have equal keys and different ones do not.

import TestSupport
import Testing

@testable import Model

struct CacheKeyTests {
  private func key(_ change: (inout Transform) -> Void = { _ in }) throws -> CacheKey {
    var transform = Transform()
    change(&transform)
    return CacheKey(source: try SourceURL(parsing: "http://a/b.jpg"), transform: transform)
  }

  @Test func `a variant's key contains its source's key`() throws {
    let source = CacheKey(source: try SourceURL(parsing: "http://a/b.jpg"))
    #expect(source.isSource)
    for variant in [try key(), try key { $0.width = 10 }] {
      #expect(!variant.isSource)
      #expect(variant.source == source)
      #expect(variant != source)
    }
  }

  @Test func `a key tells its variation`() throws {
    for plain in [try key(), try key().source] {
      let varied = plain.varied(by: "abc1")
      #expect(plain.variation == nil)
      #expect(varied.variation == "abc1")
      #expect(CacheKey(text: varied.text).variation == "abc1")
      #expect(varied.source.variation == "abc1")
    }
  }

  @Test func `a key read back from its text is equal`() throws {
    for original in [try key(), try key { $0.scale = 0.5 }, try key().source] {
      let read = CacheKey(text: original.text)
      #expect(read == original)
      #expect(read.hashValue == original.hashValue)
      #expect(read.isSource == original.isSource)
    }
  }

  @Test func `every parameter that changes the image changes the key`() throws {
    let changes: [(inout Transform) -> Void] = [
      { _ in }, { $0.scale = 0.5 }, { $0.width = 10 }, { $0.height = 10 }, { $0.fit = .cover },
      { $0.position = .top }, { $0.enlarge = true }, { $0.format = .png }, { $0.quality = 50 },
      { $0.background = Color(red: 0, green: 0, blue: 0) }, { $0.limitBytes = 1 },
      { $0.frame = 0 }, { $0.progressive = true }, { $0.focalPoint = FocalPoint(x: 0.5, y: 0.5) },
      { $0.rotation = .quarter }, { $0.rotation = .half }, { $0.flip = .horizontal },
      { $0.flip = .both },
      { $0.crop = PixelArea(x: 1, y: 2, size: PixelSize(width: 3, height: 4)) },
      { $0.crop = PixelArea(x: 1, y: 2, size: PixelSize(width: 4, height: 3)) }, { $0.trim = 1 },
      { $0.accepted = [.webp] }, { $0.accepted = [.avif, .webp] }, { $0.maxBytes = 1 },
      { $0.isAnimated = false }, { $0.stripsMetadata = false }, { $0.effects.blur = 1 },
      { $0.effects.sharpen = 1 }, { $0.effects.radius = .points(1) },
      { $0.effects.radius = .maximum },
      { $0.effects.tint = Color(red: 0, green: 0, blue: 0, alpha: 0) },
      { $0.effects.isGrayscale = true }, { $0.effects.brightness = 0 },
      { $0.effects.saturation = 0 },
    ]
    let keys = try changes.map { try key($0) }
    #expect(Set(keys).count == changes.count)
  }

  @Test
  func `the operator's quality is part of the key only where it can affect the result`()
    throws
  {
    func other(_ change: @escaping (inout Transform) -> Void) -> (inout Transform) -> Void {
      { transform in
        change(&transform)
        transform.qualities.jpeg = 70
      }
    }
    // It depends on it: a JPEG, or what may become one.
    let dependent: [(inout Transform) -> Void] = [
      { _ in }, { $0.format = .jpeg }, { $0.accepted = [.avif] }, { $0.maxBytes = 9 },
    ]
    for change in dependent { #expect(try key(change) != key(other(change))) }
    // It does not: another format, a quality of the request's own, no image.
    let independent: [(inout Transform) -> Void] = [
      { $0.format = .png }, { $0.format = .webp }, { $0.quality = 70 },
      {
        $0.format = .jpeg
        $0.quality = 80
      }, { $0.product = .info(nil) },
      { $0.product = .placeholder(.lqip) },
    ]
    for change in independent { #expect(try key(change) == key(other(change))) }
    // The contract's own numbers are no part of a key, and every other number is one of its own.
    #expect(try key { $0.qualities.jpeg = 80 } == key())
    #expect(
      try Set((1...100).map { quality in try key { $0.qualities.jpeg = quality } }).count == 100)
    #expect(
      try key {
        $0.qualities.webp = 60
        $0.accepted = [.avif, .webp]
      }.text
        == "http://a/b.jpg qualities=webp:60&auto=avif,webp")
  }

  @Test func `accepting other formats equals a request that names them`() throws {
    let url = try SourceURL(parsing: "http://a/b.jpg?id=1")
    let keyURL = try SourceURL(parsing: "http://a/b.jpg")
    var transform = Transform()
    transform.accepted = [.webp]
    let one = ImageRequest(source: url, transform: Transform(), keyURL: keyURL)
    let other = ImageRequest(source: url, transform: transform, keyURL: keyURL)
    #expect(one.accepting([.webp]) == other)
    let varied = one.forwarding([], variation: "abc")
    let asked = other.forwarding([], variation: "abc")
    #expect(varied.accepting([.webp]) == asked)
    #expect(varied.accepting([.webp]).key.source == varied.key.source)
  }

  @Test func `a parameter at its default does not change the key`() throws {
    #expect(
      try key {
        $0.format = .jpeg
        $0.quality = 80
      } == key { $0.format = .jpeg })
    #expect(try key { $0.scale = 0.50 } == key { $0.scale = 0.5 })
    #expect(
      try key {
        $0.effects.brightness = 1
        $0.effects.saturation = 1
      } == key())
    #expect(
      try key {
        $0.format = .jpeg
        $0.accepted = [.webp]
      } == key { $0.format = .jpeg })
  }

  @Test func `a transform's text has a fixed order`() {
    var transform = Transform()
    transform.effects.saturation = 2
    transform.effects.brightness = 0.5
    transform.effects.isGrayscale = true
    transform.effects.tint = Color(red: 255, green: 0, blue: 0, alpha: 128)
    transform.effects.radius = .points(8)
    transform.effects.sharpen = 1.5
    transform.effects.blur = 3
    transform.trim = 10
    transform.crop = PixelArea(x: 1, y: 2, size: PixelSize(width: 3, height: 4))
    transform.flip = .vertical
    transform.rotation = .half
    transform.focalPoint = FocalPoint(x: 0.25, y: 1)
    transform.width = 9
    #expect(
      transform.canonicalText
        == "w=9&focus=0.25,1.0&rotate=180&flip=v&crop=1,2,3,4&trim=10&blur=3.0&sharpen=1.5&radius=8"
        + "&tint=ff000080&grayscale=1&brightness=0.5&saturation=2.0")
  }

  @Test func `every parameter keeps the text that stored keys have`() throws {
    var transform = Transform()
    transform.scale = 0.5
    transform.width = 30
    transform.height = 40
    transform.fit = .cover
    transform.position = .leftTop
    transform.enlarge = true
    transform.format = .webp
    transform.quality = 7
    transform.maxBytes = 9_000
    transform.background = Color(red: 1, green: 2, blue: 3)
    transform.limitBytes = 5_000
    transform.frame = 6
    transform.progressive = true
    transform.focalPoint = FocalPoint(x: 0, y: 0.75)
    transform.rotation = .threeQuarters
    transform.flip = .both
    transform.trim = 8
    transform.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 1, height: 1))
    transform.isAnimated = false
    transform.stripsMetadata = false
    transform.effects.blur = 0.3
    transform.effects.radius = .maximum
    transform.product = .placeholder(.blurhash)
    var placement = WatermarkPlacement()
    placement.scale = 0.25
    transform.watermark = Watermark(
      source: try SourceURL(parsing: "http://b/m.png"), placement: placement)
    #expect(
      transform.canonicalText
        == "scale=0.5&w=30&h=40&fit=cover&position=left-top&enlarge=1&format=webp&quality=7"
        + "&background=010203ff&limitbytes=5000&frame=6&progressive=1&focus=0.0,0.75&rotate=270"
        + "&flip=hv&crop=0,0,1,1&trim=8&maxbytes=9000&animated=0&strip=0&blur=0.3&radius=max"
        + "&placeholder=blurhash&watermark=right-bottom,1.0&watermark_scale=0.25"
        + "&watermark_url=http://b/m.png")
    var open = Transform()
    open.accepted = [.avif, .webp]
    open.qualities.avif = 50
    open.qualities.jpeg = 60
    #expect(open.canonicalText == "qualities=avif:50,jpeg:60&auto=avif,webp")
    open.product = .info(.color)
    open.accepted = []
    #expect(open.canonicalText == "info=1&placeholder=color")
  }

  @Test(arguments: [
    ("ff0000", Color(red: 255, green: 0, blue: 0)),
    ("00FF0080", Color(red: 0, green: 255, blue: 0, alpha: 128)),
    ("f80", Color(red: 255, green: 136, blue: 0)),
  ])
  func `colours are parsed from hexadecimal digits`(text: String, color: Color) {
    #expect(Color(hexadecimal: text) == color)
  }

  @Test(arguments: [
    "", "ff", "ffff", "#ff", "+ff", "界", "#ffffff", "gggggg", "fffffffff", "+fffff", "ff ff ff",
    "１２３４５６",
  ])
  func `malformed colours are refused`(text: String) {
    #expect(Color(hexadecimal: text) == nil)
  }

  @Test func `a written colour is parsed back unchanged`() {
    let color = Color(red: 1, green: 20, blue: 200, alpha: 0)
    #expect(color.hexadecimal == "0114c800")
    #expect(Color(hexadecimal: color.hexadecimal) == color)
  }
}
