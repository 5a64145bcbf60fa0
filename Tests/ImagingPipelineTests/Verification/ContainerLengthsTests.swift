// ContainerLengthsTests: false lengths in containers are detected before decoding.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct ContainerLengthsTests {
  static let kinds = [
    "jpeg", "progressive", "png", "gif", "webp", "animated webp", "tiff", "avif", "heic", "jxl",
    "jp2", "svg",
  ]

  private func failure(_ bytes: [UInt8], _ failOn: FailOn = .warning) -> ImageError? {
    var limits = ImagingLimits()
    limits.failOn = failOn
    return failure(bytes, limits)
  }

  private func failure(_ bytes: [UInt8], _ limits: ImagingLimits) -> ImageError? {
    bytes.withUnsafeBytes { bytes in
      guard let format = FormatSigns.format(of: bytes) else { return nil }
      do throws(ImageError) {
        try ContainerLengths.check(bytes, as: format, limits)
        return nil
      } catch {
        return error
      }
    }
  }

  private func claimsTooMuch(_ error: ImageError?) -> Bool {
    error?.code == "undecodable" && error?.logDetail?.contains(" claims ") == true
  }

  @Test(arguments: kinds)
  func `what is whole passes, with or without something behind it`(kind: String) throws {
    let whole = try HostileTests.source(kind)
    #expect(failure(whole) == nil)
    #expect(failure(whole + [UInt8](repeating: 0, count: 99)) == nil)
  }

  @Test(arguments: ["png", "gif", "webp", "animated webp", "tiff", "avif", "heic", "jp2"])
  func `what is cut short does not, for a description either`(kind: String) throws {
    let whole = try HostileTests.source(kind)
    for share in [0.3, 0.6, 0.95] {
      let part = Array(whole.prefix(Int(Double(whole.count) * share)))
      #expect(failure(part) != nil, "\(share)")
      // If all damage is tolerated the file is decoded; a TIFF's directory is at its end.
      #expect(failure(part, .truncated) != nil, "\(share)")
      #expect(failure(part, .none) == nil || kind == "tiff", "\(share)")
      #expect(Made.error(part) { $0.product = .info(nil) }?.code == "undecodable", "\(share)")
    }
  }

  @Test(arguments: ["tEXt", "zTXt", "iTXt", "sPLT", "iCCP", "eXIf", "PLTE", "IDAT", "abCd"])
  func `a PNG of 57 bytes whose chunk claims two gigabytes is refused at once`(name: String) throws
  {
    // Given
    let header = CodedPNG.chunk("IHDR", CodedPNG.big(9, 4) + CodedPNG.big(9, 4) + [8, 2, 0, 0, 0])
    let bytes: [UInt8] =
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + header + CodedPNG.big(0x7fff_ffff, 4)
      + Array(name.utf8) + [UInt8](repeating: 0x41, count: 16)
    #expect(bytes.count == 57)
    // When, then
    #expect(claimsTooMuch(Made.error(bytes)))
    #expect(claimsTooMuch(Made.error(bytes) { $0.product = .info(nil) }))
    // No level of tolerance allows an allocation of that size.
    #expect(claimsTooMuch(failure(bytes, .none)))
    // The same holds within an icon.
    let icon: [UInt8] =
      [0, 0, 1, 0, 1, 0, 9, 9, 0, 0, 1, 0, 32, 0, 57, 0, 0, 0, 22, 0, 0, 0] + bytes
    #expect(Made.error(icon)?.code == "undecodable")
  }

  /// Returns the offset of a text.
  private func place(of text: String, in bytes: [UInt8]) throws -> Int {
    try #require(bytes.indices.first { bytes[$0...].starts(with: text.utf8) })
  }

  @Test func `a WebP whose file or chunk claims more than there is is refused`() throws {
    let whole = try HostileTests.source("webp")
    for (offset, change) in [(4, 2), (6, 1), (7, 0x7f)] {
      var bytes = whole
      bytes[offset] = UInt8(truncatingIfNeeded: Int(bytes[offset]) + change)
      #expect(claimsTooMuch(failure(bytes)), "byte \(offset)")
    }
    var chunk = whole
    chunk[try place(of: "VP8", in: whole) + 7] = 0x7f
    #expect(claimsTooMuch(failure(chunk)))
  }

  @Test(arguments: [
    ("avif", ["meta", "mdat", "ispe"]), ("heic", ["meta", "hvcC"]), ("jp2", ["jp2h", "jp2c"]),
  ])
  func `a box that claims more than there is is refused`(kind: String, boxes: [String]) throws {
    let whole = try HostileTests.source(kind)
    for box in boxes {
      var bytes = whole
      bytes[try place(of: box, in: whole) - 4] = 0x7f
      #expect(claimsTooMuch(failure(bytes)), "\(box)")
    }
  }

  @Test func `a TIFF whose tag claims more values than there are is refused`() throws {
    // Given: the first entry with values outside the entry, in the first directory
    let whole = try TestImages.tiff(width: 90, height: 60)
    #expect(whole.starts(with: "II".utf8))
    func number(_ place: Int, _ width: Int) -> Int {
      whole[place..<place + width].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let directory = number(4, 4)
    for index in 0..<number(directory, 2) {
      var bytes = whole
      // The highest byte of its count.
      bytes[directory + 2 + 12 * index + 7] = 0x7f
      // When, then
      #expect(claimsTooMuch(failure(bytes)), "entry \(index)")
    }
  }

  @Test func `a JPEG 2000 whose tile claims more than there is, or that has countless, is refused`()
    throws
  {
    let whole = try TestImages.encode(.scene(width: 120, height: 90), ".jp2")
    func marker(_ low: UInt8) throws -> Int {
      try #require(whole.indices.first { whole[$0...].starts(with: [0xff, low]) })
    }
    var long = whole
    long[try marker(0x90) + 6] = 0x7f
    #expect(claimsTooMuch(failure(long)))
    // Tiles of a single pixel: 10,800
    var tiles = whole
    let size = try marker(0x51) + 22
    tiles.replaceSubrange(size..<size + 8, with: [0, 0, 0, 1, 0, 0, 0, 1])
    #expect(failure(tiles)?.code == "too_costly")
    var limits = ImagingLimits()
    limits.maximumPixels = 10_000
    #expect(failure(tiles, limits) == .tooManyPixels(pixels: 10_800, limit: 10_000))
  }
}
