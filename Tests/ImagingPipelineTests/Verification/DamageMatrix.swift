// DamageMatrix: damaged files of every input format, and the outcome of each.

import Core
import TestSupport

@testable import ImagingPipeline

/// A kind of source file.
struct DamagedKind: Sendable {
  let name: String
  let format: ImageFormat
  /// The number of frames.
  var frames = 1
  /// The requested width; `nil` for the source's width.
  var width: Int?
  let make: @Sendable () throws -> [UInt8]

  static let all: [DamagedKind] = {
    let scene = textured(width: 256, height: 192)
    func encoded(_ suffix: String) -> @Sendable () throws -> [UInt8] {
      { try TestImages.encode(scene, as: suffix) }
    }
    let frames = (0..<8).map { textured(width: 96, height: 72, seed: UInt64($0 + 1)) }
    return [
      DamagedKind(name: "JPEG", format: .jpeg, make: encoded(".jpg[Q=85,strip]")),
      DamagedKind(name: "JPEG, reduced", format: .jpeg, width: 64, make: encoded(".jpg[Q=85]")),
      DamagedKind(
        name: "JPEG with restarts", format: .jpeg,
        make: {
          try TestImages.encode(scene, as: ".jpg[Q=85,strip,restart_interval=4]")
        }),
      DamagedKind(
        name: "JPEG, progressive", format: .jpeg, make: encoded(".jpg[Q=85,strip,interlace]")),
      DamagedKind(name: "PNG", format: .png, make: encoded(".png[strip]")),
      DamagedKind(name: "PNG, interlaced", format: .png, make: encoded(".png[strip,interlace]")),
      DamagedKind(name: "GIF", format: .gif, make: encoded(".gif")),
      DamagedKind(
        name: "GIF, animated", format: .gif, frames: frames.count,
        make: { try TestImages.animation(frames, as: ".gif") }),
      DamagedKind(name: "WebP", format: .webp, make: encoded(".webp[Q=85,strip]")),
      DamagedKind(name: "WebP, lossless", format: .webp, make: encoded(".webp[lossless,strip]")),
      DamagedKind(
        name: "WebP, animated", format: .webp, frames: frames.count,
        make: { try TestImages.animation(frames, as: ".webp[Q=85]") }),
      DamagedKind(name: "TIFF", format: .tiff, make: encoded(".tif")),
      DamagedKind(name: "TIFF, LZW", format: .tiff, make: encoded(".tif[compression=lzw]")),
      DamagedKind(name: "HEIC", format: .heic, make: { try TestImages.heif(scene, isAVIF: false) }),
      DamagedKind(
        name: "HEIC, reduced", format: .heic, width: 64,
        make: { try TestImages.heif(scene, isAVIF: false) }),
      DamagedKind(
        name: "HEIC of tiles, reduced", format: .heic, width: 64,
        make: { try HEIFGrid().file(of: scene) }),
      DamagedKind(name: "AVIF", format: .avif, make: encoded(".avif[Q=70,effort=0]")),
      DamagedKind(
        name: "AVIF, reduced", format: .avif, width: 64, make: encoded(".avif[Q=70,effort=0]")),
      DamagedKind(name: "JPEG XL", format: .jxl, make: encoded(".jxl[effort=3]")),
      DamagedKind(name: "JPEG 2000", format: .jp2, make: encoded(".jp2[Q=70]")),
      DamagedKind(name: "BMP", format: .bmp, make: { bitmap(of: scene) }),
      DamagedKind(
        name: "ICO", format: .ico,
        make: {
          CodedBitmap.icon(
            of: [try TestImages.encode(textured(width: 128, height: 128), as: ".png")])
        }),
      DamagedKind(
        name: "SVG", format: .svg, make: { TestImages.svg(width: 256, height: 192) }),
    ]
  }()

  /// Returns a photo-like mixture of smooth fields, an edge and grain, so that every part of a file
  /// matters.
  static func textured(width: Int, height: Int, seed: UInt64 = 1) -> Pixels {
    var generator = SeededGenerator(seed: seed)
    var pixels = Pixels(width: width, height: height, color: [0, 0, 0])
    for y in 0..<height {
      for x in 0..<width {
        let grain = Int.random(in: -9...9, using: &generator)
        let step = (x / 24 + y / 24 + Int(seed)) % 3 * 30
        for (band, base) in [x * 150 / width, y * 150 / height, 150 - x * 100 / width].enumerated()
        {
          pixels.values[(y * width + x) * 3 + band] = UInt8(
            clamping: 30 + base + step + grain)
        }
      }
    }
    return pixels
  }

