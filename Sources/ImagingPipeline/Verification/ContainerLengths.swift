// ContainerLengths: checks the lengths in a container before a decoder uses them.

import ImagingWire
import Model
import Platform

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
  private static let maximumMissing = 64 << 20

  /// Checks a source.
  ///
  /// - Parameter limits: The limits for decoding. If they tolerate all damage, the source may be
  ///   truncated.
  /// - Throws: `ImageError.undecodable` with the name of the part, its length and the bytes left; `.unsupportedKind`.
  ///   For too many parts, and a JPEG 2000 with too many tiles, `.tooCostly`, or `.tooManyPixels` if the pixels also
  ///   exceed their limit.
  static func check(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, limits: ImagingLimits
  ) throws(ImageError) {
    do throws(ContainerFault) {
      try check(source, as: format)
    } catch {
      switch error {
      case .excess(_, let length, let left)
      where limits.failOn == .none && length <= left + maximumMissing:
        return
      case .excess(let part, let length, let left):
        throw .undecodable(detail: "\(part) claims \(length) bytes, \(left) are left")
      case .broken(let detail): throw .undecodable(detail: detail)
      case .tooManyParts(let limit):
        throw .tooCostly(reason: "more than \(limit) segments, chunks, blocks or boxes")
      case .unsupported(let kind): throw .unsupportedKind(reason: kind)
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
    // codestream of a JPEG XL contain no lengths.
    case .jxl, .bmp, .ico, .svg: break
    }
  }

  /// Checks the chunks: length, name, content, checksum (PNG 1.2, 3.2). Texts that inflate to too much were removed from
  /// a source; in an icon they are a fault.
  private static func checkPNG(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    guard !PNGText.isExcessive(source) else {
      throw .broken("text that inflates to more than \(PNGText.maximum) bytes")
    }
    var bytes = ByteReader(source, at: 8)
    var parts = PartCount()
    while let length = try? bytes.number(4), let name = try? bytes.name() {
      guard name != "IEND" else { return }
      try parts.add()
      guard bytes.skip(length), bytes.skip(4) else {
        throw .excess("chunk \(name)", length, max(bytes.left - 4, 0))
      }
    }
    throw .excess("IEND", 12, bytes.left)
  }

  /// Checks the file length, the chunks, and the chunks inside frames (RFC 9649, 2.3 to 2.7.1.1).
  private static func checkWebP(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var chunks = try WebPChunks(of: source)
    var parts = PartCount()
    while let (name, content) = try chunks.next() {
      try parts.add()
      guard name == "ANMF", var frame = WebPChunks(ofFrame: content) else { continue }
      while try frame.next() != nil { try parts.add() }
    }
  }

  /// Checks the segments up to the first scan (ISO/IEC 10918-1, B.1.1.4).
  private static func checkJPEG(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var markers = JPEGMarkers(source)
    var parts = PartCount(limit: SourceCost.maximumSegments)
    // Decoders skip bytes that are not a marker.
    while let marker = try? markers.find() {
      switch marker {
      case 0xd9, 0xda: return
      // Markers without a segment (T.81, table B.1).
      case 0x01, 0xd0...0xd8: continue
      default: break
      }
      try parts.add()
      guard let length = markers.segmentLength, length >= 2 else { return }
      guard (try? markers.segment()) != nil else {
        throw .excess("a segment", length, markers.left)
      }
    }
  }

  /// Checks the colour tables and sub-blocks. A missing trailer is common and harmless.
  private static func checkGIF(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var blocks = try GIFBlocks(source)
    var parts = PartCount()
    while let block = try blocks.next() {
      try parts.add()
      switch block {
      case .frame, .extension: continue
      case .terminator, .trailer, .unknown: return
      }
    }
  }

  /// Checks the boxes and the codestream in them, or a bare codestream. Its kind comes first: damage may be tolerated.
  private static func checkJPEG2000(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    let isBare = source.starts(with: [0xff, 0x4f])
    let boxes = isBare ? nil : try JPEG2000Boxes(of: source)
    let codestream = boxes?.codestream ?? source
    guard let kind = CodestreamKind(of: codestream) else {
      throw .broken("a codestream that does not begin with its sizes")
    }
    if let boxes { try boxes.check(kind) } else { try kind.check(.unstated) }
    if !isBare { try BoxLengths.check(source) }
    try CodestreamLengths.check(codestream)
  }
}

/// A fault in a container.
enum ContainerFault: Error {
  /// A part claims more bytes than are left.
  case excess(_ part: String, _ length: Int, _ left: Int)
  /// A kind of the format that is not decoded right; the text completes an `ImageError.unsupportedKind`.
  case unsupported(String)
  /// More parts than `limit`.
  case tooManyParts(limit: Int)
  /// Any other fault; the text completes an `ImageError.undecodable`.
  case broken(String)
  /// The codestream has more tiles than fit in memory; the reason completes an
  /// `ImageError.tooCostly`.
  case tooManyTiles(reason: String, pixels: Int)
}

/// Counts the parts of a container.
struct PartCount {
  /// The maximum number of parts.
  let limit: Int
  private var count = 0

  init(limit: Int = SourceCost.maximumParts) { self.limit = limit }

  /// Counts one more.
  mutating func add() throws(ContainerFault) {
    count += 1
    guard count <= limit else { throw .tooManyParts(limit: limit) }
  }
}
