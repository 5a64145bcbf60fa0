// HEIFItems: reads the boxes of a HEIC or AVIF: its items and tracks, and the colours of the
// primary image.

import Core

/// A box of the container: its type and content.
struct HEIFBox {
  let type: String
  let content: ByteReader

  /// Returns the sequence of boxes, up to the first box that exceeds the available bytes.
  static func all(in reader: ByteReader) -> [HEIFBox] {
    var rest = reader
    var boxes: [HEIFBox] = []
    while boxes.count < maximumCount, let box = try? BoxLengths.next(in: &rest, depth: 0) {
      boxes.append(HEIFBox(type: box.type, content: box.content))
    }
    return boxes
  }

  static func first(_ type: String, in reader: ByteReader) -> ByteReader? {
    all(in: reader).first { $0.type == type }?.content
  }

  /// The maximum number of boxes read at one level.
  private static let maximumCount = 4_096
}

/// One item of a file.
struct HEIFItem {
  /// Four characters: `hvc1`, `av01`, `grid`.
  let type: String
  let data: UnsafeRawBufferPointer
  /// In the order in which they apply.
  let properties: [HEIFBox]
}

/// The items of a file (ISO/IEC 14496-12, 8.11, and 23008-12, 9.3). All of it is untrusted input.
struct HEIFItems {
  /// The number of the primary item.
  let primary: Int
  private let file: UnsafeRawBufferPointer
  /// The content of `meta`.
  private let boxes: [HEIFBox]
  /// The content of `iprp`.
  private let associations: [HEIFBox]
  /// All properties; the first has index 1.
  private let properties: [HEIFBox]

  /// - Returns: `nil` if the file has no primary item or no properties; and for two descriptions
  ///   (`meta`), of which readers choose different ones.
  init?(of file: UnsafeRawBufferPointer) {
    let descriptions = HEIFBox.all(in: ByteReader(file)).filter { $0.type == "meta" }
    // A FullBox starts with a version and flags, 4 bytes in all.
    guard descriptions.count == 1, var meta = descriptions.first?.content, meta.skip(4) else {
      return nil
    }
    boxes = HEIFBox.all(in: meta)
    guard var item = boxes.first(where: { $0.type == "pitm" })?.content,
      let version = try? item.number(1), item.skip(3),
      let primary = try? item.number(version == 0 ? 2 : 4),
      let properties = boxes.first(where: { $0.type == "iprp" })?.content,
      let container = HEIFBox.first("ipco", in: properties)
    else { return nil }
    self.primary = primary
    self.file = file
    associations = HEIFBox.all(in: properties).filter { $0.type == "ipma" }
    self.properties = HEIFBox.all(in: container)
  }

  /// Returns items by their numbers.
  ///
  /// - Returns: `nil` unless each is described once, not protected, and in one piece in the file.
  func items(_ ids: [Int]) -> [HEIFItem]? {
    let wanted = Set(ids)
    guard let types = types(of: wanted), let data = try? data(of: wanted),
      let properties = properties(of: wanted)
    else { return nil }
    var items: [HEIFItem] = []
    for id in ids {
      guard let type = types[id], let data = data[id] else { return nil }
      items.append(HEIFItem(type: type, data: data, properties: properties[id] ?? []))
    }
    return items
  }

  /// Returns the properties of items, in the order in which they apply (ISO/IEC 23008-12, 9.3).
  ///
  /// - Returns: `nil` if one of the items has two lists of them.
  func properties(of ids: Set<Int>) -> [Int: [HEIFBox]]? {
    var found: [Int: [HEIFBox]] = [:]
    for list in lists where ids.contains(list.item) {
      guard found[list.item] == nil, !list.isCut else { return nil }
      found[list.item] = list.associations.compactMap { property($0) }
    }
    return found
  }

