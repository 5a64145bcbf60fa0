// JPEGFindings: files that once showed a fault, or that lie at the edge of what is decoded.

import TestSupport

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
        var bytes = plain().bytes
        if let frame = JPEGDamage.segments(of: bytes).first(where: {
          bytes[$0.lowerBound + 1] == 0xc0
        }) {
          bytes.replaceSubrange(
            frame.lowerBound + 5..<frame.lowerBound + 9, with: [255, 255, 255, 255])
        }
        return bytes
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
        var bytes = plain().bytes
        if let frame = JPEGDamage.segments(of: bytes).first(where: {
          bytes[$0.lowerBound + 1] == 0xc0
        }) {
          bytes[frame.lowerBound + 4] = 12
        }
        return bytes
      }, isDecoded: false),
  ]
}
