// TiledTIFF: a TIFF of one page with any tags, whose tiles are the same bytes.

/// A little-endian TIFF (TIFF 6.0) of 64 by 64 pixels in four tiles.
public struct TiledTIFF {
  /// The value of `Compression`.
  public var compression: Int
  /// The bytes of each tile.
  public var tile: [UInt8]
  /// The value of `PhotometricInterpretation`: 1 is grey, 2 RGB.
  public var photometric = 1
  /// The samples of a pixel.
  public var samples = 1
  /// The value of `BitsPerSample`.
  public var bits = 8
  /// The value of `SampleFormat`; `nil` omits the tag.
  public var format: Int?
  /// The value of `PlanarConfiguration`: 2 is a plane for each sample.
  public var planes = 1

  /// Creates a grey one.
  public init(compression: Int = 1, tile: [UInt8]) {
    self.compression = compression
    self.tile = tile
  }

  /// The file.
  public var bytes: [UInt8] {
    let count = planes == 2 ? 4 * samples : 4
    var fields: [(tag: Int, values: [Int])] = [
      (256, [64]), (257, [64]), (258, [Int](repeating: bits, count: samples)),
      (259, [compression]), (262, [photometric]), (277, [samples]), (284, [planes]), (322, [32]),
      (323, [32]), (324, [Int](repeating: 0, count: count)),
      (325, [Int](repeating: tile.count, count: count)),
    ]
    if let format { fields.append((339, [Int](repeating: format, count: samples))) }
    // What does not fit into an entry follows the directory; then come the tiles.
    let end = 8 + 2 + 12 * fields.count + 4
    let first = end + fields.map { $0.values.count > 1 ? 4 * $0.values.count : 0 }.reduce(0, +)
    fields[9].values = (0..<count).map { first + $0 * tile.count }
    var directory = Self.number(fields.count, 2)
    var rest: [UInt8] = []
    for (tag, values) in fields {
      directory += Self.number(tag, 2) + Self.number(4, 2) + Self.number(values.count, 4)
      let numbers = values.flatMap { Self.number($0, 4) }
      directory += values.count > 1 ? Self.number(end + rest.count, 4) : numbers
      if values.count > 1 { rest += numbers }
    }
    let head = Array("II".utf8) + Self.number(42, 2) + Self.number(8, 4)
    return head + directory + Self.number(0, 4) + rest
      + [[UInt8]](repeating: tile, count: count).joined()
  }

  private static func number(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}