  /// The properties of an item (`ipma`).
  struct PropertyList {
    let item: Int
    /// The bytes of each property's index, 1 or 2; their highest bit marks an essential property.
    let associations: [UnsafeRawBufferPointer]
    /// Whether the box ends within the list.
    let isCut: Bool
  }

  /// The properties of all items, as the file lists them.
  var lists: [PropertyList] {
    var lists: [PropertyList] = []
    for box in associations {
      var content = box.content
      guard let version = try? content.number(1), let flags = try? content.number(3),
        let entries = try? content.number(4)
      else { continue }
      let width = 1 + flags & 1
      var entry = 0
      while entry < entries, let id = try? content.number(version == 0 ? 2 : 4),
        let count = try? content.number(1)
      {
        let found = (0..<count).compactMap { _ in try? content.take(width) }
        lists.append(PropertyList(item: id, associations: found, isCut: found.count < count))
        guard found.count == count else { break }
        entry += 1
      }
    }
    return lists
  }

  /// Returns the property of an association; `nil` for an index of none.
  func property(_ association: UnsafeRawBufferPointer) -> HEIFBox? {
    let index =
      association.reduce(0) { $0 << 8 | Int($1) } & (association.count == 1 ? 0x7f : 0x7fff)
    return properties.indices.contains(index - 1) ? properties[index - 1] : nil
  }

  /// Returns the types of items; `nil` for one that is protected or listed twice.
  private func types(of ids: Set<Int>) -> [Int: String]? {
    guard var list = boxes.first(where: { $0.type == "iinf" })?.content,
      let version = try? list.number(1), list.skip(3), list.skip(version == 0 ? 2 : 4)
    else { return nil }
    var found: [Int: String] = [:]
    for box in HEIFBox.all(in: list) where box.type == "infe" {
      var entry = box.content
      // The versions before have no type of four characters.
      guard let version = try? entry.number(1), version == 2 || version == 3, entry.skip(3),
        let id = try? entry.number(version == 2 ? 2 : 4), ids.contains(id)
      else { continue }
      guard found[id] == nil, (try? entry.number(2)) == 0, let type = try? entry.name() else {
        return nil
      }
      found[id] = type
    }
    return found
  }

  /// Returns the numbers of the items that an item is derived from (`dimg`), in their order.
  func parts(of item: Int) -> [Int] {
    references("dimg").first { $0.item == item }?.others ?? []
  }

  /// Returns the item of a primary image's alpha.
  var alpha: Int? {
    let items = references("auxl").filter { $0.others.contains(primary) }.map(\.item)
    let found = properties(of: Set(items)) ?? [:]
    return items.first { found[$0]?.contains(where: \.isAlpha) == true }
  }

  /// Whether the colours of the primary image are multiplied by their alpha (ISO/IEC 23008-12,
  /// 6.9).
  var isPremultiplied: Bool { references("prem").contains { $0.item == primary } }

  /// Returns a coded image with the properties of an item: itself, or the first one that it is
  /// derived from.
  func coded(_ item: Int) -> (id: Int, type: String, properties: [HEIFBox])? {
    var id = item
    for _ in 0..<Self.maximumDerivations {
      guard let type = types(of: [id])?[id], let properties = properties(of: [id])?[id] else {
        return nil
      }
      guard let part = parts(of: id).first else { return (id, type, properties) }
      id = part
    }
    return nil
  }

  /// The most derivations from a coded image to an item.
  private static let maximumDerivations = 4

  /// Returns the references of a type: from an item to others (ISO/IEC 14496-12, 8.11.12).
  private func references(_ type: String) -> [(item: Int, others: [Int])] {
    guard var list = boxes.first(where: { $0.type == "iref" })?.content,
      let version = try? list.number(1), list.skip(3)
    else { return [] }
    let width = version == 0 ? 2 : 4
    return HEIFBox.all(in: list).filter { $0.type == type }.compactMap { box in
      var entry = box.content
      guard let item = try? entry.number(width), let count = try? entry.number(2),
        count <= entry.left / width
      else { return nil }
      return (item, (0..<count).compactMap { _ in try? entry.number(width) })
    }
  }

