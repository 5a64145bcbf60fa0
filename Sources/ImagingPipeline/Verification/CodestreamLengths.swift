// CodestreamLengths: checks the lengths and the tile count of a JPEG 2000 codestream.

import Model
import Platform

/// Checks the marker segments of a codestream (ISO/IEC 15444-1, annex A).
enum CodestreamLengths {
  /// The bytes that OpenJPEG allocates up front for each tile, and for each component in it
  /// (opj_tcp_t and opj_tccp_t of version 2.5, rounded up).
  private static let bytesOfTile = 6_144
  private static let bytesOfComponent = 1_280
  /// The maximum bytes for all tiles: 16 times the need of 150 megapixels in tiles of 1,024².
  private static let maximumTileBytes = 64 << 20

  /// Checks the main header and each tile-part.
  ///
  /// - Throws: `ContainerFault`.
  static func check(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var bytes = ByteReader(source, at: 2)
    while let marker = try? bytes.number(2) {
      switch marker {
      case 0xffd9: return
      case 0xff90: try skipTilePart(&bytes)
      default:
        // OpenJPEG decides about bytes that are not a marker.
        guard marker >= 0xff00, let length = try? bytes.number(2), length >= 2 else { return }
        guard let segment = try? bytes.reader(of: length - 2) else {
          throw .excess("a segment", length, bytes.left + 2)
        }
        if marker == 0xff51 { try checkTiles(segment) }
      }
    }
  }

  /// Returns the height of the tiles of a codestream; `nil` if it does not begin with its sizes (A.5.1).
  static func tileHeight(of source: UnsafeRawBufferPointer) -> Int? {
    var bytes = ByteReader(source, at: 2)
    guard (try? bytes.number(2)) == 0xff51, bytes.skip(24) else { return nil }
    return try? bytes.number(4)
  }

  /// Skips a tile-part, starting after its marker; a length of 0 means up to the end (A.4.2).
  private static func skipTilePart(_ bytes: inout ByteReader) throws(ContainerFault) {
    guard bytes.skip(4), let length = try? bytes.number(4) else { return }
    guard length > 0 else {
      bytes.skip(bytes.left)
      return
    }
    // The length counts from the marker. Marker, segment length, tile index and this length take 10
    // bytes.
    guard length >= 12, bytes.skip(length - 10) else {
      throw .excess("part of a tile", length, bytes.left + 10)
    }
  }

  /// Checks the number of tiles from the sizes of image and tiles (A.5.1).
  private static func checkTiles(_ segment: ByteReader) throws(ContainerFault) {
    var segment = segment
    guard segment.skip(2), let width = try? segment.number(4), let height = try? segment.number(4),
      let offsetX = try? segment.number(4), let offsetY = try? segment.number(4),
      let tileWidth = try? segment.number(4), let tileHeight = try? segment.number(4),
      let left = try? segment.number(4), let top = try? segment.number(4),
      let components = try? segment.number(2), tileWidth > 0, tileHeight > 0
    else { return }
    func count(of side: Int, from start: Int, tile: Int) -> Int {
      max((side - start + tile - 1) / tile, 0)
    }
    let across = count(of: width, from: left, tile: tileWidth)
    let down = count(of: height, from: top, tile: tileHeight)
    let (tiles, isTooMany) = across.multipliedReportingOverflow(by: down)
    let bytes = bytesOfTile + components * bytesOfComponent
    guard !isTooMany, tiles <= maximumTileBytes / bytes else {
      // Sides have at most 32 bits.
      let pixels = max(width - offsetX, 0)
        .multipliedReportingOverflow(by: max(height - offsetY, 0))
      throw .tooManyTiles(
        reason: "\(across)x\(down) tiles; at most \(maximumTileBytes / bytes) are decoded",
        pixels: pixels.overflow ? .max : pixels.partialValue)
    }
  }
}
