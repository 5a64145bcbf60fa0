// JPEGDamageTests: damaged JPEGs that the reducer accepts decode alike with libjpeg.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JPEGDamageTests {
  @Test(arguments: [0, 3])
  func `cut anywhere it is never taken for whole`(restartInterval: Int) throws {
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

  @Test func `what comes after its end changes nothing, what comes before is for libjpeg`() throws {
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
  func `codes that libjpeg refuses are refused, unless no scan uses them`(kind: String) throws {
    // given: the file's long codes, followed by codes that the file does not use
    var jpeg = Self.jpeg()
    jpeg.hasLongCodes = true
    let (head, length, symbols): (UInt8, Int, [UInt8]) =
      switch kind {
      case "ones alone": (0, 12, CodedJPEG.meanSymbols + [UInt8](repeating: 0, count: 12))
      case "a mean of 16 bits": (0, 12, CodedJPEG.meanSymbols + [16])
      default: (0x10, 16, CodedJPEG.symbols + [UInt8](repeating: 0, count: 95))
      }
    let counts = (1...16).map { $0 <= 8 ? 1 : $0 == length ? UInt8(symbols.count - 8) : 0 }
    let table = CodedJPEG.segment(0xc4, [head] + counts + symbols)
    // when
    var used = jpeg.bytes
    used.insert(contentsOf: table, at: try #require(Self.segments(of: used).last).lowerBound)
    var unused = jpeg.bytes
    unused.insert(contentsOf: table, at: 2)
    // then
    #expect(JPEGDecoders.libjpeg(used, by: 4) == nil)
    #expect(try JPEGDecoders.reduced(used, by: 4) == nil)
    #expect((JPEGDecoders.libjpeg(unused, by: 4) == nil) == (kind == "more than 256"))
    #expect((try JPEGDecoders.reduced(unused, by: 4) == nil) == (kind == "more than 256"))
  }

  @Test func `units of more than ten blocks are refused`() throws {
    var generator = SeededGenerator(seed: 1)
    let bytes = CodedJPEG(
      width: 64, height: 64, factors: [(4, 2), (2, 1), (1, 1)], using: &generator
    ).bytes
    #expect(JPEGDecoders.libjpeg(bytes, by: 8) == nil)
    #expect(try JPEGDecoders.reduced(bytes, by: 8) == nil)
  }

  @Test(arguments: JPEGSamplingTests.kinds.indices)
  func `damage is left to libjpeg or comes out as from it`(kind: Int) throws {
    var generator = SeededGenerator(seed: UInt64(100 + kind))
    var (both, damagedBoth) = (0, 0)
    for round in 0..<40 {
      // given
      var jpeg = CodedJPEG(
        width: Int.random(in: 8...70, using: &generator),
        height: Int.random(in: 8...70, using: &generator), factors: JPEGSamplingTests.kinds[kind],
        using: &generator)
      jpeg.restartInterval = [0, 0, 1, 5][round % 4]
      jpeg.hasLongCodes = Bool.random(using: &generator)
      var bytes = jpeg.bytes
      for _ in 0..<[0, 1, 1, 2][round % 4] { Self.damage(&bytes, using: &generator) }
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
        (both, damagedBoth) = (both + 1, damagedBoth + (round.isMultiple(of: 4) ? 0 : 1))
        #expect(ours.bands == libjpeg.bands)
        // A damaged quantization table may amplify details that only libjpeg's averages show.
        guard bytes.starts(with: jpeg.bytes.prefix(71)) else { continue }
        #expect(Self.difference(ours, libjpeg) < 16)
      }
    }
    #expect(both > 20 && damagedBoth > 0)
  }

  // MARK: Damage

  private static func jpeg() -> CodedJPEG {
    var generator = SeededGenerator(seed: 2)
    return CodedJPEG(width: 48, height: 40, factors: [(2, 2), (1, 1), (1, 1)], using: &generator)
  }

  /// Returns the segments up to the scan header.
  private static func segments(of bytes: [UInt8]) -> [Range<Int>] {
    var segments: [Range<Int>] = []
    var start = 2
    while start + 4 <= bytes.count, bytes[start] == 0xff {
      let end = start + 2 + Int(bytes[start + 2]) << 8 + Int(bytes[start + 3])
      guard end <= bytes.count else { break }
      segments.append(start..<end)
      if bytes[start + 1] == 0xda { break }
      start = end
    }
    return segments
  }

  /// Changes, cuts, inserts or removes bytes, a whole segment, or a marker.
  private static func damage(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
    let segments = segments(of: bytes)
    guard let segment = segments.randomElement(using: &generator), bytes.count > 8 else { return }
    let place = Int.random(in: 2..<bytes.count, using: &generator)
    let byte = UInt8.random(in: 0...255, using: &generator)
    switch Int.random(in: 0..<10, using: &generator) {
    case 0: bytes[place] = byte
    case 1: bytes[place] ^= 1 << (byte % 8)
    case 2: bytes.removeLast(bytes.count - place)
    case 3: bytes.removeLast(Int(byte % 6) + 1)
    case 4: bytes.insert(byte, at: place)
    case 5: bytes.removeSubrange(place..<min(place + 1 + Int(byte % 4), bytes.count))
    case 6:
      let copy = Array(bytes[segment])
      bytes.insert(
        contentsOf: copy, at: segments.randomElement(using: &generator)?.lowerBound ?? 2)
    case 7: bytes.removeSubrange(segment)
    case 8:
      bytes[Int.random(in: segment, using: &generator)] = [0, 1, 0x11, 0x22, 0x41, 255][place % 6]
    default: bytes.insert(contentsOf: [0xff, 0xd0 + byte % 13], at: place)
    }
  }

  /// Returns the mean difference of pixels where neither image is clipped. Clipped pixels are not
  /// comparable: libjpeg clamps before and after the colour conversion, the reducer only after.
  private static func difference(_ ours: Pixels, _ libjpeg: Pixels) -> Double {
    var (sum, count) = (0, 0)
    for y in 0..<libjpeg.size.height {
      for x in 0..<libjpeg.size.width {
        let (one, other) = (ours[x, y], libjpeg[x, y])
        guard (one + other).allSatisfy({ 0 < $0 && $0 < 255 }) else { continue }
        sum += zip(one, other).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
        count += one.count
      }
    }
    return count < 40 ? 0 : Double(sum) / Double(count)
  }
}
