// JPEGPartsTests: parts of the codes that are read at the same time.

import Model
import TestSupport
import Testing

@testable import FastJPEG

/// `JPEGDecoders.reduced` compares the pixels of one and of several threads for each JPEG of this target's tests.
@Suite(.onOwnThreads) struct JPEGPartsTests {
  /// A scene with details, so that there are codes of all lengths.
  private static func noisy(width: Int, height: Int) -> Pixels {
    var pixels = Pixels.scene(width: width, height: height)
    var generator = SeededGenerator(seed: 5)
    for index in pixels.values.indices {
      pixels.values[index] = UInt8(
        clamping: Int(pixels.values[index]) + Int.random(in: -20...20, using: &generator))
    }
    return pixels
  }

  private func found(_ bytes: [UInt8], parts: Int) throws -> [(part: Int, units: Range<Int>)]? {
    try GuardedBytes(bytes).withBytes { buffer in
      guard let decoder = ScaledJPEGDecoder(buffer, eighths: 3) else { return nil }
      let codes = decoder.frame.start..<decoder.endOfCodes(of: buffer)
      return decoder.runs(of: buffer, codes: codes, parts: parts, by: Order.last.run)?.map {
        ($0.part.start, $0.units)
      }
    }
  }

  @Test(arguments: [
    "Q=85", "Q=30,optimize_coding", "Q=95,subsample_mode=off", "Q=85,restart_interval=16",
    "Q=85,restart_interval=1,optimize_coding",
  ])
  func `each part is read once its codes are in step with those before`(options: String) throws {
    for pixels in [Self.noisy(width: 1_201, height: 803), .scene(width: 1_201, height: 803)] {
      let jpeg = try TestImages.encode(pixels, as: ".jpg[\(options)]")
      for parts in 2...4 {
        let runs = try #require(try found(jpeg, parts: parts))
        #expect(runs.count == parts)
        let units = runs.reduce(0) { $0 + $1.units.count }
        #expect(units == (options.contains("off") ? 151 * 101 : 76 * 51))
      }
      _ = try #require(try JPEGDecoders.reduced(jpeg, toEighths: 3))
    }
  }

