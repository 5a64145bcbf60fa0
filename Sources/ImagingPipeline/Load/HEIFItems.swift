// HEIFItems: finds the items of a HEIC or AVIF: their types, properties, parts and bytes.

import Platform

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

  /// - Returns: `nil` if the file has no primary item or no properties; and for two descriptions (`meta`), of which readers
  ///   choose different ones.
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
    for box in associations {
      var content = box.content
      guard let version = try? content.number(1), let flags = try? content.number(3),
        let entries = try? content.number(4)
      else { continue }
      let isWide = flags & 1 != 0
      var entry = 0
      while entry < entries, let id = try? content.number(version == 0 ? 2 : 4),
        let count = try? content.number(1)
      {
        let list = try? content.take(count * (isWide ? 2 : 1))
        if ids.contains(id) {
          guard found[id] == nil, let list else { return nil }
          found[id] = self.properties(list, isWide: isWide)
        }
        guard list != nil else { break }
        entry += 1
      }
    }
    return found
  }

  /// Returns properties by a list of their indices. The highest bit of an index marks an essential property.
  private func properties(_ list: UnsafeRawBufferPointer, isWide: Bool) -> [HEIFBox] {
    let indices =
      isWide
      ? stride(from: 0, to: list.count, by: 2).map { Int(list[$0] & 0x7f) << 8 | Int(list[$0 + 1]) }
      : list.map { Int($0 & 0x7f) }
    return indices.compactMap { properties.indices.contains($0 - 1) ? properties[$0 - 1] : nil }
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
    guard var list = boxes.first(where: { $0.type == "iref" })?.content,
      let version = try? list.number(1), list.skip(3)
    else { return [] }
    let width = version == 0 ? 2 : 4
    for box in HEIFBox.all(in: list) where box.type == "dimg" {
      var entry = box.content
      guard (try? entry.number(width)) == item, let count = try? entry.number(2),
        count <= entry.left / width
      else { continue }
      return (0..<count).compactMap { _ in try? entry.number(width) }
    }
    return []
  }

  /// Returns the bytes of items (ISO/IEC 14496-12, 8.11.3), without those in any other arrangement than one extent.
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
