// ContainerFuzzTests: the walks through undecoded files: lengths, damage, stripping.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline
@testable import Managing

@Suite(.onOwnThreads) struct ContainerFuzzTests {
  /// Returns the bytes with the format in front.
  private static func make(_ generator: inout SeededGenerator) throws -> [UInt8] {
    let (format, bytes) = try FileSeeds.damaged(using: &generator)
    return [UInt8(ImageFormat.allCases.firstIndex(of: format) ?? 0)] + bytes
  }

  /// Passes the file that `make` made, without readable bytes after it.
  private static func withFile<Result>(
    _ input: [UInt8], body: (ImageFormat, UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    try GuardedBytes(Array(input.dropFirst())).withBytes {
      try body(ImageFormat.allCases[Int(input[0])], $0)
    }
  }

  @Test func `each file is sound or undecodable, and soundness does not depend on tolerance`()
    throws
  {
    var sound = 0
    var refused = 0
    try Fuzz.run("containers", usual: 3_000, make: Self.make) { input in
      try Self.withFile(input) { format, bytes in
        func error(_ failOn: FailOn) -> ImageError? {
          var limits = ImagingLimits()
          limits.failOn = failOn
          do throws(ImageError) {
            try ContainerLengths.check(bytes, as: format, limits: limits)
            return nil
          } catch {
            return error
          }
        }
        let errors = [FailOn.warning, .truncated, .none].map(error)
        let codes = ["undecodable", "unsupported_format", "too_costly", "too_many_pixels"]
        try hold(errors.allSatisfy { $0.map { codes.contains($0.code) } ?? true }, "\(errors)")
        try hold(errors[0] == errors[1], "\(errors)")
        try hold(errors[0] != nil || errors[2] == nil, "\(errors)")
        if errors[0] == nil { sound += 1 } else { refused += 1 }
        _ = FormatSigns.format(of: bytes)
        _ = TIFF.pages(of: bytes, directories: 100)
        if format != .jpeg || JPEGMarkers.maximumFramePixels(in: bytes) < 100_000 {
          _ = Soundness(of: bytes, as: format)
        }
      }
    }
    #expect(sound > 0 && refused > 0)
  }

  @Test func `more bytes never change a verdict on the first ones`() throws {
    var plain = 0
    try Fuzz.run("heads", usual: 3_000, make: Self.make) { input in
      try Self.withFile(input) { format, bytes in
        let whole = PassThroughCheck.read(bytes, as: format)
        for count in [bytes.count / 4, bytes.count / 2, max(bytes.count - 1, 0)] {
          let part = PassThroughCheck.read(
            UnsafeRawBufferPointer(rebasing: bytes[..<count]), as: format)
          try hold(part == .incomplete || part == whole, "\(count) bytes: \(part), then \(whole)")
        }
        guard case .plain(let size) = whole else { return }
        plain += 1
        try hold(size.width > 0 && size.height > 0, "\(size)")
        _ = TrailingDataCheck.isClean(bytes, as: format)
      }
    }
    #expect(plain > 0)
  }

  @Test func `a stripped file is no longer than before, clean, and stripped`() throws {
    var stripped = 0
    try Fuzz.run("stripping", usual: 3_000, make: Self.make) { input in
      try Self.withFile(input) { format, bytes in
        guard let once = Stripping.stripped(bytes, as: format) else { return }
        stripped += 1
        // A byte of padding may have been missing.
        try hold(once.count <= bytes.count + 1, "\(once.count) bytes of \(bytes.count)")
        let twice = once.withUnsafeBytes { Stripping.stripped($0, as: format) }
        try hold(twice == once, "stripped twice: \(twice?.count ?? 0) of \(once.count) bytes")
      }
    }
    #expect(stripped > 0)
  }
}
