// ContainerCheckTests: damaged containers at each level of tolerance, and false lengths that are
// detected before decoding.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct ContainerCheckTests {
  private static func limits(_ failOn: FailOn) -> ImagingLimits {
    ImagingLimits { $0.failOn = failOn }
  }

  // MARK: GIF

  private static func animation(frames: Int) throws -> [UInt8] {
    try TestImages.animation(
      (0..<frames).map { DamagedKind.textured(width: 40, height: 30, seed: UInt64($0)) },
      as: ".gif")
  }

  /// Returns the offset of each frame.
  private static func frames(of bytes: [UInt8]) -> [Int] {
    var starts = [Int]()
    var position = 13
    func skipColours(_ flags: UInt8) {
      if flags & 0x80 != 0 { position += 3 << (Int(flags & 7) + 1) }
    }
    func skipBlocks() {
      while bytes[position] != 0 { position += 1 + Int(bytes[position]) }
      position += 1
    }
    skipColours(bytes[10])
    while bytes[position] != 0x3b {
      if bytes[position] == 0x21 {
        position += 2
        skipBlocks()
      } else {
        starts.append(position)
        let flags = bytes[position + 9]
        position += 10
        skipColours(flags)
        position += 1
        skipBlocks()
      }
    }
    return starts
  }

  @Test func `a truncated animation is never accepted as a shorter one`() throws {
    // Given
    let whole = try Self.animation(frames: 20)
    let starts = Self.frames(of: whole)
    #expect(starts.count == 20 && Made.error(whole) == nil)
    // When: the file ends within a frame, or between the control of one and the frame
    for end in [starts[10], starts[10] + 200, starts[19] + 100] {
      let bytes = Array(whole.prefix(end))
      // Then
      #expect(Made.isUndecodable(bytes), "\(end)")
      #expect(Made.isUndecodable(bytes) { $0.format = .png }, "\(end)")
    }
  }

  @Test func `a frame must have exactly as many pixels as it states`() throws {
    // Given
    let whole = try Self.animation(frames: 3)
    let start = Self.frames(of: whole)[1]
    // When: a frame claims one row more or less
    for change in [1, -1] {
      var bytes = whole
      bytes[start + 7] = UInt8(Int(bytes[start + 7]) + change)
      // Then
      #expect(Made.isUndecodable(bytes))
    }
  }

  // MARK: PNG

  @Test func `a PNG without its end or with a wrong pixel checksum is damaged`() throws {
    // Given
    let whole = try TestImages.png(width: 90, height: 60)
    // When
    var changed = whole
    changed[whole.count - 14] ^= 1
    let cut = Array(whole.dropLast(12))
    // Then
    #expect(Made.isUndecodable(changed))
    #expect(Made.isUndecodable(cut))
  }

  @Test func `a wrong checksum of a PNG's text is harmless`() throws {
    // Given
    let whole = try TestImages.png(width: 90, height: 60)
    let text: [UInt8] =
      [0, 0, 0, 9] + Array("tEXt".utf8) + Array("Title\0abc".utf8) + [1, 2, 3, 4]
    // When
    let bytes = whole.prefix(33) + text + whole.dropFirst(33)
    // Then
    #expect(Made.error(Array(bytes)) == nil)
  }

  // MARK: Tolerance

  @Test(arguments: [FailOn.none, .truncated, .error, .warning])
  func `damage below the threshold is tolerated and marked`(failOn: FailOn) throws {
    // Given
    let jpeg = try TestImages.encode(DamagedKind.textured(width: 96, height: 64), as: ".jpg[Q=85]")
    var zeroed = jpeg
    for index in jpeg.count / 2..<jpeg.count * 3 / 4 { zeroed[index] = 0 }
    let cut = Array(jpeg.prefix(jpeg.count / 2))
    for width in [nil, 24] {
      // When
      func made(_ bytes: [UInt8]) throws -> Made {
        try Made(bytes, limits: Self.limits(failOn)) { $0.width = width }
      }
      // Then
      #expect(try !made(jpeg).isDamaged)
      if failOn < .warning {
        #expect(try made(zeroed).isDamaged)
      } else {
        #expect(throws: ImageError.self) { try made(zeroed) }
      }
      if failOn == .none {
        #expect(try made(cut).isDamaged)
      } else {
        #expect(throws: ImageError.self) { try made(cut) }
      }
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .gif, .webp])
  func `a verified description requires intact pixels`(format: ImageFormat) throws {
    // Given
    let scene = DamagedKind.textured(width: 96, height: 64)
    let whole = try TestImages.encode(scene, as: ".\(format.fileExtension)")
    let cut = Array(whole.prefix(whole.count * 3 / 4))
    // When, then
    #expect(try !Made(whole, verifies: true) { $0.product = .info(nil) }.isDamaged)
    #expect(throws: ImageError.self) {
      try Made(cut, verifies: true) { $0.product = .info(nil) }
    }
    // libwebp shows nothing of a truncated file.
    guard format != .webp else { return }
    let lax = try Made(cut, limits: Self.limits(.none), verifies: true) {
      $0.product = .info(nil)
    }
    #expect(lax.isDamaged)
  }
}

