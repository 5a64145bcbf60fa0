// JPEGFuzzTests: damaged JPEGs never crash the decoder or the check, and both agree with libjpeg.

import FastJPEG
import Model
import TestSupport
import Testing

/// A failure names the seed. `make fuzz ONLY=JPEG` runs longer. A file that shows a fault belongs
/// into `JPEGFindings`.
@Suite(.onOwnThreads) struct JPEGFuzzTests {
  @Test func `fuzzed JPEGs are refused or decoded as libjpeg does`() throws {
    var decoded = 0
    var progressive = 0
    for seed in FuzzSeeds.run(usual: 600) {
      let bytes = try JPEGFuzzInput.bytes(seed: seed)
      decoded += try Self.check(bytes, named: "seed \(seed)")
      progressive += try Self.checkProgressive(bytes, named: "seed \(seed)")
    }
    // Otherwise the damage leaves nothing to compare.
    #expect(decoded > 0 && progressive > 0)
  }

  @Test(arguments: JPEGFindings.all.keys.sorted())
  func `each finding is decoded or refused as recorded`(name: String) throws {
    let finding = try #require(JPEGFindings.all[name])
    let bytes = finding.make()
    _ = try Self.check(bytes, named: name)
    let isDecoded = try JPEGDecoders.reduced(bytes, by: 8) != nil
    #expect(isDecoded == finding.isDecoded)
  }

  /// Returns the number of images that the decoder of progressive JPEGs made.
  private static func checkProgressive(_ bytes: [UInt8], named name: String) throws -> Int {
    var decoded = 0
    for shrink in [2, 4, 8] {
      guard let ours = try JPEGDecoders.progressive(bytes, toEighths: 8 / shrink) else { continue }
      decoded += 1
      // What is decoded was found whole while it was read.
      let verdict = try GuardedBytes(bytes).withBytes { JPEGCheck.verdict(on: $0) }
      #expect(verdict == .whole, "\(name)")
      guard ours.size.width > 1, ours.size.height > 1,
        let libjpeg = JPEGDecoders.libjpeg(bytes, by: shrink)
      else { continue }
      #expect(ours.bands == libjpeg.bands, "\(name)")
      guard JPEGFuzzInput.hasPlainQuantizers(bytes) else { continue }
      #expect(JPEGDecoders.difference(ours, to: libjpeg) < 16, "\(name)")
    }
    return decoded
  }

  /// Runs both parts on bytes that must not be read past. Returns the number of decoded images.
  private static func check(_ bytes: [UInt8], named name: String) throws -> Int {
    let verdict = try GuardedBytes(bytes).withBytes { buffer in
      JPEGMarkers.maximumFramePixels(in: buffer) < JPEGDecoders.maximumPixels
        ? JPEGCheck.verdict(on: buffer) : .unknown
    }
    var decoded = 0
    for shrink in [2, 4, 8] {
      guard let ours = try JPEGDecoders.reduced(bytes, by: shrink) else { continue }
      decoded += 1
      // The decoder accepts complete files only.
      if case .damaged(.truncated, let reason) = verdict {
        Issue.record("\(name): decoded by \(shrink), though \(reason)")
      }
      #expect(try JPEGDecoders.reduced(bytes, by: shrink)?.values == ours.values, "\(name)")
      // libvips does not open narrower images.
      guard ours.size.width > 1, ours.size.height > 1 else { continue }
      guard let libjpeg = JPEGDecoders.libjpeg(bytes, by: shrink) else {
        Issue.record("\(name): libjpeg refuses what is decoded by \(shrink)")
        continue
      }
      #expect(ours.bands == libjpeg.bands, "\(name)")
      // A damaged quantization table may amplify details that only libjpeg's averages show.
      guard JPEGFuzzInput.hasPlainQuantizers(bytes) else { continue }
      #expect(JPEGDecoders.difference(ours, to: libjpeg) < 16, "\(name)")
    }
    return decoded
  }
}
