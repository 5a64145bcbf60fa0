// ContainerCheckTests: damaged PNGs and GIFs, at each level of tolerance.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct ContainerCheckTests {
  private static func limits(_ failOn: FailOn) -> ImagingLimits {
    var limits = ImagingLimits()
    limits.failOn = failOn
    return limits
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
