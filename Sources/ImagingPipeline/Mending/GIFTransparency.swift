// GIFTransparency: what no frame of a GIF covers is transparent, as in browsers.

import Model

/// Adds transparent indices to frames of a GIF that leave parts of the canvas uncovered.
///
/// libnsgif clears to transparent, and libvips keeps alpha, only where a frame has a transparent index. Otherwise they show
/// black or the background colour. An index that no pixel uses changes nothing else. In a frame that uses all 256, one
/// becomes the index of the closest colour.
enum GIFTransparency {
  private struct Frame {
    /// The offset of the image descriptor.
    let start: Int
    let area: GIFArea
    /// The offset of the flags of the last graphic control extension; `nil` without one.
    let control: Int?
    let disposal: UInt8
    let isTransparent: Bool
    /// The place of its own colours; `nil` if it has those of the file.
    let colours: Range<Int>?
    /// The offset of the codes, and their bits.
    let codes: Range<Int>
    let bits: Int
  }

  /// The delay of frames without one, in hundredths of a second: libnsgif's.
  private static let usualDelay: UInt8 = 10
  /// The most frames that libnsgif reads.
  private static let maximumFrames = 4_097

  /// Returns the GIF with transparent indices; `nil` if every shown frame covers the canvas.
  static func mended(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard file.count >= 13 else { return nil }
    func little(_ offset: Int) -> Int { Int(file[offset]) | Int(file[offset + 1]) << 8 }
    let canvas = GIFArea(left: 0, top: 0, right: little(6), bottom: little(8))
    let frames = frames(of: file)
    guard hasGaps(frames, canvas: canvas) else { return nil }
    var chosen = frames.dropLast().filter { $0.disposal == 2 && !$0.isTransparent }
    if chosen.isEmpty, !frames.contains(where: \.isTransparent) { chosen = frames }
    let isForAlphaAlone = chosen.count == frames.count
    var result: [UInt8] = []
    var done = 0
    // One frame is enough for alpha alone: one that need not lose a colour, if there is one.
    if isForAlphaAlone {
      let index = chosen.firstIndex { unusedIndex(of: $0, in: file) != nil } ?? 0
      chosen = Array(chosen.dropFirst(index).prefix(1))
    }
    for frame in chosen.prefix(maximumFrames) {
      var codes: [UInt8]?
      var index = unusedIndex(of: frame, in: file)
      if index == nil, let pair = closestColours(of: frame, in: file) {
        index = pair.0
        codes = replaced(pair.0, by: pair.1, in: frame, of: file)
      }
      guard let index else { continue }
      if let control = frame.control {
        result += file[done..<control]
        result += [file[control] | 1, file[control + 1], file[control + 2], index]
        done = control + 4
      } else {
        result += file[done..<frame.start]
        result += [0x21, 0xf9, 4, 1, usualDelay, 0, index, 0]
        done = frame.start
      }
      if let codes {
        result += file[done..<frame.codes.lowerBound] + codes
        done = frame.codes.upperBound
      }
    }
    return done == 0 ? nil : result + file[done...]
  }

  /// Whether a shown frame leaves a part of the canvas uncovered (GIF89a, section 23).
  private static func hasGaps(_ frames: [Frame], canvas: GIFArea) -> Bool {
    var gap: GIFArea? = canvas
    for frame in frames {
      var shown = gap
      if let area = gap, !frame.isTransparent, frame.area.covers(area) { shown = nil }
      if shown != nil { return true }
      switch frame.disposal {
      case 2: gap = frame.area.common(with: canvas)
      // The previous content: nothing before the first frames that remain.
      case 3, 4: break
      default: gap = nil
      }
    }
    return false
  }

  /// Returns an index that no pixel of a frame has.
  ///
  /// After a clear code, each colour appears first as a code of its own, so other codes need not be resolved.
  private static func unusedIndex(of frame: Frame, in file: UnsafeRawBufferPointer) -> UInt8? {
    guard frame.bits == 8 else { return 255 }
    var used = [Bool](repeating: false, count: 256)
    withUnsafeTemporaryAllocation(of: Int32.self, capacity: 0) { none in
      var codes = GIFCodes(
        bytes: UnsafeRawBufferPointer(rebasing: file[frame.codes]), bits: frame.bits,
        lengths: none)
      codes.forEach { code, _ in if code < 256 { used[code] = true } }
    }
    return used.lastIndex(of: false).map { UInt8($0) }
  }