  /// Returns 24 bits per pixel, from the bottom up (BITMAPINFOHEADER).
  private static func bitmap(of pixels: Pixels) -> [UInt8] {
    var bitmap = CodedBitmap(size: pixels.size, depth: 24)
    bitmap.pixels = (0..<pixels.size.pixels).map { place in
      pixels.values[place * 3..<place * 3 + 3].reduce(0) { $0 << 8 | UInt32($1) }
    }
    return bitmap.file
  }
}

/// The kind of damage at a position of a file.
enum Damage: String, CaseIterable {
  case truncated, zeros, noise
  case flips = "bit flips"
  case swapped = "swapped blocks"

  static let positions = 10

  /// Damages a file.
  ///
  /// - Parameter position: 0–9, the middle of each tenth of the file.
  func applied(to bytes: [UInt8], position: Int, using generator: inout SeededGenerator) -> [UInt8]
  {
    var bytes = bytes
    let length = max(12, bytes.count / 20)
    let start = min(bytes.count * (2 * position + 1) / (2 * Self.positions), bytes.count - length)
    let range = start..<start + length
    switch self {
    case .truncated: bytes.removeLast(bytes.count - start)
    case .zeros: for index in range { bytes[index] = 0 }
    case .noise: for index in range { bytes[index] = .random(in: 0...255, using: &generator) }
    case .flips:
      for _ in 0..<10 {
        bytes[Int.random(in: range, using: &generator)] ^=
          1 << UInt8.random(in: 0...7, using: &generator)
      }
    case .swapped:
      let other = (start + bytes.count / 2) % (bytes.count - length)
      let one = Array(bytes[range])
      let two = Array(bytes[other..<other + length])
      bytes.replaceSubrange(range, with: two)
      bytes.replaceSubrange(other..<other + length, with: one)
    }
    return bytes
  }
}

/// One row of the matrix: of ten files each, the number of images that differ from the correct one
/// by an RMSE above 5.
struct DamageRow {
  let kind: DamagedKind
  var passed: [Damage: Int] = [:]
  /// The number of files that the format's own decoder accepts without a warning.
  var passedByDecoder = 0

  var total: Int { passed.values.reduce(0, +) }

  /// Damages a file in every way and counts the outcomes.
  init(_ kind: DamagedKind) throws {
    self.kind = kind
    let whole = try kind.make()
    let expected = try Self.result(of: whole, kind)
    let decoded = try Self.decoded(whole, as: kind)
    var generator = SeededGenerator(seed: 12)
    for damage in Damage.allCases {
      for position in 0..<Damage.positions {
        let bytes = damage.applied(to: whole, position: position, using: &generator)
        if bytes == whole { continue }
        if let result = try? Self.result(of: bytes, kind), Self.areDifferent(result, from: expected)
        {
          passed[damage, default: 0] += 1
        }
        if let pixels = try? Self.decoded(bytes, as: kind), Self.areDifferent(pixels, from: decoded)
        {
          passedByDecoder += 1
        }
      }
    }
  }

  /// Returns the pipeline's result, each frame without loss.
  private static func result(of bytes: [UInt8], _ kind: DamagedKind) throws -> [Pixels] {
    let made = try Made(
      bytes, width: kind.width, format: kind.frames > 1 ? .webp : .tiff, quality: 90)
    return try (0..<made.frames).map { frame in
      try made.pixels(frame: made.frames > 1 ? frame : nil)
    }
  }

  /// Returns the result of the format's decoder at its strictest.
  private static func decoded(_ bytes: [UInt8], as kind: DamagedKind) throws -> [Pixels] {
    TestImages.start()
    return try bytes.withUnsafeBytes { buffer in
      let image = try Loader.open(
        buffer, as: kind.format, pages: kind.frames > 1 ? .all : .first, failOn: .warning)
      let size = image.size
      let bands = image.bands
      guard size.pixels < 2_000_000, image.format.rawValue == 0 else {
        throw ImageError.internal(detail: "\(size)")
      }
      let rows = try PixelRows(of: image)
      var pixels = Pixels(
        width: size.width, height: size.height, color: [UInt8](repeating: 0, count: bands))
      pixels.values.removeAll(keepingCapacity: true)
      for y in 0..<size.height {
        pixels.values += UnsafeBufferPointer(start: try rows.row(y), count: size.width * bands)
      }
      return [pixels]
    }
  }

  private static func areDifferent(_ left: [Pixels], from right: [Pixels]) -> Bool {
    guard left.count == right.count else { return true }
    return zip(left, right).contains { left, right in
      guard left.size == right.size, left.bands == right.bands else { return true }
      // Samples every thirteenth value, because there are many files.
      var sum = 0
      var count = 0
      for index in stride(from: 0, to: left.values.count, by: 13) {
        let difference = Int(left.values[index]) - Int(right.values[index])
        sum += difference * difference
        count += 1
      }
      return sum > 25 * count
    }
  }
}
