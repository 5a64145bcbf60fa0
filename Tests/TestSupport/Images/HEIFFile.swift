// HEIFFile: HEIC and AVIF files of given items, in arrangements that encoders do not write.

import Core

/// A file of coded images and their descriptions (ISO/IEC 23008-12).
public struct HEIFFile {
  /// A coded image.
  public struct Item {
    /// Four characters: `av01`, `hvc1`.
    public var type: String
    /// The coded image.
    public var data: [UInt8]
    /// The boxes of its properties, in the order in which they apply.
    public var properties: [[UInt8]]

    /// Creates an item.
    public init(type: String, data: [UInt8], properties: [[UInt8]]) {
      self.type = type
      self.data = data
      self.properties = properties
    }
  }

  /// The items, numbered from 1 on. The first one is the primary one.
  public var items: [Item]
  /// References from an item to others: their type, and the numbers.
  public var references: [(type: String, item: Int, others: [Int])] = []
  /// The types of properties that a reader has to know.
  public var essential: Set<String> = ["av1C", "hvcC", "irot", "imir", "clap"]
  /// Whether the last box is of size 0, which means up to the end.
  public var isOpen = false
  /// Whether the data of the first item are in `meta`, not beside the others.
  public var isInMeta = false
  /// Whether `meta` comes after the coded images.
  public var isMetaLast = false

  /// Creates a file of items.
  public init(_ items: [Item], change: (inout HEIFFile) -> Void = { _ in }) {
    self.items = items
    change(&self)
  }

  /// Creates a file of the only image of an AVIF, with this colour description (`colr`) and no
  /// other; without one, that of the coded image counts.
  public init(avif: [UInt8], colours: [UInt8]?) throws {
    guard let data = Boxes.first("mdat", in: avif), let size = Boxes.first("ispe", in: avif),
      let configuration = Boxes.first("av1C", in: avif)
    else { throw TestImages.Failure(text: "no AVIF") }
    self.init([
      Item(
        type: "av01", data: Array(data.dropFirst(8)),
        properties: [size, configuration] + (colours.map { [$0] } ?? []))
    ])
  }

  private typealias Boxes = HEIFBoxes

  /// Puts an item beside itself: a grid of it takes its place and what is no property of tiles, and
  /// two tiles follow all items.
  public mutating func tile(_ number: Int) {
    let item = items[number - 1]
    let ofTiles = item.properties.filter {
      ["ispe", "av1C", "hvcC", "colr"].contains(Self.type(of: $0))
    }
    let properties = item.properties.compactMap { property -> [UInt8]? in
      guard Self.type(of: property) == "ispe" else {
        return ofTiles.contains(property) ? nil : property
      }
      let width = property[12..<16].reduce(0) { $0 << 8 | Int($1) }
      return Array(property[..<12]) + Boxes.number(2 * width, width: 4) + property[16...]
    }
    let size = properties.first { Self.type(of: $0) == "ispe" } ?? []
    items[number - 1] = Item(
      type: "grid", data: [0, 1, 0, 1] + Array(size.dropFirst(12)), properties: properties)
    let tile = Item(type: item.type, data: item.data, properties: ofTiles)
    items += [tile, tile]
    references.append(("dimg", number, [items.count - 1, items.count]))
  }

  private static func type(of property: [UInt8]) -> String {
    String(decoding: property[4..<8], as: UTF8.self)
  }

  /// The file.
  public var bytes: [UInt8] {
    let brand = items.contains { $0.type == "av01" } ? "avif" : "heic"
    let head = Boxes.box(
      "ftyp", content: Array(brand.utf8) + [0, 0, 0, 0] + Array("\(brand)mif1".utf8))
    var data = Boxes.box("mdat", content: items[(isInMeta ? 1 : 0)...].flatMap(\.data))
    guard !isMetaLast else {
      var meta = meta(from: head.count + 8)
      if isOpen { meta.replaceSubrange(..<4, with: [0, 0, 0, 0]) }
      return head + data + meta
    }
    let start = head.count + meta(from: 0).count + 8
    if isOpen { data.replaceSubrange(..<4, with: [0, 0, 0, 0]) }
    return head + meta(from: start) + data
  }

  /// Returns `meta` of items whose data begin at `start`.
  private func meta(from start: Int) -> [UInt8] {
    // Only the second version says that data are in `meta`.
    var locations: [UInt8] = [isInMeta ? 1 : 0, 0, 0, 0, 0x44, 0]
    locations += Boxes.number(items.count, width: 2)
    var entries: [UInt8] = [0, 0, 0, 0] + Boxes.number(items.count, width: 2)
    var properties: [[UInt8]] = []
    var associations: [UInt8] = [0, 0, 0, 0] + Boxes.number(items.count, width: 4)
    var offset = start
    for (index, item) in items.enumerated() {
      let id = Boxes.number(index + 1, width: 2)
      let isInner = isInMeta && index == 0
      locations += id + (isInMeta ? [0, isInner ? 1 : 0] : []) + [0, 0, 0, 1]
      locations += Boxes.number(isInner ? 0 : offset, width: 4)
      locations += Boxes.number(item.data.count, width: 4)
      if !isInner { offset += item.data.count }
      entries += Boxes.box(
        "infe", content: [2, 0, 0, 0] + id + [0, 0] + Array(item.type.utf8) + [0])
      associations += id + [UInt8(item.properties.count)]
      for property in item.properties {
        if !properties.contains(property) { properties.append(property) }
        let number = UInt8(properties.firstIndex(of: property) ?? 0) + 1
        associations.append(number | (essential.contains(Self.type(of: property)) ? 0x80 : 0))
      }
    }
    let links = references.flatMap { reference in
      Boxes.box(
        reference.type,
        content: ([reference.item, reference.others.count] + reference.others).flatMap {
          Boxes.number($0, width: 2)
        })
    }
    let zeros = [UInt8](repeating: 0, count: 13)
    return Boxes.box(
      "meta",
      content: [0, 0, 0, 0]
        + Boxes.box("hdlr", content: zeros[..<8] + Array("pict".utf8) + zeros)
        + Boxes.box("pitm", content: [0, 0, 0, 0, 0, 1])
        + Boxes.box("iloc", content: locations) + Boxes.box("iinf", content: entries)
        + (links.isEmpty ? [] : Boxes.box("iref", content: [0, 0, 0, 0] + links))
        + Boxes.box(
          "iprp",
          content: Boxes.box("ipco", content: properties.flatMap(\.self))
            + Boxes.box("ipma", content: associations))
        + (isInMeta ? Boxes.box("idat", content: items[0].data) : []))
  }
}