  /// Returns the two indices of a frame's 256 colours that differ least, of those that are nearly as light; `nil` if it has
  /// fewer.
  private static func closestColours(
    of frame: Frame, in file: UnsafeRawBufferPointer
  ) -> (UInt8, UInt8)? {
    let own = frame.colours ?? (file[10] & 0x80 != 0 ? 13..<13 + (6 << Int(file[10] & 7)) : 0..<0)
    guard own.count == 768, own.upperBound <= file.count else { return nil }
    let colours = stride(from: own.lowerBound, to: own.upperBound, by: 3).map {
      SIMD3(Int(file[$0]), Int(file[$0 + 1]), Int(file[$0 + 2]))
    }
    let light = colours.map { ($0 &* SIMD3(2, 5, 1)).wrappedSum() }
    let order = colours.indices.sorted { light[$0] < light[$1] }
    var least = Int.max
    var pair: (UInt8, UInt8)?
    for (place, first) in order.enumerated() {
      for second in order.dropFirst(place + 1).prefix(8) {
        let difference = colours[first] &- colours[second]
        let square = (difference &* difference).wrappedSum()
        if square < least { (least, pair) = (square, (UInt8(first), UInt8(second))) }
      }
    }
    return pair
  }

  /// Returns the blocks of a frame's codes with one index in place of another. Longer codes stand for strings of the
  /// single ones before them, so they need no change.
  private static func replaced(
    _ index: UInt8, by other: UInt8, in frame: Frame, of file: UnsafeRawBufferPointer
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    var window = 0
    var count = 0
    withUnsafeTemporaryAllocation(of: Int32.self, capacity: 0) { none in
      var codes = GIFCodes(
        bytes: UnsafeRawBufferPointer(rebasing: file[frame.codes]), bits: frame.bits,
        lengths: none)
      codes.forEach { code, size in
        window |= (code == Int(index) ? Int(other) : code) << count
        count += size
        while count >= 8 {
          bytes.append(UInt8(truncatingIfNeeded: window))
          window >>= 8
          count -= 8
        }
      }
    }
    if count > 0 { bytes.append(UInt8(truncatingIfNeeded: window)) }
    return stride(from: 0, to: bytes.count, by: 255).flatMap { start in
      let block = bytes[start..<min(start + 255, bytes.count)]
      return [UInt8(block.count)] + block
    } + [0]
  }

  /// Returns the frames up to the end, or to the first fault.
  private static func frames(of file: UnsafeRawBufferPointer) -> [Frame] {
    var frames: [Frame] = []
    var position = 13
    var control: Int?
    func skipColours(_ flags: UInt8) {
      if flags & 0x80 != 0 { position += 3 << (Int(flags & 7) + 1) }
    }
    /// Skips sub-blocks; returns whether they end within the file.
    func skipBlocks() -> Bool {
      while position < file.count {
        let length = Int(file[position])
        position += 1 + length
        if length == 0 { return true }
      }
      return false
    }
    skipColours(file[10])
    while position < file.count {
      let start = position
      position += 1
      switch file[start] {
      case 0: continue
      case 0x21:
        guard start + 7 < file.count else { return frames }
        if file[start + 1] == 0xf9, file[start + 2] == 4 { control = start + 3 }
        position += 1
        guard skipBlocks() else { return frames }
      case 0x2c:
        guard start + 10 < file.count else { return frames }
        let sides = stride(from: start + 1, to: start + 9, by: 2).map {
          Int(file[$0]) | Int(file[$0 + 1]) << 8
        }
        position = start + 10
        skipColours(file[start + 9])
        let colours = position > start + 10 ? start + 10..<position : nil
        guard position < file.count, (1...8).contains(file[position]) else { return frames }
        let bits = Int(file[position])
        position += 1
        let codes = position
        guard skipBlocks() else { return frames }
        let flags = control.map { file[$0] } ?? 0
        frames.append(
          Frame(
            start: start,
            area: GIFArea(
              left: sides[0], top: sides[1], right: sides[0] + sides[2],
              bottom: sides[1] + sides[3]),
            control: control, disposal: flags >> 2 & 7, isTransparent: flags & 1 != 0,
            colours: colours, codes: codes..<position, bits: bits))
        control = nil
      default: return frames
      }
    }
    return frames
  }
}

/// A rectangle of a GIF's canvas.
private struct GIFArea {
  let left: Int
  let top: Int
  let right: Int
  let bottom: Int

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
