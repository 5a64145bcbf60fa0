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
    var parts: [Int: Int] = [:]
    while let marker = try? bytes.number(2) {
      switch marker {
      case 0xffd9: return
      case 0xff90: try skipTilePart(&bytes, &parts)
      // Capabilities, among which is high throughput (ISO/IEC 15444-15, A.3).
      case 0xff50: throw CodestreamKind.highThroughput
      // Extensions (ISO/IEC 15444-2, A.3), of which OpenJPEG skips most.
      case 0xff70...0xff79:
        throw .unsupported("JPEG 2000 with extensions (part 2); decoded is part 1")
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

  /// Skips a tile-part, starting after its marker; a length of 0 means up to the end (A.4.2).
  ///
  /// - Parameter parts: The parts of each tile so far. OpenJPEG reads only parts in their order.
  private static func skipTilePart(
    _ bytes: inout ByteReader, _ parts: inout [Int: Int]
  ) throws(ContainerFault) {
    guard bytes.skip(2), let tile = try? bytes.number(2), let length = try? bytes.number(4),
      let part = try? bytes.number(at: bytes.position, width: 1)
    else { return }
    guard part <= parts[tile, default: 0] else {
      throw .unsupported("part \(part) of tile \(tile) before the one ahead of it")
    }
    parts[tile] = max(part + 1, parts[tile, default: 0])
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
    guard let kind = CodestreamKind(segment) else { return }
    func count(of side: Int, from start: Int, tile: Int) -> Int {
      max((side - start + tile - 1) / tile, 0)
    }
    let across = count(of: kind.width, from: kind.tileLeft, tile: kind.tileWidth)
    let down = count(of: kind.height, from: kind.tileTop, tile: kind.tileHeight)
    let (tiles, isTooMany) = across.multipliedReportingOverflow(by: down)
    let bytes = bytesOfTile + kind.components.count * bytesOfComponent
    guard !isTooMany, tiles <= maximumTileBytes / bytes else {
      // Sides have at most 32 bits.
      let pixels = max(kind.width - kind.left, 0)
        .multipliedReportingOverflow(by: max(kind.height - kind.top, 0))
      throw .tooManyTiles(
        reason: "\(across)x\(down) tiles; at most \(maximumTileBytes / bytes) are decoded",
        pixels: pixels.overflow ? .max : pixels.partialValue)
    }
  }
}
