// TIFFKind: the samples and the parts of a TIFF's page, and which of them are decoded right.

import Model
import Platform

/// A page's tags that decide how its pixels are stored (TIFF 6.0, sections 8 to 22).
struct TIFFKind {
  private let source: UnsafeRawBufferPointer
  private let tags: TIFFTags
  private let compression: Int
  private let photometric: Int?
  private let samples: Int

  /// Reads a directory; `nil` if it is unreadable, about which libtiff decides.
  init?(of source: UnsafeRawBufferPointer, directory: Int) {
    guard let tags = TIFFTags(source, directory: directory) else { return nil }
    self.source = source
    self.tags = tags
    compression = tags.first(259) ?? 1
    photometric = tags.first(262)
    samples = tags.first(277) ?? 1
  }

  private static let jpeg = 7
  /// JPEG 2000 as Aperio names it, YCC, and two for RGB.
  private static let jpeg2000 = 33_003...33_005
  private static let ycc = 6

  /// The compressions that Debian's libtiff decodes.
  private static let compressions: Set<Int> = [
    1, 2, 3, 4, 5, 7, 8, 32_766, 32_771, 32_773, 32_809, 32_909, 32_946, 34_661, 34_676, 34_677,
    34_887, 34_925, 50_000, 50_001,
  ]

  /// Checks that libvips 8.14 decodes all pixels, and as what they are. It takes what it does not know for RGB or grey,
  /// and a part that is smaller than its place for the whole.
  ///
  /// - Throws: `ImageError.unsupportedKind`.
  func check() throws(ImageError) {
    guard Self.compressions.contains(compression) || Self.jpeg2000.contains(compression) else {
      throw Self.refused("compression \(compression)", "JPEG (7), Deflate, LZW and others")
    }
    try checkColours()
    try checkSamples()
    if tags.first(284) == 2, tags.first(322) != nil {
      throw Self.refused(
        "tiles with a plane for each sample", "strips of planes, and tiles of pixels")
    }
    if compression == Self.jpeg || Self.jpeg2000.contains(compression) { try checkParts() }
  }

  private func checkColours() throws(ImageError) {
    switch photometric {
    case Self.ycc? where compression != Self.jpeg:
      throw Self.refused("YCbCr without JPEG", "YCbCr in JPEG")
    case nil, 0?, 1?, 2?, 3?, 5?, Self.ycc?, 8?, 32_845?: break
    case let other?:
      let names = [4: "a mask", 9: "ICCLab", 10: "ITULab", 32_803: "a sensor's raw samples"]
      throw Self.refused(
        names[other] ?? "photometric interpretation \(other)",
        "grey, RGB, palette, CMYK, YCbCr, CIELab and LogLuv")
    }
    guard
      !Self.jpeg2000.contains(compression) || samples == 1
        || (samples == 3 && compression == 33_003)
    else {
      throw Self.refused(
        "JPEG 2000 of \(samples) samples with compression \(compression)", "grey, and YCC (33003)")
    }
  }

  private func checkSamples() throws(ImageError) {
    // LogLuv has a coding of its own.
    guard photometric != 32_845 else { return }
    let bits = Set(tags.values(258, atMost: samples) ?? [1])
    let formats = Set(tags.values(339, atMost: samples) ?? [1])
    let decoded = "unsigned samples of 8 or 16 bits, one of 1, 2 or 4, floating point of 32"
    guard let width = bits.first, bits.count == 1, let format = formats.first, formats.count == 1
    else { throw Self.refused("samples of different kinds", decoded) }
    // 1 is unsigned, 2 signed, 3 floating point, 4 not stated. The a and b of CIELab have a sign, which some state.
    let isDecoded =
      switch format {
      case 1, 4: [8, 16].contains(width) || ([1, 2, 4].contains(width) && samples == 1)
      case 2: photometric == 8 && [8, 16].contains(width)
      case 3: width == 32
      default: false
      }
    let names = [1: "unsigned ", 2: "signed ", 3: "floating-point ", 5: "complex ", 6: "complex "]
    guard isDecoded else {
      throw Self.refused("\(names[format] ?? "")samples of \(width) bits", decoded)
    }
  }

  /// The sizes in a tile or strip of JPEG follow a few hundred bytes of tables.
  private static let longestHead = 4_096

  /// Checks that each tile, or strip, has the pixels of its place. JPEG and JPEG 2000 state their own sizes.
  private func checkParts() throws(ImageError) {
    let isTiled = tags.first(322) != nil
    guard let width = tags.first(isTiled ? 322 : 256), let height = tags.first(isTiled ? 323 : 257),
      let offsets = tags.values(isTiled ? 324 : 273), let lengths = tags.values(isTiled ? 325 : 279)
    else { return }
    let rows = isTiled ? height : min(tags.first(278) ?? height, height)
    guard rows > 0 else { return }
    let perPlane = isTiled ? Int.max : (height + rows - 1) / rows
    var seen: Set<Int> = []
    // Otherwise each byte of a file could belong to many parts.
    var left = source.count
    for (index, (offset, length)) in zip(offsets, lengths).enumerated() {
      // Damage that is tolerated hides no size.
      let count = min(length, max(source.count - offset, 0), Self.longestHead)
      // The last strip of a plane is lower.
      let row = isTiled ? 0 : index % perPlane * rows
      // Equal tiles may be stored once.
      guard count > 0, !isTiled || seen.insert(offset).inserted else { continue }
      left -= count
      guard left >= 0 else { throw .undecodable(detail: "a TIFF's tiles or strips overlap") }
      let head = UnsafeRawBufferPointer(rebasing: source[offset..<offset + count])
      let place = PixelSize(width: width, height: min(rows, height - row))
      if compression == Self.jpeg {
        guard let frame = JPEGProcess(of: head) else { throw Self.noSizes }
        try Self.check(frame.size, in: place)
      } else {
        try checkCodestream(head, in: place)
      }
    }
  }

  private static let noSizes = ImageError.undecodable(
    detail: "a TIFF's tile or strip does not begin with its sizes")

  private func checkCodestream(
    _ head: UnsafeRawBufferPointer, in place: PixelSize
  ) throws(ImageError) {
    guard let kind = CodestreamKind(of: head) else { throw Self.noSizes }
    do throws(ContainerFault) {
      try kind.check(samples == 1 ? .grey : .unstated)
    } catch {
      guard case .unsupported(let reason) = error else { throw Self.noSizes }
      throw .unsupportedKind(reason: reason)
    }
    try Self.check(
      PixelSize(width: kind.width - kind.left, height: kind.height - kind.top), in: place)
    guard kind.components.count == samples, kind.components.first?.bits == tags.first(258) else {
      throw Self.refused("a tile of other samples than its TIFF", "tiles of the same")
    }
  }

  private static func check(_ size: PixelSize, in place: PixelSize) throws(ImageError) {
    guard size.width >= place.width, size.height >= place.height else {
      throw refused("a tile or strip of \(size) where \(place) are due", "whole ones")
    }
  }

  private static func refused(_ kind: String, _ decoded: String) -> ImageError {
    .unsupportedKind(reason: "a TIFF with \(kind); decoded: \(decoded)")
  }
}
