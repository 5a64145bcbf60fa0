// HEIFContainer: reads the colour description of a HEIC or AVIF, which libvips does not expose.

/// Reads the boxes around the primary image (ISO/IEC 14496-12 and 23008-12). All of their content
/// is untrusted input.
enum HEIFContainer {
  /// Returns the colour code points of the primary image.
  ///
  /// - Returns: `nil` if the image has no code points or they describe sRGB, if an ICC profile
  ///   takes precedence, or if the boxes are malformed.
  static func codePoints(of file: UnsafeRawBufferPointer) -> CodePoints? {
    // A FullBox starts with a version and flags, 4 bytes in all.
    guard var meta = Box.first("meta", in: Reader(file)), meta.integer(4) != nil,
      let primary = primaryItem(in: meta),
      let properties = Box.first("iprp", in: meta),
      let container = Box.first("ipco", in: properties)
    else { return nil }
    let indices = associations(of: primary, in: properties)
    // Property indices start at 1.
    let boxes = Box.all(in: container).enumerated().filter { indices.contains($0.offset + 1) }
      .map(\.element)
    var points: (primaries: Int, transfer: Int)?
    var peak: Double?
    for box in boxes {
      var content = box.content
      switch box.type {
      case "colr":
        let kind = content.integer(4).map(Box.name)
        if kind == "prof" || kind == "rICC" { return nil }
        // The matrix and range follow; libheif has already applied them.
        if kind == "nclx", let primaries = content.integer(2), let transfer = content.integer(2) {
          points = (primaries, transfer)
        }
      case "clli":
        // CTA-861.3: MaxCLL; 0 means unknown.
        if let light = content.integer(2), light > 0 { peak = Double(light) }
      default: break
      }
    }
    return points.flatMap {
      CodePoints(primaries: $0.primaries, transfer: $0.transfer, peak: peak)
    }
  }

  private static func primaryItem(in meta: Reader) -> Int? {
    guard var box = Box.first("pitm", in: meta), let version = box.integer(1),
      box.integer(3) != nil
    else { return nil }
    return box.integer(version == 0 ? 2 : 4)
  }

  /// Returns the indices of an item's properties.
  private static func associations(of item: Int, in properties: Reader) -> Set<Int> {
    var indices: Set<Int> = []
    for box in Box.all(in: properties) where box.type == "ipma" {
      var content = box.content
      guard let version = content.integer(1), let flags = content.integer(3),
        let entries = content.integer(4)
      else { continue }
      let isWide = flags & 1 != 0
      var entry = 0
      while entry < entries, let id = content.integer(version == 0 ? 2 : 4),
        let count = content.integer(1)
      {
        for _ in 0..<count {
          guard let index = content.integer(isWide ? 2 : 1) else { return indices }
          // The highest bit marks an essential property.
          if id == item { indices.insert(index & (isWide ? 0x7fff : 0x7f)) }
        }
        entry += 1
      }
    }
    return indices
  }

  /// A box of the container: its type and content.
  private struct Box {
    let type: String
    let content: Reader

    /// Returns the sequence of boxes, up to the first box that exceeds the available bytes.
    static func all(in reader: Reader) -> [Box] {
      var (rest, boxes) = (reader, [Box]())
      while boxes.count < most, let size = rest.integer(4), let type = rest.integer(4) {
        var length = size - 8
        if size == 1 {
          guard let large = rest.integer(8) else { break }
          length = large - 16
        } else if size == 0 {
          length = rest.count
        }
        guard let content = rest.part(length) else { break }
        boxes.append(Box(type: name(type), content: content))
      }
      return boxes
    }

    static func first(_ type: String, in reader: Reader) -> Reader? {
      all(in: reader).first { $0.type == type }?.content
    }

    /// Returns a four-character code as text.
    static func name(_ code: Int) -> String {
      String(
        decoding: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: code >> $0) }, as: UTF8.self)
    }

    /// The maximum number of boxes read at one level.
    private static let most = 4_096
  }

  /// A big-endian reader over a range of bytes.
  private struct Reader {
    private var bytes: Slice<UnsafeRawBufferPointer>

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes[...] }

    var count: Int { bytes.count }

    /// Reads the next 1 to 8 bytes; `nil` if too few are left or the value overflows `Int`.
    mutating func integer(_ length: Int) -> Int? {
      guard bytes.count >= length else { return nil }
      let value = bytes.prefix(length).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      bytes = bytes.dropFirst(length)
      return Int(exactly: value)
    }

    /// Reads the next `length` bytes; `nil` if too few are left.
    mutating func part(_ length: Int) -> Reader? {
      guard length >= 0, length <= bytes.count else { return nil }
      var part = self
      part.bytes = bytes.prefix(length)
      bytes = bytes.dropFirst(length)
      return part
    }
  }
}