  /// Returns the bytes of items (ISO/IEC 14496-12, 8.11.3), without those in any other arrangement
  /// than one extent.
  private func data(of ids: Set<Int>) throws(EndOfBytes) -> [Int: UnsafeRawBufferPointer] {
    guard var box = boxes.first(where: { $0.type == "iloc" })?.content else { return [:] }
    let inner = boxes.first { $0.type == "idat" }?.content
    let version = try box.number(1)
    guard version <= 2 else { return [:] }
    _ = try box.number(3)
    let widths = try box.number(2)
    let (offsetWidth, lengthWidth) = (widths >> 12, widths >> 8 & 15)
    let (baseWidth, indexWidth) = (widths >> 4 & 15, version > 0 ? widths & 15 : 0)
    guard [offsetWidth, lengthWidth, baseWidth, indexWidth].allSatisfy({ [0, 4, 8].contains($0) })
    else { return [:] }
    let idWidth = version < 2 ? 2 : 4
    var found: [Int: UnsafeRawBufferPointer] = [:]
    for _ in 0..<(try box.number(idWidth)) {
      let id = try box.number(idWidth)
      let method = version > 0 ? try box.number(2) & 15 : 0
      let reference = try box.number(2)
      let base = try box.number(baseWidth)
      let extents = try box.number(2)
      guard ids.contains(id) else {
        _ = try box.take(extents * (indexWidth + offsetWidth + lengthWidth))
        continue
      }
      guard method <= 1, reference == 0, extents == 1, found[id] == nil else { return [:] }
      _ = try box.number(indexWidth)
      let (offset, overflow) = base.addingReportingOverflow(try box.number(offsetWidth))
      let count = try box.number(lengthWidth)
      // Method 1: in `idat`.
      guard !overflow, count > 0, let bytes = method == 0 ? ByteReader(file) : inner else {
        return [:]
      }
      found[id] = try bytes.part(at: offset, count: count)
    }
    return found
  }
}

extension HEIFBox {
  /// Whether an item or a track with this property is the alpha of another (ISO/IEC 23000-22,
  /// 7.5.2; ISO/IEC 23008-12, A.2.1.1).
  var isAlpha: Bool {
    guard type == "auxC" || type == "auxi" else { return false }
    let name = content.bytes.dropFirst(4).prefix { $0 != 0 }
    return ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"].contains {
      name.elementsEqual($0.utf8)
    }
  }
}

/// Reads the boxes around the primary image (ISO/IEC 14496-12 and 23008-12). All of their content
/// is untrusted input.
enum HEIFContainer {
  /// Returns the colour code points of the primary image.
  ///
  /// - Returns: `nil` if the image has no code points or they describe sRGB, if an ICC profile
  ///   takes precedence, or if the boxes are malformed.
  static func codePoints(of file: UnsafeRawBufferPointer) -> CodePoints? {
    guard let items = HEIFItems(of: file),
      let boxes = items.properties(of: [items.primary])?[items.primary]
    else { return nil }
    var points: (primaries: Int, transfer: Int)?
    var peak: Double?
    for box in boxes {
      var content = box.content
      switch box.type {
      case "colr":
        let kind = try? content.name()
        if kind == "prof" || kind == "rICC" { return nil }
        // The matrix and range follow; libheif has already applied them.
        if kind == "nclx", let primaries = try? content.number(2),
          let transfer = try? content.number(2)
        {
          points = (primaries, transfer)
        }
      case "clli":
        // CTA-861.3: MaxCLL; 0 means unknown.
        if let light = try? content.number(2), light > 0 { peak = Double(light) }
      default: break
      }
    }
    return points.flatMap {
      CodePoints(primaries: $0.primaries, transfer: $0.transfer, peak: peak)
    }
  }
}

