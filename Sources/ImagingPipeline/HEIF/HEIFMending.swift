// HEIFMending: rewrites the boxes of HEICs and AVIFs that browsers show and libheif refuses or
// shows differently.

import Core

/// Changes bytes where they are, and appends others, so that no offset in the file changes. All of
/// the file is untrusted input.
struct HEIFMending {
  private let file: UnsafeRawBufferPointer
  /// New bytes in place of as many.
  private var edits: [(offset: Int, bytes: [UInt8])] = []
  private var appended: [UInt8] = []
  /// How many more items are looked at. Each one reads the lists of all items.
  private var selectionsLeft = 64

  /// Returns the bytes to use in place of a file; `nil` if it stays as it is.
  static func mended(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    var mending = HEIFMending(file: file)
    mending.closeLastBox()
    if let items = HEIFItems(of: file) {
      mending.mendProperties(items)
    } else {
      mending.describeFirstFrame()
    }
    mending.nameStill()
    mending.hideTracks()
    guard !mending.edits.isEmpty else { return nil }
    var bytes = Array(file)
    for (offset, edit) in mending.edits {
      bytes.replaceSubrange(offset..<offset + edit.count, with: edit)
    }
    bytes += mending.appended
    return bytes
  }

  private init(file: UnsafeRawBufferPointer) { self.file = file }

  /// Replaces bytes of the file.
  private mutating func replace(_ place: UnsafeRawBufferPointer, with bytes: [UInt8]) {
    guard let start = place.baseAddress, let base = file.baseAddress, place.count == bytes.count
    else { return }
    edits.append((start - base, bytes))
  }

  /// Gives a box another type.
  private mutating func rename(_ box: HEIFBox, to type: String) {
    guard let content = box.content.bytes.baseAddress else { return }
    // A length of 8 bytes may follow the type.
    let short = UnsafeRawBufferPointer(start: content - 4, count: 4)
    let place =
      short.elementsEqual(box.type.utf8)
      ? short : UnsafeRawBufferPointer(start: content - 12, count: 4)
    replace(place, with: Array(type.utf8))
  }

  /// Hides the tracks. libheif 1.23 reads them even for a still, and refuses unknown kinds.
  private mutating func hideTracks() {
    for box in HEIFBox.all(in: ByteReader(file)) where box.type == "moov" {
      rename(box, to: HEIFTrack.hidden)
    }
  }

  /// Gives the last box its size, if that is 0: up to the end (ISO/IEC 14496-12, 4.2).
  private mutating func closeLastBox() {
    var reader = ByteReader(file)
    while let place = try? reader.part(at: reader.position, count: 4),
      let size = try? reader.number(4),
      let type = try? reader.name()
    {
      if size == 0 {
        let size = reader.left + 8
        // What is no name is no box.
        if size <= UInt32.max, !type.contains("?") { replace(place, with: .number(size, 4)) }
        return
      }
      let large = size == 1 ? try? reader.number(8) : nil
      guard reader.skip(large.map { $0 - 16 } ?? size - 8) else { return }
    }
  }

  /// The properties that change an image; all others say what it is.
  private static let transformations: Set<String> = ["clap", "irot", "imir"]
  /// The properties that select layers of a coded image, which libheif does not know.
  private static let selectors: Set<String> = ["a1op", "lsel"]

  /// Puts properties that change an image behind the others (ISO/IEC 23008-12, 6.5.1): libheif
  /// takes a size that follows them for that of the changed image. Selects layers in the coded
  /// image itself.
  private mutating func mendProperties(_ items: HEIFItems) {
    for list in items.lists where !list.isCut {
      let types = list.associations.map { items.property($0)?.type ?? "" }
      var selected = false
      if types.contains(where: Self.selectors.contains) {
        selected = select(items, of: list.item)
      }
      let keepsOrder =
        isTurned(list, types, in: items) && !isOfCodedSize(list.item, in: items)
      let order =
        keepsOrder
        ? Array(types.indices)
        : types.indices.filter { !Self.transformations.contains(types[$0]) }
          + types.indices.filter { Self.transformations.contains(types[$0]) }
      let isKnown = !selected && order.elementsEqual(types.indices)
      guard !isKnown else { continue }
      for (place, index) in zip(list.associations, order) {
        var bytes = Array(list.associations[index])
        if selected, Self.selectors.contains(types[index]) { bytes[0] &= 0x7f }
        replace(place, with: bytes)
      }
    }
  }

