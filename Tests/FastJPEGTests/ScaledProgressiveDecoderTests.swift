// ScaledProgressiveDecoderTests: progressive JPEGs beside sequential ones with equal coefficients.

import Core
import TestSupport
import Testing

@testable import FastJPEG

@Suite(.onOwnThreads) struct ScaledProgressiveDecoderTests {
  private static let kinds: [(colors: TestImages.JPEGColors, sampling: (across: Int, down: Int))] =
    [
      (.ycc, (1, 1)), (.ycc, (2, 1)), (.ycc, (1, 2)), (.ycc, (2, 2)), (.grey, (1, 1)),
    ]

  @Test(arguments: 1...4, kinds.indices)
  func `the same coefficients give the same pixels, whichever way they are coded`(
    eighths: Int, kind: Int
  ) throws {
    let (colors, sampling) = Self.kinds[kind]
    for (width, height) in [(1, 1), (33, 8), (7, 41), (150, 97)] {
      let scene = Self.noisy(width: width, height: height, bands: colors == .grey ? 1 : 3)
      for (quality, restartInterval) in [(95, 0), (60, 3)] {
        // Given: libjpeg quantizes both alike; the progressive one refines coefficients by bits
        let files = try [false, true].map { progressive in
          try TestImages.jpeg(
            scene, as: colors, sampling: sampling, progressive: progressive, quality: quality,
            restartInterval: restartInterval)
        }
        // When
        let sequential = try #require(try JPEGDecoders.reduced(files[0], toEighths: eighths))
        let progressive = try #require(try JPEGDecoders.progressive(files[1], toEighths: eighths))
        // Then
        #expect(progressive.size == sequential.size)
        #expect(progressive.values == sequential.values, "\(width)x\(height), quality \(quality)")
      }
    }
  }

  @Test func `other kinds and incomplete files are left to libjpeg`() throws {
    let scene = Self.noisy(width: 61, height: 45)
    let progressive = try TestImages.jpeg(scene, as: .ycc, progressive: true, quality: 90)
    #expect(try JPEGDecoders.progressive(progressive, toEighths: 4) != nil)
    // Given: RGB, arithmetic coding, inks
    let inks = Self.noisy(width: 61, height: 45, bands: 4)
    let others = [
      try TestImages.jpeg(scene, as: .rgb, progressive: true, quality: 90),
      try TestImages.jpeg(scene, as: .ycc, progressive: true, arithmetic: true, quality: 90),
      try TestImages.jpeg(inks, as: .ycck, progressive: true, quality: 90),
    ]
    for (index, other) in others.enumerated() {
      #expect(try JPEGDecoders.progressive(other, toEighths: 4) == nil, "\(index)")
    }
    // Given: the last scan is missing, which libjpeg makes up for by smoothing
    let scans = progressive.indices.filter {
      progressive[$0] == 0xff && $0 + 1 < progressive.count && progressive[$0 + 1] == 0xda
    }
    let last = try #require(scans.last)
    let incomplete = Array(progressive[..<last]) + [0xff, 0xd9]
    #expect(try JPEGDecoders.progressive(incomplete, toEighths: 4) == nil)
    // Given: cut in the middle
    let half = Array(progressive[..<(progressive.count / 2)])
    #expect(try JPEGDecoders.progressive(half, toEighths: 4) == nil)
  }

  private static func noisy(width: Int, height: Int, bands: Int = 3) -> Pixels {
    var generator = SeededGenerator(seed: UInt64(width * bands))
    return Pixels(width: width, height: height, bands: bands) { x, y in
      (0..<bands).map { band in
        UInt8((x * 3 + y * 2 + band * 40) % 200) + UInt8.random(in: 0...55, using: &generator)
      }
    }
  }
}
