// TIFF: reads the directories of a TIFF: its pages, its lengths, and which of its pixels are
// decoded right.

import Core

/// A TIFF or BigTIFF (TIFF 6.0, section 2), which is untrusted input.
///
/// A pyramid stores its levels in the same chain of directories as pages. `NewSubfileType`
/// distinguishes them (TIFF 6.0, section 8).
struct TIFF {
  private let bytes: ByteReader
  private let isBigTIFF: Bool
  /// The bytes of an offset, and of a directory's count.
  private var width: Int { isBigTIFF ? 8 : 4 }
  private var countWidth: Int { isBigTIFF ? 8 : 2 }
  /// The bytes of a directory's entry: tag, type, count, and the value or its offset.
  private var entryLength: Int { isBigTIFF ? 20 : 12 }

  init?(_ file: UnsafeRawBufferPointer) {
    guard file.count >= 8, file.starts(with: "II".utf8) || file.starts(with: "MM".utf8) else {
      return nil
    }
    bytes = ByteReader(file, order: file.starts(with: [0x4d]) ? .big : .little)
    isBigTIFF = (try? bytes.number(at: 2, width: 2)) == 43
  }

  /// The place of the first directory.
  private var first: Int? { number(at: isBigTIFF ? 8 : 4, width: width) }

  /// Returns a number; `nil` past the end, or if it is larger than any file.
  private func number(at place: Int, width: Int) -> Int? {
    (try? bytes.number(at: place, width: width)).flatMap { $0 <= Int.max / 2 ? $0 : nil }
  }

  // MARK: Pages

  /// The places of at most 65,536 directories, whether each is a part of a page, and no page: a
  /// reduced copy or a transparency mask of another directory's image. Every later one is a page.
  private func directories(atMost most: Int) -> [(place: Int, isPart: Bool)] {
    var found: [(place: Int, isPart: Bool)] = []
    var next = first
    while found.count < min(most, 65_536), let place = next, let count = count(at: place) {
      var isPart = false
      // Tags ascend (TIFF 6.0, section 2), and these two are the lowest.
      for index in 0..<min(count, 4) {
        let entry = place + countWidth + index * entryLength
        guard let tag = number(at: entry, width: 2), let type = number(at: entry + 2, width: 2),
          let value = number(at: entry + 4 + width, width: type == 3 ? 2 : 4)
        else { return found }
        // NewSubfileType: bit 0 marks a reduced copy, bit 2 a mask. SubfileType (obsolete): 2 marks
        // a reduced copy.
        switch tag {
        case 254: isPart = value & 0b101 != 0
        case 255: isPart = isPart || value == 2
        default: break
        }
      }
      found.append((place, isPart))
      next = number(at: place + countWidth + count * entryLength, width: width)
    }
    return found
  }

  /// Returns the number of a directory's entries; `nil` for an unreadable one, about which libtiff
  /// decides.
  private func count(at place: Int) -> Int? {
    guard place > 0, let count = number(at: place, width: countWidth), count <= 65_535 else {
      return nil
    }
    return count
  }

  /// Returns the directories of the pages among the first `count`; all of them if none is a page.
  static func pages(of file: UnsafeRawBufferPointer, directories count: Int) -> [Int] {
    let parts = TIFF(file)?.directories(atMost: count).map(\.isPart) ?? []
    let pages = (0..<count).filter { !parts.indices.contains($0) || !parts[$0] }
    return pages.isEmpty ? Array(0..<count) : pages
  }

  // MARK: Tags

  /// The tags of a directory.
  struct Tags {
    fileprivate let file: TIFF
    /// The places of the entries by tag.
    fileprivate var entries: [Int: Int] = [:]

    /// Returns the first number of a tag; `nil` if it is absent.
    func first(_ tag: Int) -> Int? { values(tag, atMost: 1)?.first }