  @Test func `codes fall into step soon`() throws {
    // Given: the second half, read alone
    let jpeg = try TestImages.encode(
      Self.noisy(width: 1_201, height: 803), as: ".jpg[Q=85]")
    try GuardedBytes(jpeg).withBytes { buffer in
      guard let decoder = ScaledJPEGDecoder(buffer, eighths: 1) else {
        Issue.record("the decoder leaves it to libjpeg")
        return
      }
      let (frame, units) = (decoder.frame, decoder.units.across * decoder.units.down)
      for place in stride(from: 0.1, to: 0.9, by: 0.1) {
        let start = frame.start + Int(Double(buffer.count - frame.start) * place)
        func part(at start: Int, isFirst: Bool) -> JPEGPart? {
          JPEGPart(
            buffer, at: start, frame: frame, bases: decoder.bases, restart: 0, isFirst: isFirst)
        }
        let second = try #require(
          part(at: JPEGPart.firstByte(from: start, in: buffer), isFirst: false))
        second.read(limit: units, next: nil)
        // When
        let first = try #require(part(at: frame.start, isFirst: true))
        first.read(limit: units, next: second)
        // Then
        #expect(try #require(first.joint) < 1_000)
        #expect(JPEGRun.joined([first, second], units: units)?.count == 2)
      }
    }
  }

  @Test func `codes of one length never fall into step, and are read all the same`() throws {
    var generator = SeededGenerator(seed: 8)
    let jpeg = CodedJPEG(width: 600, height: 400, factors: [(1, 1)], using: &generator)
    #expect(try JPEGDecoders.reduced(jpeg.bytes, toEighths: 2) != nil)
  }

  @Test func `what follows the image is no part of it`() throws {
    let jpeg = try TestImages.encode(Self.noisy(width: 400, height: 300), as: ".jpg[Q=85]")
    for tail in [[UInt8](repeating: 0, count: 50_000), jpeg, [0xff]] {
      let pixels = try JPEGDecoders.reduced(jpeg + tail, toEighths: 2)
      #expect(try pixels?.values == JPEGDecoders.reduced(jpeg, toEighths: 2)?.values)
    }
  }

  /// A grey JPEG whose blocks are all of one colour each, with codes of 1 to 7 bits for their means and of one bit for the
  /// rest: many bytes of ones, and many units in a byte.
  private static func flat(units: Int, using generator: inout SeededGenerator) -> [UInt8] {
    var bits: [Int] = []
    func put(_ number: Int, _ count: Int) {
      for place in (0..<count).reversed() { bits.append(number >> place & 1) }
    }
    var mean = 0
    for _ in 0..<units {
      // The category: so many ones, then a zero, then so many bits of the difference (T.81, table F.1).
      var category = Bool.random(using: &generator) ? 0 : Int.random(in: 0...6, using: &generator)
      var raw = category == 0 ? 0 : Int.random(in: 0..<1 << category, using: &generator)
      let difference =
        category == 0 ? 0 : raw < 1 << (category - 1) ? raw - (1 << category) + 1 : raw
      if abs(mean + difference) > 1_000 { (category, raw) = (0, 0) } else { mean += difference }
      for _ in 0..<category { bits.append(1) }
      bits.append(0)
      put(raw, category)
      // The end of the block
      bits.append(0)
    }
    while !bits.count.isMultiple(of: 8) { bits.append(1) }
    let codes = stride(from: 0, to: bits.count, by: 8).flatMap { start -> [UInt8] in
      let byte = bits[start..<start + 8].reduce(0) { $0 << 1 | UInt8($1) }
      return byte == 0xff ? [0xff, 0] : [byte]
    }
    let (width, height) = (8 * units, 8)
    func big(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 255)] }
    return [0xff, 0xd8]
      + CodedJPEG.segment(0xdb, content: [0] + [UInt8](repeating: 1, count: 64))
      + CodedJPEG.segment(0xc0, content: [8] + big(height) + big(width) + [1, 1, 0x11, 0])
      + CodedJPEG.segment(
        0xc4,
        content: [0] + [1, 1, 1, 1, 1, 1, 1] + [UInt8](repeating: 0, count: 9)
          + [0, 1, 2, 3, 4, 5, 6])
      + CodedJPEG.segment(0xc4, content: [0x10, 1] + [UInt8](repeating: 0, count: 15) + [0])
      + CodedJPEG.segment(0xda, content: [1, 1, 0, 0, 63, 0]) + codes + [0xff, 0xd9]
  }

  @Test func `the zero after a byte of ones is no code`() throws {
    var generator = SeededGenerator(seed: 11)
    for _ in 0..<300 {
      let units = Int.random(in: 40...400, using: &generator)
      let jpeg = Self.flat(units: units, using: &generator)
      #expect(try JPEGDecoders.reduced(jpeg, toEighths: 1) != nil)
    }
  }

  @Test func `codes without an error that are not in step end with those in front of them`() throws
  {
    // Given: codes of one bit, and bytes of ones between them
    var generator = SeededGenerator(seed: 12)
    for _ in 0..<300 {
      var jpeg = Self.flat(units: 200, using: &generator)
      let place = Int.random(in: 180..<jpeg.count - 4, using: &generator)
      jpeg.replaceSubrange(place..<place + 3, with: [0xff, 0, 0x80])
      // When, then: one and several threads agree
      _ = try JPEGDecoders.reduced(jpeg, toEighths: 1)
    }
  }

  @Test(arguments: [1, 4])
  func `a restart before the end marker leaves the JPEG to libjpeg`(interval: Int) throws {
    var generator = SeededGenerator(seed: 13)
    for units in [interval * 8, interval * 40] {
      var jpeg = CodedJPEG(width: 8 * units, height: 8, factors: [(1, 1)], using: &generator)
      jpeg.restartInterval = interval
      var bytes = jpeg.bytes
      #expect(try JPEGDecoders.reduced(bytes, toEighths: 1) != nil)
      bytes.insert(
        contentsOf: [0xff, 0xd0 + UInt8((units / interval - 1) % 8)], at: bytes.count - 2)
      #expect(try JPEGDecoders.reduced(bytes, toEighths: 1) == nil)
    }
  }
}
