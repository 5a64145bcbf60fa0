// ByteLimit: encodes a result repeatedly until it fits into a byte limit (`maxbytes`).

import CVips
import Model

/// The bytes of a result, with the size and quality that a byte limit required.
struct Encoded: ~Copyable {
  let bytes: GLibBytes
  /// The size of one frame.
  let size: PixelSize
  /// The quality that `maxbytes` required; `nil` without a limit, and for a format without quality.
  let quality: Int?
}

extension Output {
  /// The lowest quality tried before the size is reduced. At equal bytes, a smaller JPEG has the
  /// likeness of one of quality 10 (25.1 dB), and more than one of 5 (23.4 and 22.6 dB).
  private var leastQuality: Int { format == .avif ? 20 : 10 }

  /// Encodes the image within `limit` bytes. If no attempt fits, returns the smallest one, usually
  /// a single pixel.
  ///
  /// - Parameters:
  ///   - image: The image; with a limit it must be in memory, because it is read up to
  ///     `ByteSearch.maximumAttempts` times.
  ///   - limit: The maximum bytes; `nil` for no limit.
  ///   - notes: The metadata of the result.
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

  /// Encodes the image with no more bytes than its source, at the highest quality that fits; `nil`
  /// if no quality fits.
  ///
  /// - Parameters:
  ///   - image: The image, in memory.
  ///   - limit: The bytes of the source.
  ///   - notes: The metadata of the result.
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