  /// Whether a quarter turn comes before the size.
  private func isTurned(_ list: HEIFItems.PropertyList, _ types: [String], in items: HEIFItems)
    -> Bool
  {
    guard let turn = types.firstIndex(of: "irot"), let size = types.firstIndex(of: "ispe"),
      turn < size,
      let angle = try? items.property(list.associations[turn])?.content.number(at: 0, width: 1)
    else { return false }
    return angle & 1 == 1
  }

  /// Whether an item's size is that of its samples. libheif's encoder gives that of the turned
  /// image, behind the turn, and its decoder expects that.
  private mutating func isOfCodedSize(_ id: Int, in items: HEIFItems) -> Bool {
    guard selectionsLeft > 0 else { return false }
    selectionsLeft -= 1
    guard let item = items.items([id])?.first, let size = item.statedSize else { return false }
    return size == item.codedSize
  }

  /// Makes an item's operating point and layer those that decoders choose.
  ///
  /// - Returns: `false` if it has none of them.
  private mutating func select(_ items: HEIFItems, of id: Int) -> Bool {
    guard selectionsLeft > 0 else { return false }
    selectionsLeft -= 1
    guard let item = items.items([id])?.first, item.type == HEIFImage.Codec.av1.rawValue else {
      return false
    }
    func number(_ type: String, _ width: Int) -> Int? {
      item.properties.first { $0.type == type }.flatMap {
        try? $0.content.number(at: 0, width: width)
      }
    }
    let point = number("a1op", 1) ?? 0
    // The highest number stands for all layers.
    let layer = number("lsel", 2).flatMap { $0 == 0xffff ? nil : $0 }
    guard point > 0 || layer != nil else { return true }
    guard let points = AV1OperatingPoints(of: item.data),
      let edit = points.selecting(point, layer: layer)
    else { return false }
    replace(edit.place, with: edit.bytes)
    return true
  }

  /// Describes the first frame of a sequence as a still's primary image, if nothing else does.
  private mutating func describeFirstFrame() {
    let boxes = HEIFBox.all(in: ByteReader(file))
    let metas = boxes.filter { $0.type == "meta" }
    let hasPrimary = metas.contains { meta in
      var content = meta.content
      return content.skip(4) && HEIFBox.first("pitm", in: content) != nil
    }
    let tracks = HEIFTrack.all(in: file)
    guard !hasPrimary, let track = tracks.first(where: { $0.handler == "pict" }),
      let image = StillItem(firstOf: track, in: file)
    else { return }
    let alpha = tracks.first { other in
      other.references("auxl").contains(track.id)
        && other.entry?.properties.contains(where: \.isAlpha) == true
    }
    for meta in metas { rename(meta, to: "free") }
    appended = image.description(
      alpha: alpha.flatMap { StillItem(firstOf: $0, in: file) },
      isPremultiplied: alpha.map { track.references("prem").contains($0.id) } ?? false, width: 8)
  }

  /// Names the brand of stills in a file that has only those of sequences.
  private mutating func nameStill() {
    guard let brands = HEIFBox.first("ftyp", in: ByteReader(file))?.bytes, brands.count >= 12 else {
      return
    }
    let names = stride(from: 8, to: brands.count - 3, by: 4).map {
      String(decoding: brands[$0..<$0 + 4], as: UTF8.self)
    }
    guard !names.contains(where: ["mif1", "heic", "heix", "avif"].contains) else { return }
    let isAVIF = FormatSigns.format(of: file) == .avif
    replace(
      UnsafeRawBufferPointer(rebasing: brands[8..<12]), with: Array((isAVIF ? "avif" : "heic").utf8)
    )
  }
}

