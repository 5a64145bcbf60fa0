// JPEG2000KindsTests: JPEG 2000s of all kinds are decoded right, or refused by their kind.

import CVips
import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JPEG2000KindsTests {
  private static let scene = Pixels.scene(width: 96, height: 80)

  /// Returns the reason for which an image is refused; `nil` if it is not, or for another one.
  private func refusal(_ bytes: [UInt8], product: Product = .image) -> String? {
    guard case .unsupportedKind(let reason)? = Made.error(bytes, change: { $0.product = product })
    else { return nil }
    return reason
  }

  private func image(
    _ pixels: Pixels = scene, change: (inout TestImages.JPEG2000Form) -> Void = { _ in }
  ) throws -> [UInt8] {
    var form = TestImages.JPEG2000Form()
    change(&form)
    return try TestImages.jp2(pixels, form)
  }

  /// Replaces the bytes at a distance from a name.
  private func replacing(
    _ bytes: [UInt8], after name: String, at distance: Int, with new: [UInt8]
  ) throws -> [UInt8] {
    var bytes = bytes
    let place = try #require(bytes.indices.first { bytes[$0...].starts(with: name.utf8) })
    bytes.replaceSubrange(place + distance..<place + distance + new.count, with: new)
    return bytes
  }

  /// Inserts a box into the header of a JP2.
  private func with(_ type: String, _ content: [UInt8], in bytes: [UInt8]) throws -> [UInt8] {
    var bytes = bytes
    let place = try #require(bytes.indices.first { bytes[$0...].starts(with: "jp2h".utf8) })
    let box = HEIFBoxes.box(type, content: content)
    let length = bytes[place - 4..<place].reduce(0) { $0 << 8 | Int($1) }
    bytes.replaceSubrange(
      place - 4..<place, with: HEIFBoxes.number(length + box.count, width: 4))
    // Behind `ihdr`, which is first.
    bytes.insert(contentsOf: box, at: place + 4 + 22)
    return bytes
  }

  @Test func `ordinary ones are decoded exactly`() throws {
    let wide = Pixels.scene(width: 96, height: 80, alpha: true)
    let grey = Pixels(width: 96, height: 80, bands: 1) { x, y in [UInt8(x + y)] }
    for pixels in [Self.scene, wide, grey] {
      for tile in [0, 32, 37] {
        for isBare in [false, true] {
          let bytes = try image(pixels) {
            $0.tile = tile
            $0.isBare = isBare
            $0.isInParts = tile == 32
          }
          let made = try Made(bytes) { $0.format = .png }.pixels()
          #expect(
            made.values == pixels.values, "\(pixels.bands) bands, tiles of \(tile), bare: \(isBare)"
          )
        }
      }
    }
    for bits in [10, 12, 16] {
      let made = try Made(try image { $0.bits = bits }) { $0.format = .png }.pixels()
      #expect(made.meanDifference(to: Self.scene) <= 1, "\(bits)")
    }
  }

  @Test func `an image with an offset is refused`() throws {
    for tile in [0, 32, 128] {
      for isBare in [false, true] {
        for (offset, tileOffset) in [((20, 0), (0, 0)), ((0, 12), (0, 0)), ((20, 12), (20, 12))] {
          let bytes = try image {
            $0.offset = offset
            $0.tileOffset = tileOffset
            $0.tile = tile
            $0.isBare = isBare
          }
          #expect(refusal(bytes)?.contains("images at 0,0") == true)
          #expect(refusal(bytes, product: .info(nil)) != nil)
          let limits = ImagingLimits { $0.failOn = .none }
          // Damage that is tolerated hides no kind.
          let cut = Made.error(Array(bytes.dropLast(9)), limits: limits)
          #expect(cut?.code == "unsupported_format", "\(String(describing: cut))")
        }
      }
    }
  }

  @Test func `samples with a sign, of few bits, and more than four are refused`() throws {
    #expect(refusal(try image { $0.isSigned = true })?.contains("8 signed") == true)
    #expect(refusal(try image { $0.bits = 4 })?.contains("4, 4, 4 bits") == true)
    let five = Pixels(width: 40, height: 30, bands: 5) { x, y in [9, 8, 7, UInt8(x), UInt8(y)] }
    #expect(refusal(try image(five) { $0.isBare = true })?.contains("5 components") == true)
  }

  @Test func `colours other than sRGB and grey are refused, but for sub-sampled YCC`() throws {
    let whole = try image()
    for (number, name) in [(12, "CMYK"), (14, "CIELab"), (18, "YCC"), (24, "24"), (17, "3")] {
      let bytes = try replacing(whole, after: "colr", at: 7, with: [0, 0, 0, UInt8(number)])
      #expect(refusal(bytes)?.contains(name) == true, "\(number)")
    }
    let reduced = try image { $0.sampling = 2 }
    #expect(refusal(reduced)?.contains("RGB with fewer samples") == true)
    let ycc = try replacing(reduced, after: "colr", at: 7, with: [0, 0, 0, 18])
    #expect(Made.error(ycc) == nil)
    let tiles = try image { ($0.sampling, $0.isBare, $0.tile) = (2, true, 32) }
    // libvips 8.16 gives up at the second tile.
    #expect(Made.isUndecodable(tiles) == (vips_version(1) >= 16))
    #expect(refusal(try image { ($0.sampling, $0.isBare, $0.tile) = (2, true, 33) }) != nil)
    // A profile for CMYK.
    let profile = [UInt8](repeating: 0, count: 16) + Array("CMYK".utf8)
    let printed = try with("colr", [2, 0, 0] + profile, in: whole)
    #expect(refusal(printed)?.contains("CMYK") == true)
  }

  @Test func `palettes and other channels are refused`() throws {
    let whole = try image()
    let palette = try with("pclr", [0, 2, 3, 7, 7, 7, 0, 0, 0, 9, 9, 9], in: whole)
    #expect(refusal(palette)?.contains("palette") == true)
    #expect(refusal(try with("cmap", [0, 0, 1, 0], in: whole))?.contains("palette") == true)
    // Blue and red exchanged.
    let turned: [UInt8] = [0, 3, 0, 0, 0, 0, 0, 3, 0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 0, 1]
    #expect(refusal(try with("cdef", turned, in: whole))?.contains("channel 0") == true)
    // Multiplied by alpha.
    let clear = try image(Pixels.scene(width: 96, height: 80, alpha: true))
    let premultiplied = try with("cdef", [0, 1, 0, 3, 0, 2, 0, 0], in: clear)
    #expect(refusal(premultiplied)?.contains("channel 3 of type 2") == true)
  }

  @Test func `parts 2 and 15, and parts of a tile out of their order, are refused`() throws {
    let whole = try image { $0.isBare = true }
    var fast = whole
    fast[6] |= 0x40
    #expect(refusal(fast)?.contains("part 15") == true)
    // Behind SIZ.
    let end = 4 + Int(whole[4]) << 8 | Int(whole[5]) + 4
    for (marker, part) in [(0x50, "part 15"), (0x74, "part 2")] {
      var bytes = whole
      bytes.insert(contentsOf: [0xff, UInt8(marker), 0, 4, 0, 0], at: end)
      #expect(refusal(bytes)?.contains(part) == true)
    }
    var parts = try image { ($0.isBare, $0.isInParts) = (true, true) }
    let first = try #require(parts.indices.first { parts[$0...].starts(with: [0xff, 0x90]) })
    #expect(Made.error(parts) == nil)
    parts[first + 10] = 1
    #expect(refusal(parts)?.contains("part 1 of tile 0") == true)
  }
}
