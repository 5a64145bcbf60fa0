// GIFCheck: checks that each frame of a GIF has all of its pixels, and that the file is complete.

import Model

/// Walks over a GIF's blocks (GIF89a, appendix B) and the codes of its frames without drawing them.
///
/// libnsgif reports success after one complete frame, and fills missing pixels of later frames.
/// This check requires the exact pixel count of each frame. Complete frames need no trailer.
struct GIFCheck {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  private var frames = 0
  private var isAnimation = false
  /// Whether a graphic control extension was read, and not yet its frame.
  private var isBeforeFrame = false
  /// The number of pixels that each code stands for. The memory is owned by the caller of `init`.
  private let lengths: UnsafeMutableBufferPointer<Int32>

  static func soundness(of bytes: UnsafeRawBufferPointer) -> Soundness {
    withUnsafeTemporaryAllocation(of: Int32.self, capacity: GIFCodes.maximumCount) { lengths in
      lengths.initialize(repeating: 0)
      var check = GIFCheck(bytes: bytes, lengths: lengths)
      return check.run()
    }
  }

  private init(bytes: UnsafeRawBufferPointer, lengths: UnsafeMutableBufferPointer<Int32>) {
    self.bytes = bytes
    self.lengths = lengths
  }

  private static let truncated = Soundness.damaged(.truncated, "a GIF that ends early")

  private mutating func run() -> Soundness {
    guard bytes.count >= 13 else { return Self.truncated }
    position = 13
    guard skipColours(bytes[10]) else { return Self.truncated }
    while position < bytes.count {
      let kind = bytes[position]
      position += 1
      switch kind {
      case 0x3b: return frames > 0 ? .whole : .damaged(.error, "a GIF without a frame")
      // Some writers repeat the block terminator.
      case 0: continue
      case 0x21:
        guard position + 1 < bytes.count else { return Self.truncated }
        if isLoop(at: position) { isAnimation = true }
        if bytes[position] == 0xf9 { isBeforeFrame = true }
        position += 1
        guard skipBlocks() else { return Self.truncated }
      case 0x2c:
        let soundness = readFrame()
        guard soundness == .whole else { return soundness }
        frames += 1
        isBeforeFrame = false
      default: return .damaged(.error, "a GIF's block of kind \(kind)")
      }
    }
    // Writers that are stopped leave whole frames. One frame of an animation is a cut one.
    return frames > (isAnimation ? 1 : 0) && !isBeforeFrame ? .whole : Self.truncated
  }

  /// Whether the extension at `position` says how often the animation is repeated. Other application extensions hold
  /// metadata such as XMP, which images of one frame have as well.
  private func isLoop(at position: Int) -> Bool {
    guard bytes[position] == 0xff, position + 13 <= bytes.count, bytes[position + 1] == 11 else {
      return false
    }
    let name = bytes[position + 2..<position + 13]
    return name.elementsEqual("NETSCAPE2.0".utf8) || name.elementsEqual("ANIMEXTS1.0".utf8)
  }

  private mutating func skipColours(_ flags: UInt8) -> Bool {
    if flags & 0x80 != 0 { position += 3 << (Int(flags & 7) + 1) }
    return position <= bytes.count
  }

  private mutating func skipBlocks() -> Bool {
    while position < bytes.count {
      let length = Int(bytes[position])
      position += 1 + length
      if length == 0 { return true }
    }
    return false
  }

  private mutating func readFrame() -> Soundness {
    guard position + 9 <= bytes.count else { return Self.truncated }
    func little(_ offset: Int) -> Int {
      Int(bytes[position + offset]) | Int(bytes[position + offset + 1]) << 8
    }
    let pixels = little(4) * little(6)
    let flags = bytes[position + 8]
    position += 9
    guard skipColours(flags), position < bytes.count else { return Self.truncated }
    let bits = Int(bytes[position])
    position += 1
    guard (1...8).contains(bits) else { return .damaged(.error, "a GIF's codes of \(bits) bits") }
    let start = position
    guard skipBlocks() else { return Self.truncated }
    var codes = GIFCodes(
      bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<position]), bits: bits,
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

  init(bytes: UnsafeRawBufferPointer, bits: Int, lengths: UnsafeMutableBufferPointer<Int32>) {
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

  /// Calls `body` for each code with its bits, the end code included. Codes below `1 << bits` are single colours.
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