/// A track of an image sequence (ISO/IEC 14496-12, 8.3). All of it is untrusted input.
struct HEIFTrack {
  let id: Int
  /// `pict` for images, `auxv` for what belongs to them, such as alpha.
  let handler: String
  /// The number of frames.
  let samples: Int
  /// The content of `trak`.
  private let boxes: ByteReader
  /// The content of `stbl`.
  private let table: ByteReader

  /// The type of a box of tracks that `HEIFMending` has hidden: one that no reader knows.
  static let hidden = "pmov"

  /// Returns the tracks of a file.
  static func all(in file: UnsafeRawBufferPointer) -> [HEIFTrack] {
    let boxes = ByteReader(file)
    guard let movie = HEIFBox.first("moov", in: boxes) ?? HEIFBox.first(hidden, in: boxes) else {
      return []
    }
    return HEIFBox.all(in: movie).filter { $0.type == "trak" }.compactMap {
      HEIFTrack($0.content, fileLength: file.count)
    }
  }

  private init?(_ track: ByteReader, fileLength: Int) {
    guard let header = HEIFBox.first("tkhd", in: track),
      let media = HEIFBox.first("mdia", in: track),
      let handler = HEIFBox.first("hdlr", in: media),
      let information = HEIFBox.first("minf", in: media),
      let table = HEIFBox.first("stbl", in: information),
      let sizes = HEIFBox.first("stsz", in: table),
      let version = try? header.number(at: 0, width: 1),
      // Two times precede the number, of 4 or 8 bytes.
      let id = try? header.number(at: version == 1 ? 20 : 12, width: 4),
      let kind = try? handler.part(at: 8, count: 4),
      let size = try? sizes.number(at: 4, width: 4), let count = try? sizes.number(at: 8, width: 4)
    else { return nil }
    self.id = id
    self.handler = String(decoding: kind, as: UTF8.self)
    // Sizes follow unless all are the same; a frame has at least a byte.
    samples = min(count, size == 0 ? (sizes.bytes.count - 12) / 4 : fileLength)
    boxes = track
    self.table = table
  }

  /// Where the first frame is in the file: in front of all others of the first chunk (8.7.3 to
  /// 8.7.5).
  var first: (offset: Int, count: Int)? {
    guard samples > 0, let sizes = HEIFBox.first("stsz", in: table),
      let common = try? sizes.number(at: 4, width: 4),
      let count = common > 0 ? common : try? sizes.number(at: 12, width: 4)
    else { return nil }
    let offset =
      HEIFBox.first("stco", in: table).flatMap { try? $0.number(at: 8, width: 4) }
      ?? HEIFBox.first("co64", in: table).flatMap { try? $0.number(at: 8, width: 8) }
    return offset.map { ($0, count) }
  }

  /// The codec, the size and the properties of the frames: the first sample entry (12.1.3).
  var entry: (codec: String, size: PixelSize, properties: [HEIFBox])? {
    guard var description = HEIFBox.first("stsd", in: table), description.skip(8),
      let entry = HEIFBox.all(in: description).first,
      let width = try? entry.content.number(at: 24, width: 2),
      let height = try? entry.content.number(at: 26, width: 2)
    else { return nil }
    var content = entry.content
    // What all sample entries have, and what those of images have.
    guard content.skip(78), let rest = try? content.reader(of: content.left) else { return nil }
    return (entry.type, PixelSize(width: width, height: height), HEIFBox.all(in: rest))
  }

  /// Returns the numbers of the tracks that this one refers to (8.3.3).
  func references(_ type: String) -> [Int] {
    guard let list = HEIFBox.first("tref", in: boxes), var ids = HEIFBox.first(type, in: list)
    else {
      return []
    }
    return (0..<min(ids.left / 4, 64)).compactMap { _ in try? ids.number(4) }
  }
}
