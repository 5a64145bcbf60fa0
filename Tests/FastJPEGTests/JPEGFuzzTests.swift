// JPEGFuzzTests: damaged JPEGs never crash the decoder or the check, and both agree with libjpeg.

import Core
import FastJPEG
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

enum JPEGFuzzInput {
  /// Returns the file of a seed: written from random coefficients or by libjpeg, with up to five
  /// faults.
  static func bytes(seed: UInt64) throws -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var bytes: [UInt8]
    if seed.isMultiple(of: 4), let encoded = try encoded.get().randomElement(using: &generator) {
      bytes = encoded
    } else {
      var jpeg = CodedJPEG(
        width: Int.random(in: 1...70, using: &generator),
        height: Int.random(in: 1...70, using: &generator),
        factors: CodedJPEG.samplings.randomElement(using: &generator) ?? [(1, 1)],
        using: &generator)
      jpeg.restartInterval = [0, 0, 1, 2, 5].randomElement(using: &generator) ?? 0
      jpeg.hasLongCodes = Bool.random(using: &generator)
      bytes = jpeg.bytes
    }
    for _ in 0..<Int.random(in: 0...5, using: &generator) {
      JPEGDamage.apply(to: &bytes, using: &generator)
    }
    return bytes
  }

  /// Files by libjpeg: progressive, grey, of four inks, with optimal tables and restart markers.
  private static let encoded = Result<[[UInt8]], any Error> {
    let scene = Pixels.scene(width: 61, height: 43)
    let options = [
      "Q=85", "Q=85,interlace", "Q=30,optimize_coding", "Q=95,interlace,subsample_mode=off",
      "Q=85,restart_interval=3", "Q=85,interlace,restart_interval=5",
    ]
    return try options.map { try TestImages.encode(scene, as: ".jpg[\($0)]") }
      + [TestImages.cmyk(.scene(width: 60, height: 40, alpha: true), as: ".jpg[Q=90]")]
  }

  /// Whether each quantization table is as `CodedJPEG` or libjpeg writes it here: factors of at
  /// most 100.
  static func hasPlainQuantizers(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { buffer in
      var markers = JPEGMarkers(buffer)
      while let (marker, segment) = markers.nextSegment(), marker != 0xda {
        if marker == 0xdb, segment.count != 65 || segment.dropFirst().contains(where: { $0 > 100 })
        {
          return false
        }
      }
      return true
    }
  }
}

/// Random damage that keeps much of a JPEG's structure.
enum JPEGDamage {
  /// Returns the segments up to the scan header.
  static func segments(of bytes: [UInt8]) -> [Range<Int>] {
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
  static func apply(to bytes: inout [UInt8], using generator: inout SeededGenerator) {
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
}

/// The corpus of `JPEGFuzzTests`. The tests make the files, so that each one says what is special.
struct JPEGFindings: Sendable {
  /// Makes the file.
  let make: @Sendable () -> [UInt8]
  /// Whether the scaled decoder decodes it by 8.
  let isDecoded: Bool

  private static func plain(
    _ factors: CodedJPEG.Factors = [(2, 2), (1, 1), (1, 1)], width: Int = 24, height: Int = 24,
    change: (inout CodedJPEG) -> Void = { _ in }
  ) -> CodedJPEG {
    var generator = SeededGenerator(seed: 1)
    var jpeg = CodedJPEG(width: width, height: height, factors: factors, using: &generator)
    change(&jpeg)
    return jpeg
  }

  /// Puts bytes in front of the first segment with this marker.
  private static func inserting(
    _ more: [UInt8], before marker: UInt8, in bytes: [UInt8]
  ) -> [UInt8] {
    var bytes = bytes
    let place = JPEGDamage.segments(of: bytes).first { bytes[$0.lowerBound + 1] == marker }
    bytes.insert(contentsOf: more, at: place?.lowerBound ?? 2)
    return bytes
  }

  /// Changes a file, given the place of its frame header.
  private static func withFrame(_ change: (inout [UInt8], Int) -> Void) -> [UInt8] {
    var bytes = plain().bytes
    let frame = JPEGDamage.segments(of: bytes).first { bytes[$0.lowerBound + 1] == 0xc0 }
    if let frame { change(&bytes, frame.lowerBound) }
    return bytes
  }

  static let all: [String: JPEGFindings] = [
    "one pixel": .init(make: { plain([(1, 1)], width: 1, height: 1).bytes }, isDecoded: true),
    "only a start": .init(make: { [0xff, 0xd8] }, isDecoded: false),
    "a start and an end": .init(make: { [0xff, 0xd8, 0xff, 0xd9] }, isDecoded: false),
    "empty": .init(make: { [] }, isDecoded: false),
    "a marker at the last byte": .init(
      make: { Array(plain().bytes.dropLast()) }, isDecoded: false),
    "a segment longer than the file": .init(
      make: { inserting([0xff, 0xe1, 0xff, 0xff], before: 0xda, in: plain().bytes) },
      isDecoded: false),
    "a segment of no length": .init(
      make: { inserting([0xff, 0xe1, 0, 0], before: 0xda, in: plain().bytes) }, isDecoded: false),
    "a table of no codes": .init(
      make: {
        let table = [UInt8](repeating: 0, count: 17)
        return inserting(CodedJPEG.segment(0xc4, content: table), before: 0xda, in: plain().bytes)
      }, isDecoded: false),
    "a table of 255 codes of one bit": .init(
      make: {
        let table = [0, 255] + [UInt8](repeating: 0, count: 15 + 255)
        return inserting(CodedJPEG.segment(0xc4, content: table), before: 0xda, in: plain().bytes)
      }, isDecoded: false),
    "the longest sides with nothing in them": .init(
      make: {
        withFrame { $0.replaceSubrange($1 + 5..<$1 + 9, with: [255, 255, 255, 255]) }
      }, isDecoded: false),
    "restarts after each unit, to the ninth": .init(
      make: { plain(width: 16, height: 160) { $0.restartInterval = 1 }.bytes }, isDecoded: true),
    "coefficients to the last place": .init(
      make: {
        plain { jpeg in
          for component in jpeg.blocks.indices {
            for block in jpeg.blocks[component].indices { jpeg.blocks[component][block][63] = 1 }
          }
        }.bytes
      }, isDecoded: true),
    "samples of 12 bits": .init(
      make: {
        withFrame { $0[$1 + 4] = 12 }
      }, isDecoded: false),
  ]
}