    /// Returns the numbers of a tag, up to `most`; `nil` if it is absent or empty, its type is not
    /// an integer, or its values lie outside of the file.
    func values(_ tag: Int, atMost most: Int = .max) -> [Int]? {
      guard let place = entries[tag], let type = file.number(at: place + 2, width: 2),
        let count = file.number(at: place + 4, width: file.width),
        let size = [1: 1, 3: 2, 4: 4, 16: 8][type], count <= file.bytes.bytes.count / size
      else { return nil }
      let inline = place + 4 + file.width
      guard
        let start =
          count * size <= file.width ? inline : file.number(at: inline, width: file.width)
      else { return nil }
      var values: [Int] = []
      for index in 0..<min(count, most) {
        guard let value = file.number(at: start + index * size, width: size) else { return nil }
        values.append(value)
      }
      return values.isEmpty ? nil : values
    }
  }

  /// Returns the tags of a directory by its number in the chain; `nil` if it is unreadable.
  func tags(ofDirectory index: Int) -> Tags? {
    let found = directories(atMost: index + 1)
    guard found.indices.contains(index) else { return nil }
    let place = found[index].place
    var tags = Tags(file: self)
    for index in 0..<(count(at: place) ?? 0) {
      let entry = place + countWidth + index * entryLength
      guard let tag = number(at: entry, width: 2) else { break }
      // Of several with the same tag, libtiff reads the first.
      if tags.entries[tag] == nil { tags.entries[tag] = entry }
    }
    return tags
  }

  // MARK: Lengths

  /// The maximum number of directories. libtiff goes through all of them, at 14 µs each.
  private static let maximumDirectories = 10_000

  /// The bytes of each value type, by type code (TIFF 6.0, and BigTIFF's 16 to 18).
  private static let widths = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8]

  /// Checks the locations of all entries' values.
  static func check(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    guard let file = TIFF(source), var place = file.first, place < source.count else {
      throw .broken("a TIFF without a directory")
    }
    let (width, entryLength) = (file.width, file.entryLength)
    var places: Set<Int> = []
    var left = source.count
    var parts = PartCount(limit: maximumDirectories)
    // A chain ends at an offset outside the file, and where it comes back to a directory, as in
    // libtiff.
    while place > 0, place < source.count, places.insert(place).inserted {
      try parts.add()
      var directory = file.bytes
      directory.position = place
      guard let count = try? directory.number(file.countWidth),
        count <= directory.left / entryLength,
        var entries = try? directory.reader(of: count * entryLength)
      else { throw .excess("a directory", Int.max, directory.left) }
      // Otherwise each byte of a file could belong to all directories.
      left -= count * entryLength
      guard left >= 0 else { throw .broken("a TIFF's directories overlap") }
      for _ in 0..<count {
        guard let tag = try? entries.number(2), let type = try? entries.number(2),
          let values = try? entries.number(width), let offset = try? entries.number(width)
        else { break }
        let (length, isTooLong) = values.multipliedReportingOverflow(
          by: type < widths.count ? widths[type] : 0)
        // Values this small are stored in place of their offset.
        guard isTooLong || length > width else { continue }
        guard !isTooLong, offset <= source.count, length <= source.count - offset else {
          throw .excess(
            "tag \(tag)", isTooLong ? Int.max : length, max(source.count - offset, 0))
        }
      }
      place = (try? directory.number(width)) ?? 0
    }
  }
}

/// A page's tags that decide how its pixels are stored (TIFF 6.0, sections 8 to 22).
struct TIFFKind {
  private let source: UnsafeRawBufferPointer
  private let tags: TIFF.Tags
  private let compression: Int
  private let photometric: Int?
  private let samples: Int

  /// Reads a directory; `nil` if it is unreadable, about which libtiff decides.
  init?(of source: UnsafeRawBufferPointer, directory: Int) {
    guard let tags = TIFF(source)?.tags(ofDirectory: directory) else { return nil }
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

  /// Checks that libvips 8.14 decodes all pixels, and as what they are. It takes what it does not
  /// know for RGB or grey, and a part that is smaller than its place for the whole.
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
    // 1 is unsigned, 2 signed, 3 floating point, 4 not stated. The a and b of CIELab have a sign,
    // which some state.
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

  /// Checks that each tile, or strip, has the pixels of its place. JPEG and JPEG 2000 state their
  /// own sizes.
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
