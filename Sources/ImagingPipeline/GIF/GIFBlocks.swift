// GIFBlocks: walks over the blocks and codes of a GIF, and checks that its frames have all of
// their pixels.

import Core

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

/// Reads the codes of one frame, in blocks of up to 255 bytes (GIF89a, appendix F).
struct GIFCodes {
  /// The maximum number of codes.
  static let maximumCount = 4_096

  private let bytes: UnsafeRawBufferPointer
  private let lengths: UnsafeMutableBufferPointer<Int32>
  private let firstBits: Int
  private var position = 0
  /// The bytes left in the current block.
  private var left = 0
  private var window: UInt32 = 0
  private var count = 0
  private var hasEnded = false

  /// - Parameter lengths: Room for the number of pixels that each code stands for, to count them.
  init(
    bytes: UnsafeRawBufferPointer, bits: Int,
    lengths: UnsafeMutableBufferPointer<Int32> = UnsafeMutableBufferPointer(start: nil, count: 0)
  ) {
    self.bytes = bytes
    self.lengths = lengths
    firstBits = bits
  }

  /// Returns the number of pixels that the codes produce; `nil` for an invalid code. Stops at the
  /// end of the codes, or once `wanted` pixels are reached.
  mutating func countPixels(upTo wanted: Int) -> Int? {
    let clear = 1 << firstBits
    var next = clear + 2
    var size = firstBits + 1
    var last = -1
    for code in 0..<clear { lengths[code] = 1 }
    var pixels = 0
    while pixels < wanted {
      let code = read(size)
      if code < 0 || code == clear + 1 {
        hasEnded = true
        return pixels
      }
      if code == clear {
        next = clear + 2
        size = firstBits + 1
        last = -1
        continue
      }
      guard last >= 0 else {
        guard code < clear else { return nil }
        pixels += 1
        last = code
        continue
      }
      guard code < next || code == next && next < Self.maximumCount else { return nil }
      if next < Self.maximumCount {
        lengths[next] = lengths[last] + 1
        next += 1
        if next == 1 << size && size < 12 { size += 1 }
      }
      pixels += Int(lengths[code])
      last = code
    }
    lastSize = size
    return pixels
  }

  /// Calls `body` for each code with its bits, the end code included. Codes below `1 << bits` are
  /// single colours.
  mutating func forEach(_ body: (_ code: Int, _ size: Int) -> Void) {
    let clear = 1 << firstBits
    var next = clear + 2
    var size = firstBits + 1
    var isFirst = true
    while case let code = read(size), code >= 0 {
      body(code, size)
      if code == clear + 1 { return }
      if code == clear {
        next = clear + 2
        size = firstBits + 1
        isFirst = true
        continue
      }
      if !isFirst && next < Self.maximumCount {
        next += 1
        if next == 1 << size && size < 12 { size += 1 }
      }
      isFirst = false
    }
  }

  private var lastSize = 12

  /// Whether only the end code or padding follows the last pixel.
  var isAtEnd: Bool {
    mutating get {
      if hasEnded { return true }
      let code = read(lastSize)
      if code < 0 || code == 1 << firstBits + 1 { return true }
      // Some writers clear their table before the end code, and some pad with zeros.
      return left == 0 && position + 1 >= bytes.count
        || code == 1 << firstBits && read(firstBits + 1) == 1 << firstBits + 1
    }
  }

  /// Reads the next bits, least significant first; -1 if too few are left.
  @inline(__always)
  private mutating func read(_ bits: Int) -> Int {
    while count < bits {
      if left == 0 {
        // The terminator is a block of length 0; it must be present.
        guard position < bytes.count, bytes[position] > 0 else { return -1 }
        left = Int(bytes[position])
        position += 1
      }
      guard position < bytes.count else { return -1 }
      window |= UInt32(bytes[position]) << UInt32(count)
      position += 1
      left -= 1
      count += 8
    }
    defer {
      window >>= UInt32(bits)
      count -= bits
    }
    return Int(window & (1 << UInt32(bits) - 1))
  }
}

/// Counts the pixels of a GIF's frames without drawing them.
///
/// libnsgif reports success after one complete frame, and fills missing pixels of later frames.
/// This check requires the exact pixel count of each frame. Complete frames need no trailer.
enum GIFCheck {
  private static let truncated = Soundness.damaged(.truncated, "a GIF that ends early")

  static func soundness(of bytes: UnsafeRawBufferPointer) -> Soundness {
    // The number of pixels that each code stands for.
    withUnsafeTemporaryAllocation(of: Int32.self, capacity: GIFCodes.maximumCount) { lengths in
      lengths.initialize(repeating: 0)
      return (try? soundness(of: bytes, lengths)) ?? truncated
    }
  }

  private static func soundness(
    of bytes: UnsafeRawBufferPointer, _ lengths: UnsafeMutableBufferPointer<Int32>
  ) throws(ContainerFault) -> Soundness {
    var blocks = try GIFBlocks(bytes)
    var frames = 0
    var isAnimation = false
    /// Whether a graphic control extension was read, and not yet its frame.
    var isBeforeFrame = false
    while let block = try blocks.next() {
      switch block {
      case .trailer: return frames > 0 ? .whole : .damaged(.error, "a GIF without a frame")
      case .terminator: continue
      case .extension(let label):
        if isLoop(bytes[label...]) { isAnimation = true }
        if bytes[label] == 0xf9 { isBeforeFrame = true }
      case .frame(let frame):
        let soundness = soundness(of: frame, in: bytes, lengths)
        guard soundness == .whole else { return soundness }
        frames += 1
        isBeforeFrame = false
      case .unknown(let kind): return .damaged(.error, "a GIF's block of kind \(kind)")
      }
    }
    // Writers that are stopped leave whole frames. One frame of an animation is a cut one.
    return frames > (isAnimation ? 1 : 0) && !isBeforeFrame ? .whole : truncated
  }

  /// Whether an extension says how often the animation is repeated. Other application extensions
  /// hold metadata such as XMP, which images of one frame have as well.
  private static func isLoop(_ extension: Slice<UnsafeRawBufferPointer>) -> Bool {
    ["NETSCAPE2.0", "ANIMEXTS1.0"].contains { `extension`.starts(with: [0xff, 11] + $0.utf8) }
  }

  private static func soundness(
    of frame: GIFFrame, in bytes: UnsafeRawBufferPointer,
    _ lengths: UnsafeMutableBufferPointer<Int32>
  ) -> Soundness {
    guard (1...8).contains(frame.bits) else {
      return .damaged(.error, "a GIF's codes of \(frame.bits) bits")
    }
    let pixels = frame.area.pixels
    var codes = GIFCodes(
      bytes: UnsafeRawBufferPointer(rebasing: bytes[frame.codes]), bits: frame.bits,
      lengths: lengths)
    guard let found = codes.countPixels(upTo: pixels) else {
      return .damaged(.warning, "a GIF has invalid codes")
    }
    guard found == pixels else {
      return .damaged(.warning, "a GIF's frame of \(found) pixels instead of \(pixels)")
    }
    return codes.isAtEnd
      ? .whole : .damaged(.warning, "a GIF's frame continues after its last pixel")
  }
}
