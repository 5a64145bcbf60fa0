// GIFTransparency: what no frame of a GIF covers is transparent, as in browsers.

import Core

/// Adds transparent indices to frames of a GIF that leave parts of the canvas uncovered.
///
/// libnsgif clears to transparent, and libvips keeps alpha, only where a frame has a transparent
/// index. Otherwise they show black or the background colour. An index that no pixel uses changes
/// nothing else. In a frame that uses all 256, one becomes the index of the closest colour.
enum GIFTransparency {
  /// The delay of frames without one, in hundredths of a second: libnsgif's.
  private static let usualDelay: UInt8 = 10
  /// The most frames that libnsgif reads.
  private static let maximumFrames = 4_097

  /// Returns the GIF with transparent indices; `nil` if every shown frame covers the canvas.
  static func mended(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard var blocks = try? GIFBlocks(file) else { return nil }
    let (canvas, colours) = (blocks.canvas, blocks.colours)
    var frames: [GIFFrame] = []
    // Up to the end, or to the first fault.
    loop: while let block = try? blocks.next() {
      switch block {
      case .frame(let frame) where (1...8).contains(frame.bits): frames.append(frame)
      case .extension, .terminator: continue
      default: break loop
      }
    }
    guard hasGaps(frames, of: file, canvas: canvas) else { return nil }
    var chosen = frames.dropLast().filter { $0.disposal(file) == 2 && !$0.isTransparent(file) }
    if chosen.isEmpty, !frames.contains(where: { $0.isTransparent(file) }) { chosen = frames }
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
      if index == nil, let pair = closestColours(frame.colours ?? colours, in: file) {
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
  private static func hasGaps(
    _ frames: [GIFFrame], of file: UnsafeRawBufferPointer, canvas: GIFArea
  ) -> Bool {
    var gap: GIFArea? = canvas
    for frame in frames {
      var shown = gap
      if let area = gap, !frame.isTransparent(file), frame.area.covers(area) { shown = nil }
      if shown != nil { return true }
      switch frame.disposal(file) {
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
  /// After a clear code, each colour appears first as a code of its own, so other codes need not be
  /// resolved.
  private static func unusedIndex(of frame: GIFFrame, in file: UnsafeRawBufferPointer) -> UInt8? {
    guard frame.bits == 8 else { return 255 }
    var used = [Bool](repeating: false, count: 256)
    var codes = GIFCodes(
      bytes: UnsafeRawBufferPointer(rebasing: file[frame.codes]), bits: frame.bits)
    codes.forEach { code, _ in if code < 256 { used[code] = true } }
    return used.lastIndex(of: false).map { UInt8($0) }
  }

  /// Returns the two indices of a table's 256 colours that differ least, of those that are nearly
  /// as light; `nil` if it has fewer.
  private static func closestColours(
    _ table: Range<Int>?, in file: UnsafeRawBufferPointer
  ) -> (UInt8, UInt8)? {
    guard let own = table, own.count == 768 else { return nil }
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

  /// Returns the blocks of a frame's codes with one index in place of another. Longer codes stand
  /// for strings of the single ones before them, so they need no change.
  private static func replaced(
    _ index: UInt8, by other: UInt8, in frame: GIFFrame, of file: UnsafeRawBufferPointer
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    var window = 0
    var count = 0
    var codes = GIFCodes(
      bytes: UnsafeRawBufferPointer(rebasing: file[frame.codes]), bits: frame.bits)
    codes.forEach { code, size in
      window |= (code == Int(index) ? Int(other) : code) << count
      count += size
      while count >= 8 {
        bytes.append(UInt8(truncatingIfNeeded: window))
        window >>= 8
        count -= 8
      }
    }
    if count > 0 { bytes.append(UInt8(truncatingIfNeeded: window)) }
    return stride(from: 0, to: bytes.count, by: 255).flatMap { start in
      let block = bytes[start..<min(start + 255, bytes.count)]
      return [UInt8(block.count)] + block
    } + [0]
  }
}

extension GIFFrame {
  /// What becomes of the frame's area before the next one (GIF89a, section 23).
  fileprivate func disposal(_ file: UnsafeRawBufferPointer) -> UInt8 {
    control.map { file[$0] >> 2 & 7 } ?? 0
  }

  fileprivate func isTransparent(_ file: UnsafeRawBufferPointer) -> Bool {
    control.map { file[$0] & 1 != 0 } ?? false
  }
}
