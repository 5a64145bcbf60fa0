// JPEGDamageTests: damaged JPEGs that the scaled decoder accepts decode alike with libjpeg.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JPEGDamageTests {
  @Test(arguments: [0, 3])
  func `a truncated JPEG is never decoded`(restartInterval: Int) throws {
    // given
    var generator = SeededGenerator(seed: 1)
    var jpeg = CodedJPEG(
      width: 40, height: 24, factors: [(2, 1), (1, 1), (1, 1)], using: &generator)
    jpeg.restartInterval = restartInterval
    let whole = jpeg.bytes
    // when, then
    #expect(try JPEGDecoders.reduced(whole, by: 8) != nil)
    for length in whole.indices {
      #expect(try JPEGDecoders.reduced(Array(whole.prefix(length)), by: 8) == nil)
    }
  }

  @Test
  func `bytes after the end marker are ignored, and bytes before it leave the JPEG to libjpeg`()
    throws
  {
    let whole = Self.jpeg().bytes
    let plain = try #require(try JPEGDecoders.reduced(whole, by: 4))
    let followed = try #require(try JPEGDecoders.reduced(whole + whole, by: 4))
    #expect(followed.values == plain.values)
    func with(_ more: [UInt8]) -> [UInt8] { whole.dropLast(2) + more + whole.suffix(2) }
    for more: [UInt8] in [[0x55], [0xff, 0xd0], [0, 0, 0, 0, 0, 0, 0, 0, 0]] {
      #expect(try JPEGDecoders.reduced(with(more), by: 4) == nil)
    }
    // Fill bytes may precede any marker (T.81, B.1.1.2).
    #expect(try JPEGDecoders.reduced(with([0xff, 0xff]), by: 4)?.values == plain.values)
  }

  @Test(arguments: ["ones alone", "a mean of 16 bits", "more than 256"])
  func `Huffman codes that libjpeg refuses are refused, unless no scan uses them`(kind: String)
    throws
  {
    // given
    let table = Self.refusedTable(kind)
    let jpeg = Self.jpegWithLongCodes()
    // when
    let used = try Self.inserting(table, beforeScanOf: jpeg)
    var unused = jpeg
    unused.insert(contentsOf: table, at: 2)
    // then
    #expect(JPEGDecoders.libjpeg(used, by: 4) == nil)
    #expect(try JPEGDecoders.reduced(used, by: 4) == nil)
    #expect((JPEGDecoders.libjpeg(unused, by: 4) == nil) == (kind == "more than 256"))
    #expect((try JPEGDecoders.reduced(unused, by: 4) == nil) == (kind == "more than 256"))
  }

  @Test func `a refusal by libjpeg is never lost while other threads decode`() async throws {
    // given
    let refused = try Self.inserting(
      Self.refusedTable("ones alone"), beforeScanOf: Self.jpegWithLongCodes())
    // when: eight threads, because libvips lost a refusal only if its own threads were late
    let decoded = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask { (0..<50).count { _ in JPEGDecoders.libjpeg(refused, by: 4) != nil } }
      }
      return await group.reduce(0, +)
    }
    // then
    #expect(decoded == 0)
  }

  @Test func `MCUs of more than ten blocks are refused`() throws {
    var generator = SeededGenerator(seed: 1)
    let bytes = CodedJPEG(
      width: 64, height: 64, factors: [(4, 2), (2, 1), (1, 1)], using: &generator
    ).bytes
    #expect(JPEGDecoders.libjpeg(bytes, by: 8) == nil)
    #expect(try JPEGDecoders.reduced(bytes, by: 8) == nil)
  }

  @Test(arguments: CodedJPEG.samplings.indices)
  func `damaged JPEGs are left to libjpeg or decoded as libjpeg does`(kind: Int) throws {
    var generator = SeededGenerator(seed: UInt64(100 + kind))
    var both = 0
    var damagedBoth = 0
    for round in 0..<40 {
      // given
      var jpeg = CodedJPEG(
        width: Int.random(in: 8...70, using: &generator),
        height: Int.random(in: 8...70, using: &generator), factors: CodedJPEG.samplings[kind],
        using: &generator)
      jpeg.restartInterval = [0, 0, 1, 5][round % 4]
      jpeg.hasLongCodes = Bool.random(using: &generator)
      var bytes = jpeg.bytes
      for _ in 0..<[0, 1, 1, 2][round % 4] { JPEGDamage.apply(to: &bytes, using: &generator) }
      for shrink in [2, 4, 8] {
        // when
        guard let ours = try JPEGDecoders.reduced(bytes, by: shrink),
          // libvips does not open narrower images.
          ours.size.width > 1, ours.size.height > 1
        else { continue }
        // then
        guard let libjpeg = JPEGDecoders.libjpeg(bytes, by: shrink) else {
          Issue.record("libjpeg refuses round \(round)")
          continue
        }
        both += 1
        damagedBoth += round.isMultiple(of: 4) ? 0 : 1
        #expect(ours.bands == libjpeg.bands)
        // A damaged quantization table may amplify details that only libjpeg's averages show.
        guard bytes.starts(with: jpeg.bytes.prefix(71)) else { continue }
        #expect(JPEGDecoders.difference(ours, to: libjpeg) < 16)
      }
    }
    #expect(both > 20 && damagedBoth > 0)
  }

  /// Returns a segment of Huffman codes that libjpeg refuses: the file's long codes, followed by
  /// codes that the file does not use.
  private static func refusedTable(_ kind: String) -> [UInt8] {
    let (head, length, symbols): (UInt8, Int, [UInt8]) =
      switch kind {
      case "ones alone": (0, 12, CodedJPEG.meanSymbols + [UInt8](repeating: 0, count: 12))
      case "a mean of 16 bits": (0, 12, CodedJPEG.meanSymbols + [16])
      default: (0x10, 16, CodedJPEG.symbols + [UInt8](repeating: 0, count: 95))
      }
    let counts = (1...16).map { $0 <= 8 ? 1 : $0 == length ? UInt8(symbols.count - 8) : 0 }
    return CodedJPEG.segment(0xc4, content: [head] + counts + symbols)
  }

  /// Inserts a segment in front of the scan, so that it replaces an earlier one of its kind.
  private static func inserting(
    _ segment: [UInt8], beforeScanOf jpeg: [UInt8]
  ) throws -> [UInt8] {
    var bytes = jpeg
    let scan = try #require(JPEGDamage.segments(of: jpeg).last)
    bytes.insert(contentsOf: segment, at: scan.lowerBound)
    return bytes
  }

  private static func jpegWithLongCodes() -> [UInt8] {
    var jpeg = jpeg()
    jpeg.hasLongCodes = true
    return jpeg.bytes
  }

  private static func jpeg() -> CodedJPEG {
    var generator = SeededGenerator(seed: 2)
    return CodedJPEG(width: 48, height: 40, factors: [(2, 2), (1, 1), (1, 1)], using: &generator)
  }
}
