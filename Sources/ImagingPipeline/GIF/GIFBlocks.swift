// GIFBlocks: walks over the blocks of a GIF, the only reader of their structure.

import Platform

/// The blocks of a GIF, one after another (GIF89a, appendix B). All of it is untrusted input.
struct GIFBlocks {
  enum Block {
    case frame(GIFFrame)
    /// An extension with the offset of its label.
    case `extension`(Int)
    /// Some writers repeat the terminator of a block.
    case terminator
    case trailer
    case unknown(UInt8)
  }

  let canvas: GIFArea
  /// Where the colours of all frames are that have none of their own.
  let colours: Range<Int>?
  private let file: UnsafeRawBufferPointer
  private var position = 13
  /// The offset of the flags of a graphic control extension whose frame follows.
  private var control: Int?

  /// Reads the screen and its colours.
  init(_ file: UnsafeRawBufferPointer) throws(ContainerFault) {
    guard file.count >= 13 else { throw .excess("the screen", 7, max(file.count - 6, 0)) }
    self.file = file
    canvas = GIFArea(left: 0, top: 0, right: file.little(at: 6), bottom: file.little(at: 8))
    let length = Self.tableLength(file[10])
    guard length <= file.count - 13 else {
      throw .excess("a colour table", length, file.count - 13)
    }
    colours = length > 0 ? 13..<13 + length : nil
    position += length
  }

  /// Returns the next block; `nil` at the end of the file.
  mutating func next() throws(ContainerFault) -> Block? {
    guard position < file.count else { return nil }
    let start = position
    position += 1
    switch file[start] {
    case 0x2c: return .frame(try frame(at: start))
    case 0x21:
      let label = position
      guard position < file.count else { throw .excess("an extension", 1, 0) }
      position += 1
      try skipBlocks()
      if file[label] == 0xf9, file[label + 1] == 4 { control = label + 2 }
      return .extension(label)
    case 0: return .terminator
    case 0x3b: return .trailer
    case let kind: return .unknown(kind)
    }
  }

  private mutating func frame(at start: Int) throws(ContainerFault) -> GIFFrame {
    guard file.count - position >= 9 else { throw .excess("an image", 9, file.count - position) }
    let (left, top) = (file.little(at: position), file.little(at: position + 2))
    let area = GIFArea(
      left: left, top: top, right: left + file.little(at: position + 4),
      bottom: top + file.little(at: position + 6))
    let length = Self.tableLength(file[position + 8])
    position += 9
    guard length <= file.count - position else {
      throw .excess("a colour table", length, file.count - position)
    }
    let colours = length > 0 ? position..<position + length : nil
    position += length
    guard position < file.count else { throw .excess("an image", 1, 0) }
    let bits = Int(file[position])
    position += 1
    let codes = position
    try skipBlocks()
    defer { control = nil }
    return GIFFrame(
      start: start, area: area, control: control, colours: colours, bits: bits,
      codes: codes..<position)
  }

  /// The bytes of a colour table, by the flags before it.
  private static func tableLength(_ flags: UInt8) -> Int {
    flags & 0x80 != 0 ? 6 << Int(flags & 7) : 0
  }

  /// Skips sub-blocks and the empty one at their end.
  private mutating func skipBlocks() throws(ContainerFault) {
    while position < file.count {
      let length = Int(file[position])
      position += 1
      if length == 0 { return }
      guard length <= file.count - position else {
        throw .excess("a block", length, file.count - position)
      }
      position += length
    }
    throw .excess("a row of blocks", 1, 0)
  }
}

/// An image of a GIF.
struct GIFFrame {
  /// The offset of its descriptor.
  let start: Int
  let area: GIFArea
  /// The offset of the flags of its graphic control extension; `nil` without one.
  let control: Int?
  /// Where its own colours are; `nil` if it has those of the file.
  let colours: Range<Int>?
  /// The bits of a colour in its codes. Valid are 1 to 8.
  let bits: Int
  /// Where its codes are, in blocks.
  let codes: Range<Int>
}

/// A rectangle of a GIF's canvas.
struct GIFArea {
  let left: Int
  let top: Int
  let right: Int
  let bottom: Int

  var pixels: Int { (right - left) * (bottom - top) }

  func covers(_ other: GIFArea) -> Bool {
    left <= other.left && top <= other.top && right >= other.right && bottom >= other.bottom
  }

  /// Returns the part that both have; `nil` if they have none in common.
  func common(with other: GIFArea) -> GIFArea? {
    let both = GIFArea(
      left: max(left, other.left), top: max(top, other.top), right: min(right, other.right),
      bottom: min(bottom, other.bottom))
    return both.left < both.right && both.top < both.bottom ? both : nil
  }
}

extension UnsafeRawBufferPointer {
  /// Returns a number of two bytes. The caller checks that they are there.
  fileprivate func little(at offset: Int) -> Int { Int(self[offset]) | Int(self[offset + 1]) << 8 }
}
