// MetadataFuzzTests: Exif, XMP and IPTC lose thumbnails and the orientation, and nothing else.

import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct MetadataFuzzTests {
  private static func number(_ value: Int, width: Int, isLittle: Bool) -> [UInt8] {
    let bytes = (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    return isLittle ? bytes : bytes.reversed()
  }

  /// The bytes of a thumbnail.
  private static let thumbnail = [UInt8](repeating: 0xaa, count: 24)

  /// Returns Exif of up to two directories, the second with a thumbnail.
  private static func exif(_ generator: inout SeededGenerator) -> (bytes: [UInt8], hasPrefix: Bool)
  {
    let isLittle = generator.isOne(of: 2)
    func number(_ value: Int, width: Int) -> [UInt8] {
      Self.number(value, width: width, isLittle: isLittle)
    }
    func entry(_ tag: Int, value: Int) -> [UInt8] {
      tag == 0x0112
        ? number(tag, width: 2) + number(3, width: 2) + number(1, width: 4)
          + number(value, width: 2) + [0, 0]
        : number(tag, width: 2) + number(4, width: 2) + number(1, width: 4)
          + number(value, width: 4)
    }
    let tags = [0x0112] + (0..<generator.number(0...3)).map { 0x9000 + $0 }
    let second = 8 + 2 + 12 * tags.count + 4
    let hasSecond = generator.isOne(of: 2)
    var bytes = Array((isLittle ? "II" : "MM").utf8) + number(42, width: 2) + number(8, width: 4)
    bytes += number(tags.count, width: 2)
    for tag in tags { bytes += entry(tag, value: generator.number(1...8)) }
    bytes += number(hasSecond ? second : 0, width: 4)
    if hasSecond {
      bytes +=
        number(2, width: 2) + entry(0x0201, value: second + 30)
        + entry(0x0202, value: thumbnail.count)
      bytes += number(0, width: 4) + thumbnail
    }
    let hasPrefix = generator.isOne(of: 2)
    return ((hasPrefix ? Array("Exif\0\0".utf8) : []) + bytes, hasPrefix)
  }

  @Test func `sound Exif comes out upright and without its thumbnail`() throws {
    for seed in FuzzSeeds.run(usual: 1_000) {
      var generator = SeededGenerator(seed: seed)
      let (exif, hasPrefix) = Self.exif(&generator)
      let cleaned = try #require(Exif.cleaned(exif), "seed \(seed)")
      let isLittle = exif[hasPrefix ? 6 : 0] == UInt8(ascii: "I")
      let place = (hasPrefix ? 6 : 0) + 8 + 2 + 8
      let upright = Self.number(1, width: 2, isLittle: isLittle) + [0, 0]
      #expect(Array(cleaned[place..<place + 4]) == upright, "seed \(seed)")
      #expect(!cleaned.contains(0xaa), "seed \(seed)")
    }
  }

  /// Whether readable Exif has a directory after its first one.
  private static func hasSecondDirectory(_ exif: [UInt8]) -> Bool {
    let bytes = exif.starts(with: "Exif\0\0".utf8) ? exif.dropFirst(6) : exif[...]
    func number(at place: Int, width: Int) -> Int {
      let digits = bytes.dropFirst(place).prefix(width)
      let isLittle = bytes.first == UInt8(ascii: "I")
      return (isLittle ? digits.reversed() : Array(digits)).reduce(0) { $0 << 8 | Int($1) }
    }
    let first = number(at: 4, width: 4)
    return number(at: first + 2 + 12 * number(at: first, width: 2), width: 4) > 0
  }

  @Test func `cleaned Exif is as long as it was, and clean`() throws {
    var cleaned = 0
    try Fuzz.run(
      "exif", usual: 4_000,
      make: { generator in
        var bytes = Self.exif(&generator).bytes
        let words: [[UInt8]] = [
          [0x12, 0x01], [0x01, 0x12], [0x01, 0x02], [0xff, 0xff], [8, 0, 0, 0],
        ]
        Damage.apply(to: &bytes, words: words, using: &generator)
        return bytes
      },
      check: { bytes in
        guard let once = Exif.cleaned(bytes) else { return }
        cleaned += 1
        try hold(once.count == bytes.count, "\(once.count) bytes of \(bytes.count)")
        // A thumbnail may be anywhere, so what is cleared may be part of a directory.
        guard !Self.hasSecondDirectory(bytes) else { return }
        try hold(Exif.cleaned(once) == once, "cleaned twice")
      })
    #expect(cleaned > 0)
  }

  @Test func `cleaned XMP is as long as it was, and states no other orientation`() throws {
    let words = [
      "tiff:Orientation", "tiff:Orientation=\"6\"", "<tiff:Orientation>8</tiff:Orientation>", "=",
      "\"", "'", ">", "<", " ", "1", "6", "9", "xmpGImg", "xmpGIm", "tiff:", "\n", "é", "\0",
    ]
    var cleaned = 0
    try Fuzz.texts(
      "xmp", usual: 4_000, make: { $0.sentence(of: words, most: 12) },
      check: { text in
        let packet = Array(text.utf8)
        guard let once = XMP.cleaned(packet) else {
          return try hold(text.utf8.firstRange(of: "xmpGImg".utf8) != nil, "\(text) is dropped")
        }
        cleaned += 1
        try hold(once.count == packet.count, text)
        try hold(XMP.cleaned(once) == once, text)
        let result = String(decoding: once, as: UTF8.self)
        for digit in "2345678" {
          for form in ["=\"\(digit)", "='\(digit)", ">\(digit)"] {
            try hold(!result.contains("tiff:Orientation" + form), result)
          }
        }
        let changed = zip(packet, once).filter { $0 != $1 }
        try hold(changed.allSatisfy { (0x32...0x38).contains($0) && $1 == 0x31 }, result)
      })
    #expect(cleaned > 0)
  }

  /// Returns Photoshop resources, one of them IPTC.
  private static func resources(_ generator: inout SeededGenerator) -> [UInt8] {
    func resource(_ id: UInt8, content: [UInt8]) -> [UInt8] {
      let name = generator.bytes(generator.number(0...5))
      let named = [UInt8(name.count)] + name + [UInt8](repeating: 0, count: (1 + name.count) % 2)
      return Array("8BIM".utf8) + [4, id] + named
        + number(content.count, width: 4, isLittle: false) + content
        + [UInt8](repeating: 0, count: content.count % 2)
    }
    var bytes = generator.isOne(of: 2) ? Array("Photoshop 3.0\0".utf8) : []
    for _ in 0..<generator.number(0...2) {
      bytes += resource(0x0c, content: [UInt8](repeating: 0xaa, count: generator.number(0...20)))
    }
    return bytes + resource(0x04, content: generator.bytes(generator.number(0...30)))
  }

  @Test func `IPTC is one resource of the source, and reads as itself`() throws {
    var found = 0
    try Fuzz.run(
      "iptc", usual: 4_000,
      make: { generator in
        var bytes = Self.resources(&generator)
        try hold(IPTC(bytes) != nil, "sound IPTC is not found")
        Damage.apply(to: &bytes, words: [Array("8BIM".utf8), [4, 4]], using: &generator)
        return bytes
      },
      check: { bytes in
        guard let iptc = IPTC(bytes) else { return }
        found += 1
        try hold(iptc.block.starts(with: Array("8BIM".utf8) + [4, 4]), "another resource")
        try hold(iptc.block.count.isMultiple(of: 2), "\(iptc.block.count) bytes")
        try hold(iptc.block.count <= bytes.count + 1, "\(iptc.block.count) of \(bytes.count)")
        try hold(IPTC(iptc.block)?.block == iptc.block, "another block of the same")
        try hold(IPTC(iptc.segment)?.block == iptc.block, "another block of the segment")
        // A byte of padding may have been missing.
        let isPart = bytes.firstRange(of: iptc.block.dropLast()) != nil
        try hold(isPart, "bytes that the source does not have")
      })
    #expect(found > 0)
  }
}
