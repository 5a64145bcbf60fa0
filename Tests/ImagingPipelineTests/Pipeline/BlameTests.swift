// BlameTests: failures are attributed to the source or to the variant.

import CVips
import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct BlameTests {
  /// The error of a failed stage after the decoder.
  private let failure = ImageError.ofVariant(.undecodable(detail: "some stage"))

  private func settled(_ bytes: [UInt8], frame: Int? = nil) throws -> ImageError {
    TestImages.start()
    return try bytes.withUnsafeBytes { bytes in
      let format = try #require(FormatSigns.format(of: bytes))
      let header = try SourceHeader(of: bytes, as: format, frame: frame, failOn: .warning)
      return Blame.settled(failure, source: bytes, header: header, frames: 1)
    }
  }

  @Test(arguments: ["jpeg", "png", "gif", "webp", "tiff", "avif", "heic", "jxl", "jp2", "svg"])
  func `a failed stage after successful decoding is an internal error`(
    kind: String
  ) throws {
    let error = try settled(try HostileTests.source(kind))
    #expect(error.code == "internal" && !error.isOfSource)
  }

  @Test(
    arguments: ["jpeg", "png", "gif", "webp", "tiff"],
    [
      { _ in }, { $0.width = 40 },
      {
        $0.rotation = .quarter
        $0.quality = 50
      },
      {
        $0.width = 20
        $0.height = 20
        $0.fit = .cover
        $0.position = .attention
      },
      { $0.limitBytes = 4_000 }, { $0.product = .placeholder(.blurhash) }, { $0.effects.blur = 2 },
      { $0.maxBytes = 900 }, { $0.trim = 1 }, { $0.format = .png },
    ] as [@Sendable (inout Transform) -> Void])
  func `an undecodable source is blamed at every stage`(
    kind: String, change: @Sendable (inout Transform) -> Void
  ) throws {
    // Given: the first half of a file
    let whole = try HostileTests.source(kind)
    // When
    let error = Made.error(Array(whole.prefix(whole.count / 2)), change: change)
    // Then: the failure is the source's, not the variant's and not internal
    #expect(error.isUndecodable, "\(kind): \(String(describing: error))")
  }

  @Test func `memory errors do not blame the source`() {
    for text in [
      "vips_tracked: out of memory --- size == 812MB", "Insufficient memory (case 4)",
      "Memory allocation error: Unspecified", "not enough memory to decode",
      "glib: Error creating thread: Resource temporarily unavailable",
    ] {
      #expect(Blame.isOfMemory(text))
    }
    for text in [
      "Invalid SOS parameters", "Memory allocation error: Security limit exceeded", "",
      "VipsIcc: Read from memory error. Got 3 bytes, block should be of 128 bytes",
    ] {
      #expect(!Blame.isOfMemory(text))
    }
  }

  @Test func `a TIFF with an empty directory is undecodable, not out of memory`() throws {
    // Given: of a TIFF with one page the directory's count as 0, from the header's last number
    var bytes = try TestImages.encode(.scene(width: 20, height: 10), as: ".tif")
    #expect(bytes.starts(with: [0x49, 0x49, 42, 0]))
    let place = (4..<8).reversed().reduce(0) { $0 << 8 | Int(bytes[$1]) }
    bytes.replaceSubrange(place..<place + 2, with: [0, 0])
    // Then
    #expect(Made.isUndecodable(bytes))
  }
}
