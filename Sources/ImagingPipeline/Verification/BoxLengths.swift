// BoxLengths: checks the box lengths of HEIC, AVIF, JPEG 2000 and JPEG XL files.

import Model
import Platform

/// Checks the boxes of ISO base media files (ISO/IEC 14496-12, 4.2) and of formats with the same
/// structure (ISO/IEC 15444-1, I.4; ISO/IEC 18181-2, 4.2).
enum BoxLengths {
  /// Checks the lengths of all boxes and the locations of all items.
  ///
  /// - Throws: `ContainerFault`.
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
  /// - Parameter mayBeCut: Whether a box that is longer than the file ends with it, instead of being a fault.
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
