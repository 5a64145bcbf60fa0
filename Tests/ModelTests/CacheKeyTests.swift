// CacheKeyTests: tests that equivalent requests have equal keys and different ones do not.

import Testing

@testable import Model

struct CacheKeyTests {
  private func key(_ change: (inout Transform) -> Void = { _ in }) throws -> CacheKey {
    var transform = Transform()
    change(&transform)
    return CacheKey(source: try SourceURL(parsing: "http://a/b.jpg"), transform: transform)
  }

  @Test func `a variant's key leads to its source's`() throws {
    let source = CacheKey(source: try SourceURL(parsing: "http://a/b.jpg"))
    #expect(source.isSource)
    for variant in [try key(), try key { $0.width = 10 }] {
      #expect(!variant.isSource)
      #expect(variant.source == source)
      #expect(variant != source)
    }
  }

  @Test func `a key written down and read again is the same`() throws {
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
  func `the operator's quality is another key where the result may depend on it, and only there`()
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
      { ($0.format, $0.quality) = (.jpeg, 80) }, { $0.product = .info(nil) },
      { $0.product = .placeholder(.lqip) },
    ]
    for change in independent { #expect(try key(change) == key(other(change))) }
    // The contract's own numbers are no part of a key, and every other number is one of its own.
    #expect(try key { $0.qualities.jpeg = 80 } == key())
    #expect(
      try Set((1...100).map { quality in try key { $0.qualities.jpeg = quality } }).count == 100)
    #expect(
      try key { ($0.qualities.webp, $0.accepted) = (60, [.avif, .webp]) }.text
        == "http://a/b.jpg qualities=webp:60&auto=avif,webp")
  }

  @Test func `other formats of the same source are as if they had been asked for`() throws {
    let (url, keyURL) = (
      try SourceURL(parsing: "http://a/b.jpg?id=1"), try SourceURL(parsing: "http://a/b.jpg")
    )
    var transform = Transform()
    transform.accepted = [.webp]
    let one = ImageRequest(source: url, transform: Transform(), keyURL: keyURL)
    let other = ImageRequest(source: url, transform: transform, keyURL: keyURL)
    #expect(one.accepting([.webp]) == other)
    let (varied, asked) = (
      one.forwarding([], variation: "abc"), other.forwarding([], variation: "abc")
    )
    #expect(varied.accepting([.webp]) == asked)
    #expect(varied.accepting([.webp]).key.source == varied.key.source)
  }

  @Test func `asking for a default is asking for nothing`() throws {
    #expect(
      try key {
        $0.format = .jpeg
        $0.quality = 80
      } == key { $0.format = .jpeg })
    #expect(try key { $0.scale = 0.50 } == key { $0.scale = 0.5 })
    #expect(try key { ($0.effects.brightness, $0.effects.saturation) = (1, 1) } == key())
    #expect(
      try key {
        $0.format = .jpeg
        $0.accepted = [.webp]
      } == key { $0.format = .jpeg })
  }

  @Test func `a transform is written in one order, whatever set it first`() {
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

  @Test(arguments: [
    ("ff0000", Color(red: 255, green: 0, blue: 0)),
    ("00FF0080", Color(red: 0, green: 255, blue: 0, alpha: 128)),
    ("f80", Color(red: 255, green: 136, blue: 0)),
  ])
  func `colours are hexadecimal`(text: String, color: Color) {
    #expect(Color(hexadecimal: text) == color)
  }

  @Test(arguments: [
    "", "ff", "ffff", "#ff", "+ff", "界", "#ffffff", "gggggg", "fffffffff", "+fffff", "ff ff ff",
    "１２３４５６",
  ])
  func `what is no colour is none`(text: String) {
    #expect(Color(hexadecimal: text) == nil)
  }

  @Test func `colours survive being written`() {
    let color = Color(red: 1, green: 20, blue: 200, alpha: 0)
    #expect(color.hexadecimal == "0114c800")
    #expect(Color(hexadecimal: color.hexadecimal) == color)
  }
}