@Suite(.onOwnThreads) struct ContainerLengthsTests {
  static let kinds = [
    "jpeg", "progressive", "png", "gif", "webp", "animated webp", "tiff", "avif", "heic", "jxl",
    "jp2", "svg",
  ]

  private func failure(_ bytes: [UInt8], failOn: FailOn = .warning) -> ImageError? {
    let limits = ImagingLimits { $0.failOn = failOn }
    return failure(bytes, limits: limits)
  }

  private func failure(_ bytes: [UInt8], limits: ImagingLimits) -> ImageError? {
    bytes.withUnsafeBytes { bytes in
      guard let format = FormatSigns.format(of: bytes) else { return nil }
      do throws(ImageError) {
        try ContainerLengths.check(bytes, as: format, limits: limits)
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
  func `an intact source passes, with or without trailing data`(kind: String) throws {
    let whole = try HostileTests.source(kind)
    #expect(failure(whole) == nil)
    #expect(failure(whole + [UInt8](repeating: 0, count: 99)) == nil)
  }

  @Test(arguments: ["png", "gif", "webp", "animated webp", "tiff", "avif", "heic", "jp2"])
  func `a truncated source is refused, also for a description`(kind: String) throws {
    let whole = try HostileTests.source(kind)
    for share in [0.3, 0.6, 0.95] {
      let part = Array(whole.prefix(Int(Double(whole.count) * share)))
      #expect(failure(part) != nil, "\(share)")
      // If all damage is tolerated the file is decoded; a TIFF's directory is at its end.
      #expect(failure(part, failOn: .truncated) != nil, "\(share)")
      #expect(failure(part, failOn: .none) == nil || kind == "tiff", "\(share)")
      #expect(Made.error(part) { $0.product = .info(nil) }?.code == "undecodable", "\(share)")
    }
  }

  @Test(arguments: ["tEXt", "zTXt", "iTXt", "sPLT", "iCCP", "eXIf", "PLTE", "IDAT", "abCd"])
  func `a PNG of 57 bytes whose chunk states two gigabytes is refused at once`(name: String) throws
  {
    // Given
    let header = CodedPNG.chunk(
      "IHDR", content: CodedPNG.big(9, width: 4) + CodedPNG.big(9, width: 4) + [8, 2, 0, 0, 0])
    let bytes: [UInt8] =
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + header
      + CodedPNG.big(0x7fff_ffff, width: 4)
      + Array(name.utf8) + [UInt8](repeating: 0x41, count: 16)
    #expect(bytes.count == 57)
    // When, then
    #expect(claimsTooMuch(Made.error(bytes)))
    #expect(claimsTooMuch(Made.error(bytes) { $0.product = .info(nil) }))
    // No level of tolerance allows an allocation of that size.
    #expect(claimsTooMuch(failure(bytes, failOn: .none)))
    // The same holds within an icon.
    let icon: [UInt8] =
      [0, 0, 1, 0, 1, 0, 9, 9, 0, 0, 1, 0, 32, 0, 57, 0, 0, 0, 22, 0, 0, 0] + bytes
    #expect(Made.error(icon)?.code == "undecodable")
  }

  /// Returns the offset of a text.
  private func place(of text: String, in bytes: [UInt8]) throws -> Int {
    try #require(bytes.indices.first { bytes[$0...].starts(with: text.utf8) })
  }

  @Test func `a WebP whose file or chunk length exceeds its data is refused`() throws {
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
  func `a box that exceeds the file is refused`(kind: String, boxes: [String]) throws {
    let whole = try HostileTests.source(kind)
    for box in boxes {
      var bytes = whole
      bytes[try place(of: box, in: whole) - 4] = 0x7f
      #expect(claimsTooMuch(failure(bytes)), "\(box)")
    }
  }

  /// Returns a HEIC of nothing but an item location box (ISO/IEC 14496-12, 8.11.3).
  ///
  /// - Parameter sizes: the widths in bytes of offset and length, four bits each.
  private func located(items: Int, extents: Int, sizes: UInt8, content: [UInt8] = []) -> [UInt8] {
    let item = [0, 1, 0, 0] + CodedPNG.big(extents, width: 2) + content
    let list = [UInt8]([[UInt8]](repeating: item, count: items).joined())
    let iloc = [0, 0, 0, 0, sizes, 0] + CodedPNG.big(items, width: 2) + list
    return HEIFBoxes.box("ftyp", content: Array("heic".utf8) + [0, 0, 0, 0] + Array("mif1".utf8))
      + HEIFBoxes.box("meta", content: [0, 0, 0, 0] + HEIFBoxes.box("iloc", content: iloc))
  }

  @Test(arguments: [(1, 2), (1, 65_535), (60_000, 65_535)])
  func `items with many empty extents are refused`(items: Int, extents: Int) {
    // The largest has 360 kB and four billion extents.
    let bytes = located(items: items, extents: extents, sizes: 0)
    #expect(failure(bytes)?.logDetail?.contains("iloc") == true)
    #expect(failure(bytes, failOn: .none)?.logDetail?.contains("iloc") == true)
  }

  @Test func `an item with one empty extent, or several with bytes, passes`() {
    #expect(failure(located(items: 3, extents: 1, sizes: 0)) == nil)
    let places: [UInt8] = [8, 4, 9, 5]
    #expect(failure(located(items: 3, extents: 2, sizes: 0x11, content: places)) == nil)
    #expect(claimsTooMuch(failure(located(items: 3, extents: 3, sizes: 0x11, content: places))))
  }

  @Test(arguments: [2, 1_000])
  func `a TIFF with overlapping directories is refused`(directories: Int) {
    // Given: directories four bytes apart, of 700 entries each
    let length = 2 + 12 * 700
    var bytes: [UInt8] = Array("II".utf8) + [42, 0, 8, 0, 0, 0]
    bytes += [UInt8](repeating: 0, count: length + 4 * (directories + 1) + 6)
    func put(_ number: Int, at place: Int) {
      for index in 0..<2 { bytes[place + index] = UInt8(number >> (8 * index) & 255) }
    }
    for index in 0..<directories {
      put(700, at: 8 + 4 * index)
      put(12 + 4 * index, at: 8 + 4 * index + length)
    }
    // When, then
    #expect(failure(bytes)?.logDetail?.contains("overlap") == true)
  }

  @Test func `a circle of TIFF directories ends at the first one`() {
    // Given: a directory of 20,000 entries that is followed by itself
    var bytes: [UInt8] =
      Array("II".utf8) + [42, 0, 8, 0, 0, 0] + CodedPNG.big(20_000, width: 2).reversed()
    bytes += [UInt8](repeating: 0, count: 12 * 20_000) + [8, 0, 0, 0]
    // When, then: libtiff decides about it
    #expect(failure(bytes) == nil)
  }

  @Test func `a TIFF tag with more values than data is refused`() throws {
    // Given: the first entry with values outside the entry, in the first directory
    let whole = try TestImages.tiff(width: 90, height: 60)
    #expect(whole.starts(with: "II".utf8))
    func number(at place: Int, width: Int) -> Int {
      whole[place..<place + width].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let directory = number(at: 4, width: 4)
    for index in 0..<number(at: directory, width: 2) {
      var bytes = whole
      // The highest byte of its count.
      bytes[directory + 2 + 12 * index + 7] = 0x7f
      // When, then
      #expect(claimsTooMuch(failure(bytes)), "entry \(index)")
    }
  }

  @Test func `a JPEG 2000 with an oversized tile or too many tiles is refused`()
    throws
  {
    let whole = try TestImages.encode(.scene(width: 120, height: 90), as: ".jp2")
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
    let limits = ImagingLimits { $0.maximumPixels = 10_000 }
    #expect(failure(tiles, limits: limits) == .tooManyPixels(pixels: 10_800, limit: 10_000))
  }
}
