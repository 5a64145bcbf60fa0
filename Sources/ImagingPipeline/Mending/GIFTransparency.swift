// GIFTransparency: what no frame of a GIF covers is transparent, as in browsers.

import Model

/// Adds transparent indices to frames of a GIF that leave parts of the canvas uncovered.
///
/// libnsgif clears to transparent, and libvips keeps alpha, only where a frame has a transparent index. Otherwise they show
/// black or the background colour. An index that no pixel uses changes nothing else.
enum GIFTransparency {
  private struct Frame {
    /// The offset of the image descriptor.
    let start: Int
    let area: GIFArea
    /// The offset of the flags of the last graphic control extension; `nil` without one.
    let control: Int?
    let disposal: UInt8
    let isTransparent: Bool
    /// The offset of the codes, and their bits.
    let codes: Range<Int>
    let bits: Int
  }

  /// The delay of frames without one, in hundredths of a second: libnsgif's.
  private static let usualDelay: UInt8 = 10

  /// Returns the GIF with transparent indices; `nil` if every shown frame covers the canvas, or none can be added.
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
    for frame in chosen {
      guard let index = unusedIndex(of: frame, in: file) else { continue }
      if let control = frame.control {
        result += file[done..<control]
        result += [file[control] | 1, file[control + 1], file[control + 2], index]
        done = control + 4
      } else {
        result += file[done..<frame.start]
        result += [0x21, 0xf9, 4, 1, usualDelay, 0, index, 0]
        done = frame.start
      }
      if isForAlphaAlone { break }
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
      codes.forEachColour { used[$0] = true }
    }
    return used.lastIndex(of: false).map { UInt8($0) }
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
            codes: codes..<position, bits: bits))
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
