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
      return decoder.runs(of: buffer, parts: parts)?.map { ($0.part.start, $0.units) }
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
        // A part ahead may be too late to be compared with; the part before then reads its units as well.
        #expect((1...parts).contains(runs.count))
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
          part(at: buffer[start - 1] == 0xff ? start + 1 : start, isFirst: false))
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
}
