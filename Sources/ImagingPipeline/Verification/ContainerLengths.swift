// ContainerLengths: checks the lengths in a container before a decoder uses them.

import ImagingWire
import Model

/// Walks through a source's container without decoding.
///
/// Some libraries allocate what a header claims before they read on; libpng does so for a text
/// chunk. A few bytes could then allocate a gigabyte. A length beyond the end also reveals a
/// truncated source, even for `/info`, which decodes no pixels.
///
/// Bytes after the last part of a container are ignored.
enum ContainerLengths {
  /// The maximum number of missing bytes if all damage is tolerated, and so the most memory that a
  /// false length can request. Equals the default of `download.maximum_bytes`.
  private static let mostMissing = 64 << 20

  /// Checks a source.
  ///
  /// - Parameter limits: The limits for decoding. If they tolerate all damage, the source may be
  ///   truncated.
  /// - Throws: `ImageError.undecodable` with the name of the part, its length and the bytes left.
  ///   For a JPEG 2000 with too many tiles `.tooCostly`, or `.tooManyPixels` if the pixels also
  ///   exceed their limit.
  static func check(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, _ limits: ImagingLimits
  ) throws(ImageError) {
    do throws(ContainerFault) {
      try check(source, as: format)
    } catch {
      switch error {
      case .excess(_, let length, let left)
      where limits.failOn == .none && length <= left + mostMissing:
        return
      case .excess(let part, let length, let left):
        throw .undecodable(detail: "\(part) claims \(length) bytes, \(left) are left")
      case .broken(let detail): throw .undecodable(detail: detail)
      case .tooManyTiles(let reason, let pixels):
        throw pixels > limits.maximumPixels
          ? .tooManyPixels(pixels: pixels, limit: limits.maximumPixels)
          : .tooCostly(reason: reason)
      }
    }
  }

  private static func check(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat
  ) throws(ContainerFault) {
    switch format {
    case .png: try checkPNG(source)
    case .webp: try checkWebP(source)
    case .jpeg: try checkJPEG(source)
    case .gif: try checkGIF(source)
    case .tiff: try TIFFLengths.check(source)
    case .heic, .avif: try BoxLengths.check(source)
    case .jxl where !source.starts(with: [0xff, 0x0a]): try BoxLengths.check(source)
    case .jp2: try checkJPEG2000(source)
    // The BMP and ICO readers are Pictor's own and check each access. An SVG and the bare
    // codestream of a JPEG XL contain no lengths, and JSON is never a source.
    case .jxl, .bmp, .ico, .svg, .json: break
    }
  }

  /// Checks the chunks: length, name, content, checksum (PNG 1.2, 3.2).
  private static func checkPNG(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var bytes = ClaimReader(source.dropFirst(8), isBigEndian: true)
    while let length = bytes.number(4), let name = bytes.name() {
      guard name != "IEND" else { return }
      guard bytes.skip(length), bytes.skip(4) else {
        throw .excess("chunk \(name)", length, max(bytes.count - 4, 0))
      }
    }
    throw .excess("IEND", 12, bytes.count)
  }

  /// Checks the file length, the chunks, and the chunks inside frames (RFC 9649, 2.3 to 2.7.1.1).
  private static func checkWebP(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var file = ClaimReader(source.dropFirst(4), isBigEndian: false)
    guard let length = file.number(4) else { throw .excess("RIFF", 4, source.count) }
    guard var riff = file.part(length) else { throw .excess("RIFF", length, file.count) }
    _ = riff.name()
    try checkChunks(&riff, areOfFrame: false)
  }

  private static func checkChunks(
    _ bytes: inout ClaimReader, areOfFrame: Bool
  ) throws(ContainerFault) {
    while let name = bytes.name(), let length = bytes.number(4) {
      guard var chunk = bytes.part(length) else {
        throw .excess("chunk \(name)", length, bytes.count)
      }
      // The padding byte after an odd length may be missing at the end.
      _ = length % 2 == 1 && bytes.skip(1)
      // The chunks of a frame follow its position, size, duration and flags.
      if name == "ANMF", !areOfFrame, chunk.skip(16) {
        try checkChunks(&chunk, areOfFrame: true)
      }
    }
  }

