// JPEGCheckTests: damage of pixels is detected, harmless oddities are not.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JPEGCheckTests {
  private static func soundness(of bytes: [UInt8]) -> Soundness {
    bytes.withUnsafeBytes { Soundness(of: $0, as: .jpeg) }
  }

  private static func jpeg(_ options: String) throws -> [UInt8] {
    try TestImages.encode(DamagedKind.textured(width: 131, height: 77), as: ".jpg[\(options)]")
  }

  private static let kinds = [
    "Q=85", "Q=85,interlace", "Q=30,optimize_coding", "Q=95,interlace,subsample_mode=off",
    "Q=85,restart_interval=3", "Q=85,interlace,restart_interval=5",
  ]

  /// Returns where the coded data of the last scan starts, and where the end marker is.
  private static func lastScan(of bytes: [UInt8]) throws -> (start: Int, end: Int) {
    let start = try #require(
      bytes.indices.dropLast().last { bytes[$0] == 0xff && bytes[$0 + 1] == 0xda })
    return (start + 2 + Int(bytes[start + 2]) << 8 + Int(bytes[start + 3]), bytes.count - 2)
  }

  @Test(arguments: kinds)
  func `an intact JPEG is accepted`(options: String) throws {
    #expect(Self.soundness(of: try Self.jpeg(options)) == .whole)
  }

  @Test func `an intact JPEG of any sampling and number of bands is accepted`() throws {
    var generator = SeededGenerator(seed: 5)
    for factors in CodedJPEG.samplings {
      for interval in [0, 1, 7] {
        // Given
        var jpeg = CodedJPEG(width: 61, height: 43, factors: factors, using: &generator)
        jpeg.restartInterval = interval
        jpeg.hasLongCodes = interval == 1
        // Then
        #expect(Self.soundness(of: jpeg.bytes) == .whole)
      }
    }
    #expect(
      Self.soundness(of: try TestImages.cmyk(.scene(width: 60, height: 40), as: ".jpg[Q=90]"))
        == .whole
    )
  }

  /// Returns the pixels as PNG has them.
  private static func made(_ source: [UInt8], width: Int?) throws -> [UInt8] {
    try Made(source, width: width, format: .png).pixels().values
  }

  private static let strayBytes: [[UInt8]] = [
    [0], [0x55], [0x12, 0x34], [0, 0, 0, 0], [0xa5, 0x3c, 0x17], [0xff, 0, 0x41],
    [UInt8](repeating: 0, count: 3_000), [UInt8](repeating: 0xff, count: 100),
  ]

  @Test(arguments: kinds, [nil, 40])
  func `stray bytes before any marker are harmless`(options: String, width: Int?) throws {
    // Given
    let whole = try Self.jpeg(options)
    let expected = try Self.made(whole, width: width)
    for stray in Self.strayBytes {
      // When: before the end, each restart, each table and each scan behind the first
      let scan = try #require(
        whole.indices.dropLast().first { whole[$0] == 0xff && whole[$0 + 1] == 0xda })
      var padded = Array(whole[..<(scan + 2)])
      // With 198 stray markers, a progressive JPEG with restarts is refused during its decoding.
      var count = 0
      for index in whole.indices[(scan + 2)...] {
        let next = index + 1 < whole.count ? whole[index + 1] : 0
        if whole[index] == 0xff, [0xc4, 0xd9, 0xda].contains(next) || (0xd0...0xd7).contains(next) {
          count += 1
          if count <= 40 { padded += stray }
        }
        padded.append(whole[index])
      }
      // Then
      #expect(Self.soundness(of: padded) == .whole, "\(stray.prefix(4))")
      // A reduced one is left to libjpeg, whose rounding differs.
      let made = try Self.made(padded, width: width)
      let most = zip(made, expected).map { abs(Int($0) - Int($1)) }.max() ?? 0
      #expect(most <= (width == nil ? 0 : 6), "\(stray.prefix(4))")
    }
  }

  @Test(arguments: kinds.prefix(4))
  func `more data than blocks counts as damage`(options: String) throws {
    // Given: the header promises fewer rows than the data has
    var bytes = try Self.jpeg(options)
    let frame = try #require(
      bytes.indices.dropLast().first { bytes[$0] == 0xff && [0xc0, 0xc2].contains(bytes[$0 + 1]) })
    bytes[frame + 6] = 40
    // Then
    #expect(Made.isUndecodable(bytes) { $0.width = nil })
  }

  @Test(arguments: kinds, [nil, 40])
  func `data that ends before its last block counts as damage`(options: String, width: Int?) throws
  {
    // Given
    let whole = try Self.jpeg(options)
    let scan = try Self.lastScan(of: whole)
    for lost in [3, 20, 60] where scan.end - lost > scan.start {
      // When: only coded data is removed
      let bytes = whole[..<(scan.end - lost)] + whole[scan.end...]
      // Then
      #expect(Made.isUndecodable(Array(bytes)) { $0.width = width }, "\(lost)")
    }
  }

  @Test(arguments: ["Q=85,restart_interval=3", "Q=85,interlace,restart_interval=5"], [nil, 40])
  func `data that does not end at its restart marker counts as damage`(options: String, width: Int?)
    throws
  {
    // Given
    let whole = try Self.jpeg(options)
    let scan = try Self.lastScan(of: whole)
    let marker = try #require(
      (scan.start..<scan.end).first { whole[$0] == 0xff && (0xd0...0xd7).contains(whole[$0 + 1]) })
    // When
    let shorter = whole[..<(marker - 3)] + whole[marker...]
    let swapped = whole[..<marker] + [0xff, 0xd5] + whole[(marker + 2)...]
    let missing = whole[..<marker] + [0x12, 0x34] + whole[(marker + 2)...]
    // Then
    for bytes in [shorter, swapped, missing] {
      #expect(Made.isUndecodable(Array(bytes)) { $0.width = width })
    }
  }

  @Test(arguments: kinds, [nil, 40])
  func `extra data outside the scans is harmless`(options: String, width: Int?) throws {
    // Given
    let whole = try Self.jpeg(options)
    let tables = try #require(
      whole.indices.dropLast().first { whole[$0] == 0xff && whole[$0 + 1] == 0xdb })
    let others: [(String, [UInt8])] = [
      ("behind the end", whole + [1, 2, 3, 0xff, 0xda, 0]),
      ("another JPEG behind the end", whole + whole.prefix(400)),
      ("bytes between segments", whole[..<tables] + [0, 0x41, 0x42] + whole[tables...]),
      ("fill before the end marker", whole.dropLast(2) + [0xff, 0xff, 0xff, 0xd9]),
      ("a restart marker before the end", whole.dropLast(2) + [0xff, 0xd0] + whole.suffix(2)),
      (
        "an unknown segment",
        whole[..<2] + CodedJPEG.segment(0xed, content: [9, 9, 9]) + whole[2...]
      ),
      (
        "a strange JFIF",
        whole[..<2] + CodedJPEG.segment(0xe0, content: Array("JFIF\0".utf8) + [9, 9, 7])
          + whole[2...]
      ),
    ]
    for (name, bytes) in others {
      // Then
      #expect(Made.error(bytes) { $0.width = width } == nil, "\(name)")
    }
  }

  @Test(arguments: ["Q=85,restart_interval=3", "Q=85,interlace,restart_interval=5"], [nil, 40])
  func `fill bytes before a restart marker are harmless`(options: String, width: Int?) throws {
    // Given
    let whole = try Self.jpeg(options)
    var filled: [UInt8] = []
    for (index, byte) in whole.enumerated() {
      let next = index + 1 < whole.count ? whole[index + 1] : 0
      if byte == 0xff && (0xd0...0xd7).contains(next) { filled += [0xff, 0xff] }
      filled.append(byte)
    }
    #expect(filled.count > whole.count)
    // Then
    #expect(Made.error(filled) { $0.width = width } == nil)
    #expect(Self.soundness(of: filled) == .whole)
  }

  @Test func `a progressive JPEG without one of its refinements is damaged`() throws {
    // Given
    let whole = try Self.jpeg("Q=85,interlace")
    let scans = whole.indices.dropLast().filter { whole[$0] == 0xff && whole[$0 + 1] == 0xda }
    #expect(scans.count > 4)
    // When: a scan's marker is destroyed, so that its data belongs to no segment
    for scan in scans.dropFirst() {
      var bytes = whole
      bytes[scan + 1] = 0
      // Then
      #expect(Self.soundness(of: bytes) != .whole)
    }
  }

  @Test(arguments: kinds)
  func `a truncated JPEG is never accepted as intact`(options: String) throws {
    let whole = try Self.jpeg(options)
    for length in stride(from: 2, to: whole.count - 1, by: 37) {
      #expect(Self.soundness(of: Array(whole.prefix(length))) != .whole)
    }
    #expect(Made.isUndecodable(whole.dropLast(2)))
  }
}
