// ByteLimit: encoding a result again and again until it has no more bytes than it may (`maxbytes`).

import CVips
import Model

/// A result's bytes, and what was given up for them.
struct Encoded: ~Copyable {
  let bytes: GLibBytes
  /// Of one frame.
  let size: PixelSize
  /// What `maxbytes` came to; `nil` without it, and for a format that has none.
  let quality: Int?
}

extension Output {
  /// The least quality that is tried before the size gives way.
  ///
  /// Measured on photos of 300 and 400 pixels, enlarged again to their former size: at equal bytes, JPEG of quality 10 and a
  /// smaller image of quality 30 are both at 25.1 dB, WebP at 27.1 and 26.8, JPEG XL at 26.0 and 25.4, AVIF of quality 20
  /// at 25.8 and 25.7. Below, the smaller image is ahead (JPEG of quality 5: 22.6 and 23.4, AVIF of 10: 23.4 and 24.1).
  private var leastQuality: Int { format == .avif ? 20 : 10 }

  /// Encodes the image, within `limit` bytes where that can be done at all: else it is a single pixel, or whatever was
  /// smallest.
  ///
  /// - Parameters:
  ///   - image: In memory, where there is a limit: it is read up to `ByteSearch.mostAttempts` times.
  ///   - limit: The most bytes; `nil`: any number.
  ///   - notes: What is said beside the pixels.
  func encode(
    _ image: borrowing Image, within limit: Int?, notes: borrowing OutputMetadata
  ) throws(ImageError) -> Encoded {
    let size = notes.frameSize(of: image)
    guard let limit else {
      return Encoded(bytes: try encode(image), size: size, quality: nil)
    }
    let qualities = quality.map { min($0, leastQuality)...$0 }
    var search = ByteSearch(limit: limit, qualities: qualities, size: size)
    var best: Encoded?
    while let attempt = search.next() {
      let bytes =
        attempt.size == size
        ? try encode(image, quality: attempt.quality)
        : try encode(try notes.resized(image, to: attempt.size), quality: attempt.quality)
      if search.record(bytes: bytes.count) {
        best = Encoded(bytes: bytes, size: attempt.size, quality: attempt.quality)
      }
    }
    guard let best else { throw .internal(detail: "no encode within \(limit) bytes") }
    return best
  }

  /// Encodes the image so that it has no more bytes than its source, at the best quality that does: `nil` where none does.
  ///
  /// - Parameters:
  ///   - image: In memory.
  ///   - limit: The source's bytes.
  ///   - notes: What is said beside the pixels.
  func encode(
    _ image: borrowing Image, inPlaceOf limit: Int, notes: borrowing OutputMetadata
  ) throws(ImageError) -> Encoded? {
    guard let quality else { return nil }
    let size = notes.frameSize(of: image)
    var search = ByteSearch(
      limit: limit, qualities: min(quality, leastQuality)...quality, size: size)
    var best: Encoded?
    while let attempt = search.next(), attempt.size == size {
      let bytes = try encode(image, quality: attempt.quality)
      if search.record(bytes: bytes.count), bytes.count <= limit {
        best = Encoded(bytes: bytes, size: size, quality: attempt.quality)
      }
    }
    return best
  }
}
