// JPEGFuzzInput: JPEGs of many kinds, damaged by a seed.

import Model
import TestSupport

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
