// CodedGIF: GIFs written from palette indices, with the expected frames.

import Core
import TestSupport

/// An animated GIF (GIF89a) without compression.
struct CodedGIF {
  /// A frame: an area of the screen and its content.
  struct Frame {
    let x: Int
    let y: Int
    let size: PixelSize
    /// Palette indices, row by row.
    let indices: [UInt8]
    /// The disposal: 1 keeps the frame, 2 clears it, 3 restores the previous content.
    var disposal = 1
    /// The transparent index.
    var transparent: UInt8?

    /// Returns a frame of one index.
    init(
      x: Int, y: Int, width: Int, height: Int, index: UInt8, disposal: Int = 1,
      transparent: UInt8? = nil
    ) {
      self.x = x
      self.y = y
      size = PixelSize(width: width, height: height)
      indices = [UInt8](repeating: index, count: width * height)
      self.disposal = disposal
      self.transparent = transparent
    }

    /// Returns a frame of 256 pixels, all indices of 8 bits.
    init(ofAllIndicesAt x: Int, y: Int, disposal: Int = 1) {
      self.x = x
      self.y = y
      size = PixelSize(width: 16, height: 16)
      indices = Array(0...255)
      self.disposal = disposal
    }
  }

  let size: PixelSize
  /// Four or 256 colours of three bytes.
  let palette: [[UInt8]]
  let frames: [Frame]
  /// The bits of an index.
  private var bits: Int { palette.count.trailingZeroBitCount }

  /// The expected frames in RGBA, by GIF89a, section 23, except that cleared areas are transparent.
  var shown: [Pixels] {
    let clear = [UInt8](repeating: 0, count: 4)
    var screen = Pixels(width: size.width, height: size.height, color: clear)
    return frames.map { frame in
      var next = screen
      func paint(_ pixels: inout Pixels, color: (Int) -> [UInt8]?) {
        for index in frame.indices.indices {
          let x = frame.x + index % frame.size.width
          let y = frame.y + index / frame.size.width
          guard let color = color(index) else { continue }
          pixels.values.replaceSubrange(
            (y * size.width + x) * 4..<(y * size.width + x) * 4 + 4, with: color)
        }
      }
      paint(&next) { index in
        frame.indices[index] == frame.transparent
          ? nil : palette[Int(frame.indices[index])] + [255]
      }
      if frame.disposal != 3 { screen = next }
      if frame.disposal == 2 { paint(&screen) { _ in clear } }
      return next
    }
  }

  var bytes: [UInt8] {
    var bytes = Array("GIF89a".utf8) + little(size.width) + little(size.height)
    // The number of colours; background index and pixel aspect ratio are 0.
    bytes += [UInt8(0xf0 + bits - 1), 0, 0] + palette.joined()
    bytes += [0x21, 0xff, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 0, 0, 0]
    for frame in frames {
      let flags = UInt8(frame.disposal << 2) | (frame.transparent == nil ? 0 : 1)
      bytes += [0x21, 0xf9, 4, flags, 10, 0, frame.transparent ?? 0, 0, 0x2c]
      bytes += little(frame.x) + little(frame.y) + little(frame.size.width)
      bytes += little(frame.size.height) + [0, UInt8(bits)] + data(frame.indices) + [0]
    }
    return bytes + [0x3b]
  }

  /// Returns codes of a bit more than an index in blocks. Clearing the table after every second
  /// index keeps codes from growing.
  private func data(_ indices: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    var window = 0
    var count = 0
    func put(_ code: Int) {
      window = window | code << count
      count += bits + 1
      while count >= 8 {
        bytes.append(UInt8(window & 255))
        window = window >> 8
        count -= 8
      }
    }
    for (place, index) in indices.enumerated() {
      if place.isMultiple(of: 2) { put(1 << bits) }
      put(Int(index))
    }
    put(1 << bits + 1)
    if count > 0 { bytes.append(UInt8(window)) }
    return stride(from: 0, to: bytes.count, by: 255).flatMap { start in
      let block = bytes[start..<min(start + 255, bytes.count)]
      return [UInt8(block.count)] + block
    }
  }

  private func little(_ number: Int) -> [UInt8] { [UInt8(number & 255), UInt8(number >> 8)] }
}