  /// Checks the segments up to the first scan (ISO/IEC 10918-1, B.1.1.4).
  private static func checkJPEG(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var bytes = ClaimReader(source.dropFirst(2), isBigEndian: true)
    while let byte = bytes.number(1) {
      // Decoders skip bytes that are not a marker.
      guard byte == 0xff else { continue }
      var next = bytes.number(1)
      while next == 0xff { next = bytes.number(1) }
      guard let marker = next else { return }
      switch marker {
      case 0xd9, 0xda: return
      // 0xff00 is not a marker; the others have no length.
      case 0x00, 0x01, 0xd0...0xd8: continue
      default: break
      }
      guard let length = bytes.number(2), length >= 2 else { return }
      guard bytes.skip(length - 2) else { throw .excess("a segment", length, bytes.count + 2) }
    }
  }

  /// Checks the colour tables and sub-blocks (GIF89a, 15 and 18 to 27). A missing trailer is common
  /// and harmless.
  private static func checkGIF(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var bytes = ClaimReader(source.dropFirst(10), isBigEndian: false)
    func skipTable(_ flags: Int) throws(ContainerFault) {
      guard flags & 0x80 != 0 else { return }
      let length = 3 << (flags & 7 + 1)
      guard bytes.skip(length) else { throw .excess("a colour table", length, bytes.count) }
    }
    func skipBlocks() throws(ContainerFault) {
      while true {
        guard let length = bytes.number(1) else { throw .excess("a row of blocks", 1, 0) }
        if length == 0 { return }
        guard bytes.skip(length) else { throw .excess("a block", length, bytes.count) }
      }
    }
    guard let flags = bytes.number(1), bytes.skip(2) else { throw .excess("the screen", 7, 0) }
    try skipTable(flags)
    while let kind = bytes.number(1) {
      switch kind {
      case 0x2c:
        guard bytes.skip(8), let flags = bytes.number(1) else {
          throw .excess("an image", 9, bytes.count)
        }
        try skipTable(flags)
        // The minimum LZW code size.
        guard bytes.skip(1) else { throw .excess("an image", 1, 0) }
        try skipBlocks()
      case 0x21:
        guard bytes.skip(1) else { throw .excess("an extension", 1, 0) }
        try skipBlocks()
      default: return
      }
    }
  }

  /// Checks the boxes and the codestream in them, or a bare codestream.
  private static func checkJPEG2000(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    if source.starts(with: [0xff, 0x4f]) { return try CodestreamLengths.check(source) }
    try BoxLengths.check(source)
    guard let codestream = BoxLengths.content(of: "jp2c", in: source) else { return }
    try CodestreamLengths.check(UnsafeRawBufferPointer(rebasing: codestream))
  }
}

/// A fault in a container.
enum ContainerFault: Error {
  /// A part claims more bytes than are left.
  case excess(_ part: String, _ length: Int, _ left: Int)
  /// Any other fault; the text completes an `ImageError.undecodable`.
  case broken(String)
  /// The codestream has more tiles than fit in memory; the reason completes an
  /// `ImageError.tooCostly`.
  case tooManyTiles(reason: String, pixels: Int)
}

/// Reads numbers and parts in sequence, with bounds checks.
struct ClaimReader {
  private(set) var bytes: Slice<UnsafeRawBufferPointer>
  private let isBigEndian: Bool

  init(_ bytes: Slice<UnsafeRawBufferPointer>, isBigEndian: Bool) {
    (self.bytes, self.isBigEndian) = (bytes, isBigEndian)
  }

  /// The number of bytes left.
  var count: Int { bytes.count }

  /// Reads a number of up to 8 bytes; `nil` if too few are left. A value above `Int.max` is
  /// returned as `Int.max`.
  mutating func number(_ width: Int) -> Int? {
    guard count >= width else { return nil }
    let digits = bytes.prefix(width)
    bytes = bytes.dropFirst(width)
    let value =
      isBigEndian
      ? digits.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      : digits.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return Int(clamping: value)
  }

  /// Reads a four-character code.
  mutating func name() -> String? {
    guard count >= 4 else { return nil }
    defer { bytes = bytes.dropFirst(4) }
    // Replaces unprintable characters with question marks.
    let letters = bytes.prefix(4).map { (32...126).contains($0) ? $0 : 63 }
    return String(decoding: letters, as: UTF8.self)
  }

  /// Skips bytes; returns whether enough were left.
  mutating func skip(_ length: Int) -> Bool { part(length) != nil }

  /// Reads a part of `length` bytes; `nil` if too few are left.
  mutating func part(_ length: Int) -> ClaimReader? {
    guard length >= 0, length <= count else { return nil }
    defer { bytes = bytes.dropFirst(length) }
    return ClaimReader(bytes.prefix(length), isBigEndian: isBigEndian)
  }
}