extension [UInt8] {
  /// Returns the big-endian bytes of a number.
  static func number(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Returns a box with its header.
  static func box(_ type: String, _ content: [UInt8]...) -> [UInt8] {
    number(8 + content.reduce(0) { $0 + $1.count }, 4) + Array(type.utf8) + content.flatMap(\.self)
  }
}

/// An item with its properties, as boxes: a still, or the first frame of a track (ISO/IEC
/// 23008-12).
struct StillItem {
  let type: String
  let place: (offset: Int, count: Int)
  /// The boxes of its properties, with what changes the image at the end.
  var properties: [[UInt8]]

  private static let essential = Set(["av1C", "hvcC", "clap", "irot", "imir"])

  /// Returns `meta` of this item as the primary image.
  ///
  /// - Parameter width: The bytes of an offset and of a length: 4 or 8.
  func description(alpha: StillItem?, isPremultiplied: Bool, width: Int) -> [UInt8] {
    var items = [self]
    if var alpha {
      let kind = Array("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha".utf8) + [0]
      alpha.properties.append(.box("auxC", .number(0, 4), kind))
      items.append(alpha)
    }
    var locations: [UInt8] = []
    var entries: [UInt8] = []
    var associations: [UInt8] = []
    var count = 0
    for (index, item) in items.enumerated() {
      let id = [UInt8].number(index + 1, 2)
      // The item is in one piece.
      locations += id + .number(0, 2) + .number(1, 2)
      locations += .number(item.place.offset, width) + .number(item.place.count, width)
      entries += .box("infe", [2, 0, 0, 0], id, .number(0, 2), Array(item.type.utf8), [0])
      associations += id + .number(item.properties.count, 1)
      for property in item.properties {
        count += 1
        let name = String(decoding: property[4..<8], as: UTF8.self)
        associations.append(UInt8(count) | (Self.essential.contains(name) ? 0x80 : 0))
      }
    }
    var references: [UInt8] = []
    if alpha != nil {
      references += .box("auxl", .number(2, 2), .number(1, 2), .number(1, 2))
      if isPremultiplied {
        references += .box("prem", .number(1, 2), .number(1, 2), .number(2, 2))
      }
    }
    return .box(
      "meta", .number(0, 4), .box("hdlr", .number(0, 8), Array("pict".utf8), .number(0, 13)),
      .box("pitm", .number(0, 4), .number(1, 2)),
      .box("iloc", .number(0, 4), [UInt8(width * 0x11), 0], .number(items.count, 2), locations),
      .box("iinf", .number(0, 4), .number(items.count, 2), entries),
      references.isEmpty ? [] : .box("iref", .number(0, 4), references),
      .box(
        "iprp", .box("ipco", items.flatMap { $0.properties.flatMap(\.self) }),
        .box("ipma", .number(0, 4), .number(items.count, 4), associations)))
  }
}

extension StillItem {
  /// The properties of a track that an item has as well.
  private static let known = [
    "av1C", "hvcC", "colr", "pixi", "clli", "mdcv", "clap", "irot", "imir",
  ]

  /// - Returns: `nil` for other codecs, and for a frame that is not in the file.
  init?(firstOf track: HEIFTrack, in file: UnsafeRawBufferPointer) {
    guard let entry = track.entry, let place = track.first,
      (try? ByteReader(file).part(at: place.offset, count: place.count)) != nil
    else { return nil }
    switch entry.codec {
    case "av01": type = "av01"
    case "hvc1", "hev1": type = "hvc1"
    default: return nil
    }
    self.place = place
    properties =
      [.box("ispe", .number(0, 4), .number(entry.size.width, 4), .number(entry.size.height, 4))]
      + Self.known.flatMap { name in
        entry.properties.filter { $0.type == name }.prefix(2).map {
          .box($0.type, Array($0.content.bytes))
        }
      }
  }
}
