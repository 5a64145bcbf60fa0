// PNGFuzzTests: PNGs of random chunks and streams, decoded at once and by libvips.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PNGFuzzTests {
  /// Returns a PNG whose checksums are right, and whose header, chunks and stream may be wrong.
  private static func png(_ generator: inout SeededGenerator) -> [UInt8] {
    let (type, depth) = generator.pick(
      (0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8),
      (4, 8), (4, 16), (6, 8), (6, 16))
    let size = PixelSize(width: generator.number(1...40), height: generator.number(1...8))
    let count = size.pixels * CodedPNG.channels(type)
    var png = CodedPNG(
      size: size, colorType: type, depth: depth,
      samples: (0..<count).map { _ in generator.number(0...1 << depth - 1) })
    png.filters = (0..<8).map { _ in UInt8(generator.number(0...4)) }
    png.isInterlaced = generator.isOne(of: 10)
    var header =
      CodedPNG.big(size.width, width: 4) + CodedPNG.big(size.height, width: 4)
      + [UInt8(depth), UInt8(type), 0, 0, png.isInterlaced ? 1 : 0]
    if generator.isOne(of: 12) {
      header[generator.number(0...12)] ^= UInt8(generator.number(0...9))
    }
    var data = png.data
    while generator.isOne(of: 3), !data.isEmpty {
      switch generator.number(0...3) {
      case 0: data.removeLast(generator.number(1...data.count))
      case 1: data += generator.bytes(generator.number(1...9))
      default: data[generator.number(0...data.count - 1)] ^= UInt8(generator.number(0...255))
      }
    }
    var chunks: [(String, [UInt8])] = []
    if type == 3 || generator.isOne(of: 8) {
      let colours = generator.isOne(of: 4) ? generator.number(0...260) : 1 << min(depth, 8)
      chunks.append(("PLTE", generator.bytes(3 * colours + (generator.isOne(of: 20) ? 1 : 0))))
    }
    if generator.isOne(of: 4) {
      chunks.append(("tRNS", generator.bytes(generator.number(0...20))))
    }
    if generator.isOne(of: 6) { chunks.append(("tEXt", Array("Title\0A".utf8))) }
    if generator.isOne(of: 20) { chunks.append(("ABCD", generator.bytes(3))) }
    let split = generator.isOne(of: 3) ? generator.number(1...60) : max(data.count, 1)
    for start in stride(from: 0, to: data.count, by: split) {
      chunks.append(("IDAT", Array(data[start..<min(start + split, data.count)])))
      if generator.isOne(of: 40) { chunks.append(("tIME", [7, 230, 1, 2, 3, 4, 5])) }
    }
    if !chunks.isEmpty, generator.isOne(of: 10) {
      chunks.swapAt(0, generator.number(0...chunks.count - 1))
    }
    var bytes = CodedPNG.signature + CodedPNG.chunk("IHDR", content: header)
    for (name, content) in chunks { bytes += CodedPNG.chunk(name, content: content) }
    return bytes + CodedPNG.chunk("IEND", content: [])
  }

  /// Returns a PNG of an encoder, whose stream may be changed.
  private static func compressed(
    _ sources: [[UInt8]], _ generator: inout SeededGenerator
  ) throws -> [UInt8] {
    let source = sources[generator.number(0...sources.count - 1)]
    return source.withUnsafeBytes { file in
      var chunks = PNGChunks(file)
      var bytes = CodedPNG.signature
      while let chunk = try? chunks.next() {
        var content = Array(chunk.content)
        if chunk.isOf("IDAT"), !content.isEmpty {
          for _ in 0..<generator.number(0...2) {
            content[generator.number(0...content.count - 1)] ^= 1 << generator.number(0...7)
          }
        }
        bytes += CodedPNG.chunk(String(decoding: chunk.type, as: UTF8.self), content: content)
      }
      return bytes
    }
  }

  @Test func `what is decoded in one call has the pixels of libvips`() throws {
    TestImages.start()
    let scene = Pixels.scene(width: 61, height: 43)
    let sources = try [1, 6, 9].flatMap { level in
      [
        try TestImages.encode(scene, as: ".png[compression=\(level),filter=all]"),
        try TestImages.encode(scene, as: ".png[compression=\(level),palette]"),
      ]
    }
    var decoded = 0
    try Fuzz.run(
      "pngs", usual: 1_500,
      make: { generator in
        var png =
          generator.isOne(of: 3)
          ? try Self.compressed(sources, &generator) : Self.png(&generator)
        if generator.isOne(of: 30) { png.removeLast(generator.number(1...png.count - 8)) }
        return png
      },
      check: { png in
        try GuardedBytes(png).withBytes { source in
          guard
            let header = try? SourceHeader(of: source, as: .png, frame: nil, failOn: .warning),
            let image = PNGPixels.image(source, header)
          else { return }
          decoded += 1
          let reference = try Loader.open(
            source, as: .png, pages: .first, failOn: .warning
          ).inMemory()
          let count = image.size.pixels * image.pixelBytes
          try hold(count == reference.size.pixels * reference.pixelBytes, "another size")
          guard let mine = image.pixels, let others = reference.pixels else {
            throw Fault(description: "not in memory")
          }
          let isSame = UnsafeBufferPointer(start: mine, count: count).elementsEqual(
            UnsafeBufferPointer(start: others, count: count))
          try hold(isSame, "other pixels")
        }
      })
    #expect(decoded > 100)
  }
}
