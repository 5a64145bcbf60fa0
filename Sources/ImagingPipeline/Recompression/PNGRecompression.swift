// PNGRecompression: writes the rows of a PNG in fewer bytes.

import CDeflate

/// A PNG whose rows are filtered and compressed again. Palette, depth and all other chunks stay.
enum PNGRecompression {
  /// libdeflate's levels: for the choice of filters, and for the result. See
  /// docs/decisions/024-effort-follows-popularity.md.
  private static let trialLevel: CInt = 5
  private static let level: CInt = 12

  /// Returns the same image in fewer bytes.
  ///
  /// - Returns: `nil` if it does not take fewer bytes, if it is animated or damaged, or if memory is
  ///   short.
  static func smaller(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let parts = Parts(file), MemoryLeft.hasPlenty(for: 4 * parts.layout.byteCount),
      let rows = inflated(parts.compressed, count: parts.layout.byteCount),
      let plain = parts.layout.unfiltered(rows)
    else { return nil }
    guard let best = best(of: rows, plain: plain, parts.layout),
      let compressed = deflated(best, level: level)
    else { return nil }
    let result = parts.file(with: compressed)
    // Costs little beside the compression, and makes a fault of it harmless.
    guard result.count < file.count, let again = inflated(compressed, count: best.count),
      parts.layout.unfiltered(again) == plain
    else { return nil }
    return result
  }

  /// Returns the rows with the filters that compress best.
  private static func best(
    of rows: [UInt8], plain: [UInt8], _ layout: PNGLayout
  ) -> [UInt8]? {
    var best = rows
    guard var least = deflated(rows, level: trialLevel)?.count else { return nil }
    let filterings: [PNGFiltering] =
      PNGFilter.allCases.map { .each($0) } + [.leastSum, .leastEntropy]
    for filtering in filterings {
      let filtered = layout.filtered(plain, by: filtering)
      guard let count = deflated(filtered, level: trialLevel)?.count, count < least else {
        continue
      }
      least = count
      best = filtered
    }
    return best
  }

  private static func inflated(_ bytes: [UInt8], count: Int) -> [UInt8]? {
    guard let decompressor = libdeflate_alloc_decompressor() else { return nil }
    defer { libdeflate_free_decompressor(decompressor) }
    var isWhole = false
    let result = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
      // Without a place for the count, any other count of bytes is an error.
      isWhole =
        libdeflate_zlib_decompress(
          decompressor, bytes, bytes.count, buffer.baseAddress, count, nil) == LIBDEFLATE_SUCCESS
      used = isWhole ? count : 0
    }
    return isWhole ? result : nil
  }

  private static func deflated(_ bytes: [UInt8], level: CInt) -> [UInt8]? {
    guard let compressor = libdeflate_alloc_compressor(level) else { return nil }
    defer { libdeflate_free_compressor(compressor) }
    let room = libdeflate_zlib_compress_bound(compressor, bytes.count)
    let result = [UInt8](unsafeUninitializedCapacity: room) { buffer, used in
      used = libdeflate_zlib_compress(
        compressor, bytes, bytes.count, buffer.baseAddress, room)
    }
    return result.isEmpty ? nil : result
  }
}

extension PNGRecompression {
  /// The chunks of a PNG around its rows.
  private struct Parts {
    let layout: PNGLayout
    /// The contents of all `IDAT` chunks.
    private(set) var compressed: [UInt8] = []
    /// The bytes before and after these chunks.
    private let head: ArraySlice<UInt8>
    private let tail: ArraySlice<UInt8>

    /// Finds the chunks. Returns `nil` if one is damaged or unknown to matter for the rows.
    init?(_ file: UnsafeRawBufferPointer) {
      guard file.count > 8 else { return nil }
      var chunks = PNGChunks(file)
      var layout: PNGLayout?
      var place: Range<Int>?
      while true {
        let start = chunks.position
        guard let chunk = try? chunks.next(),
          libdeflate_crc32(0, chunk.checked.baseAddress, chunk.checked.count) == chunk.checksum,
          // An animation has frames in chunks of their own.
          !chunk.isOf("acTL")
        else { return nil }
        if chunk.isOf("IHDR") {
          guard layout == nil else { return nil }
          layout = PNGLayout(header: chunk.content)
        } else if chunk.isOf("IDAT") {
          // These chunks follow each other (5.6).
          guard place == nil || place?.upperBound == start else { return nil }
          place = (place?.lowerBound ?? start)..<chunks.position
          compressed += chunk.content
        } else if chunk.isOf("IEND") {
          break
        }
      }
      guard let layout, let place, chunks.position == file.count else { return nil }
      self.layout = layout
      let bytes = Array(file)
      head = bytes[..<place.lowerBound]
      tail = bytes[place.upperBound...]
    }

    /// Returns the file with other compressed rows, in one chunk.
    func file(with compressed: [UInt8]) -> [UInt8] {
      func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
      }
      let checked = Array("IDAT".utf8) + compressed
      let checksum = libdeflate_crc32(0, checked, checked.count)
      var file = Array(head)
      file += bigEndian(UInt32(compressed.count))
      file += checked
      file += bigEndian(checksum)
      file += tail
      return file
    }
  }
}
