// ContainerLengths: checks the lengths in a container before a decoder uses them.

import Core

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
  /// - Throws: `ImageError.undecodable` with the name of the part, its length and the bytes left;
  ///   `.unsupportedKind`. For too many parts, and a JPEG 2000 with too many tiles, `.tooCostly`,
  ///   or `.tooManyPixels` if the pixels also exceed their limit.
  static func check(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, limits: ImagingLimits
  ) throws(ImageError) {
    do throws(ContainerFault) {
      try format.codec.checkLengths(source)
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

  /// Checks the chunks: length, name, content, checksum (PNG 1.2, 3.2). Texts that inflate to too
  /// much were removed from a source; in an icon they are a fault.
  static func checkPNG(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
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
  static func checkWebP(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var chunks = try WebPChunks(of: source)
    var parts = PartCount()
    while let (name, content) = try chunks.next() {
      try parts.add()
      guard name == "ANMF", var frame = WebPChunks(ofFrame: content) else { continue }
      while try frame.next() != nil { try parts.add() }
    }
  }

  /// Checks the segments up to the first scan (ISO/IEC 10918-1, B.1.1.4).
  static func checkJPEG(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
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
  static func checkGIF(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
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

  /// Checks the boxes and the codestream in them, or a bare codestream. Its kind comes first:
  /// damage may be tolerated.
  static func checkJPEG2000(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
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
  /// A kind of the format that is not decoded right; the text completes an
  /// `ImageError.unsupportedKind`.
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

/// Checks the boxes of ISO base media files (ISO/IEC 14496-12, 4.2) and of formats with the same
/// structure (ISO/IEC 15444-1, I.4; ISO/IEC 18181-2, 4.2).
enum BoxLengths {
  /// Checks the lengths of all boxes and the locations of all items.
  static func check(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var boxes = ByteReader(source)
    var parts = PartCount()
    try check(&boxes, depth: 0, fileLength: source.count, &parts)
  }

  /// Box types that contain boxes, with the number of bytes before the first inner box.
  private static let containers = [
    "meta": 4, "iprp": 0, "ipco": 0, "iref": 4, "dinf": 0, "moov": 0, "trak": 0, "mdia": 0,
    "minf": 0, "stbl": 0, "edts": 0, "jp2h": 0, "grpl": 0,
  ]
  /// The maximum depth of nested boxes; real files stay far below it.
  private static let maximumDepth = 16

  private static func check(
    _ boxes: inout ByteReader, depth: Int, fileLength: Int, _ parts: inout PartCount
  ) throws(ContainerFault) {
    guard depth < maximumDepth else { throw .broken("boxes in boxes") }
    while var box = try next(in: &boxes, depth: depth) {
      try parts.add()
      if box.type == "iloc" { try checkItems(&box.content, fileLength: fileLength) }
      guard let head = containers[box.type], box.content.skip(head) else { continue }
      try check(&box.content, depth: depth + 1, fileLength: fileLength, &parts)
    }
  }

  /// Returns the next box; `nil` at the end, or if the trailing bytes of the file are not a box.
  ///
  /// - Parameter mayBeCut: Whether a box that is longer than the file ends with it, instead of
  ///   being a fault.
  static func next(
    in boxes: inout ByteReader, depth: Int, mayBeCut: Bool = false
  ) throws(ContainerFault) -> (type: String, content: ByteReader)? {
    guard var length = try? boxes.number(4), let type = try? boxes.name() else { return nil }
    var head = 8
    if length == 1 {
      guard let large = try? boxes.number(8) else { return nil }
      length = large
      head = 16
    }
    // The last box of a file may have length 0, which means up to the end.
    if length == 0, depth == 0 { length = head + boxes.left }
    if mayBeCut { length = min(length, head + boxes.left) }
    guard length >= head, let content = try? boxes.reader(of: length - head) else {
      // Some writers append data that is not in boxes.
      if depth == 0, type.contains("?") { return nil }
      throw .excess("box \(type)", length, boxes.left + head)
    }
    return (type, content)
  }

  /// Checks the locations of items (ISO/IEC 14496-12, 8.11.3): an item stored in the file must lie
  /// within it. Each step reads bytes of the box, so the time grows with the box alone.
  private static func checkItems(
    _ box: inout ByteReader, fileLength: Int
  ) throws(ContainerFault) {
    guard let version = try? box.number(1), box.skip(3), let sizes = try? box.number(2),
      version <= 2
    else { return }
    let offsetWidth = sizes >> 12
    let lengthWidth = sizes >> 8 & 15
    let baseWidth = sizes >> 4 & 15
    let indexWidth = version == 0 ? 0 : sizes & 15
    guard [offsetWidth, lengthWidth, baseWidth, indexWidth].allSatisfy({ $0 <= 8 }),
      let items = try? box.number(version < 2 ? 2 : 4)
    else { return }
    for _ in 0..<items {
      guard box.skip(version < 2 ? 2 : 4),
        let method = version == 0 ? 0 : (try? box.number(2)).map({ $0 & 15 }),
        box.skip(2), let base = try? box.number(baseWidth), let extents = try? box.number(2)
      else { throw .excess("items in box iloc", items, 0) }
      // Otherwise a few bytes could state four billion extents, all of them at the same place.
      guard extents <= 1 || indexWidth + offsetWidth + lengthWidth > 0 else {
        throw .broken("\(extents) extents of one place in box iloc")
      }
      for _ in 0..<extents {
        guard box.skip(indexWidth), let offset = try? box.number(offsetWidth),
          let length = try? box.number(lengthWidth)
        else { throw .excess("extents in box iloc", extents, 0) }
        // Other methods store the item in a box or in other items.
        guard method == 0 else { continue }
        let (sum, isTooFar) = base.addingReportingOverflow(offset)
        let start = isTooFar ? Int.max : sum
        guard start <= fileLength, length <= fileLength - start else {
          throw .excess("an item", length, max(fileLength - start, 0))
        }
      }
    }
  }
}
