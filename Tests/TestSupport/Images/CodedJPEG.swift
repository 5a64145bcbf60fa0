// CodedJPEG: JPEGs written from coefficients, with known results.

import Core
import Glibc

/// A JPEG in one scan that no available encoder writes: any sampling factors, long codes, wide
/// quantization.
public struct CodedJPEG: Sendable {
  /// The blocks of each component in a unit, across and down; the first component is lightness.
  public typealias Factors = [(across: Int, down: Int)]

  /// Grey, 4:4:4, 4:2:2, 4:4:0, 4:2:0, 4:1:1, its vertical variant, and a kind that no encoder
  /// writes: colours in more detail than lightness.
  public static let samplings: [Factors] = [
    [(1, 1)], [(2, 2)], [(1, 1), (1, 1), (1, 1)], [(2, 1), (1, 1), (1, 1)],
    [(1, 2), (1, 1), (1, 1)], [(2, 2), (1, 1), (1, 1)], [(4, 1), (1, 1), (1, 1)],
    [(1, 4), (1, 1), (1, 1)], [(4, 2), (1, 1), (1, 1)], [(2, 2), (2, 1), (1, 2)],
    [(1, 1), (2, 2), (1, 1)], [(1, 1), (2, 1), (2, 2)],
  ]

  /// The size in pixels.
  public let size: PixelSize
  /// The blocks of each component in a unit.
  public let factors: Factors
  /// The units between two restart markers; 0 means no restarts.
  public var restartInterval = 0
  /// Whether codes have up to 16 bits instead of 8.
  public var hasLongCodes = false
  /// The factors of the coefficients, in file order; factors above 255 use a table of two bytes
  /// each.
  public var quantization = [UInt16](repeating: 2, count: 64)
  /// For each component its blocks row by row, with 64 coefficients each in file order.
  public var blocks: [[[Int]]] = []

  /// Creates random coefficients, mostly zero, such that nearly all pixels stay within 0–255.
  public init(width: Int, height: Int, factors: Factors, using generator: inout SeededGenerator) {
    size = PixelSize(width: width, height: height)
    self.factors = factors
    blocks = factors.indices.map { component in
      let (columns, rows) = grid(component)
      return (0..<columns * rows).map { _ in
        var block = [Int](repeating: 0, count: 64)
        block[0] = Int.random(in: -200...200, using: &generator)
        for _ in 0..<Int.random(in: 0...5, using: &generator) {
          let place = Int.random(in: 1...63, using: &generator)
          block[Bool.random(using: &generator) ? place : 1 + place / 8] =
            Int.random(in: -30...30, using: &generator)
        }
        return block
      }
    }
  }

  /// The blocks of the largest component in a unit.
  private var maximum: (across: Int, down: Int) {
    (factors.map(\.across).max() ?? 1, factors.map(\.down).max() ?? 1)
  }

  private var units: (across: Int, down: Int) {
    let maximum = factors.count == 1 ? (across: 1, down: 1) : maximum
    return (
      (size.width + 8 * maximum.across - 1) / (8 * maximum.across),
      (size.height + 8 * maximum.down - 1) / (8 * maximum.down)
    )
  }

  /// Returns the blocks of a component in a unit; a single component is not interleaved (T.81,
  /// A.2.2).
  private func inUnit(_ component: Int) -> (across: Int, down: Int) {
    factors.count == 1 ? (1, 1) : factors[component]
  }

  /// Returns the blocks of a component across and down.
  private func grid(_ component: Int) -> (columns: Int, rows: Int) {
    let count = inUnit(component)
    return (units.across * count.across, units.down * count.down)
  }

  // MARK: Expected result

  /// Returns the image divided by `shrink`.
  public func reduced(by shrink: Int) -> [Double] { reduced(toEighths: 8 / shrink) }

  /// Returns `eighths` of each side of the image, from the lowest frequencies of its blocks, in
  /// floating point.
  public func reduced(toEighths eighths: Int) -> [Double] {
    let maximum = factors.count == 1 ? (across: 1, down: 1) : maximum
    let width = (size.width * eighths + 7) / 8
    let height = (size.height * eighths + 7) / 8
    let planes = factors.indices.map { component in
      let count = inUnit(component)
      let across = eighths * maximum.across / count.across
      let down = eighths * maximum.down / count.down
      let shown = blocks[component].map { pixels(of: $0, across: across, down: down) }
      return (0..<width * height).map { index in
        let x = index % width
        let y = index / width
        let block = y / down * grid(component).columns + x / across
        return shown[block][y % down * across + x % across]
      }
    }
    let colors =
      planes.count == 1
      ? planes[0]
      : (0..<width * height).flatMap { index in
        // JFIF 1.02.
        let light = planes[0][index]
        let blue = planes[1][index] - 128
        let red = planes[2][index] - 128
        return [
          light + 1.402 * red, light - 0.344_136 * blue - 0.714_136 * red, light + 1.772 * blue,
        ]
      }
    return colors.map { min(max($0, 0), 255) }
  }

  private func pixels(of block: [Int], across: Int, down: Int) -> [Double] {
    var result = [Double](repeating: 128, count: across * down)
    for (place, number) in block.enumerated() where number != 0 {
      let u = Self.zigzag[place] % 8
      let v = Self.zigzag[place] / 8
      guard u < across, v < down else { continue }
      let scale =
        Double(number * Int(quantization[place])) / 4 * (u == 0 ? 0.5.squareRoot() : 1)
        * (v == 0 ? 0.5.squareRoot() : 1)
      for y in 0..<down {
        for x in 0..<across {
          let wave = cos(Double((2 * x + 1) * u) * .pi / Double(2 * across))
          result[y * across + x] +=
            scale * wave * cos(Double((2 * y + 1) * v) * .pi / Double(2 * down))
        }
      }
    }
    return result
  }

  /// T.81, figure A.6, built by walking along the diagonals.
  private static let zigzag: [Int] = {
    var x = 0
    var y = 0
    var isRising = true
    return (0..<64).map { _ in
      defer {
        if isRising {
          if x == 7 {
            y += 1
            isRising = false
          } else if y == 0 {
            x += 1
            isRising = false
          } else {
            x += 1
            y -= 1
          }
        } else {
          if y == 7 {
            x += 1
            isRising = true
          } else if x == 0 {
            y += 1
            isRising = true
          } else {
            x -= 1
            y += 1
          }
        }
      }
      return y * 8 + x
    }
  }()

  // MARK: File

  /// The ids of the components in the file.
  public var names: [UInt8] = [1, 2, 3]

  /// The symbols of the codes for DC, in order.
  public static let meanSymbols: [UInt8] = Array(0...11)
  /// The symbols of the codes for AC, in order.
  public static let symbols: [UInt8] =
    [0, 0xf0] + (0...15).flatMap { run in (1...10).map { UInt8(run << 4 | $0) } }

  /// The complete file.
  public var bytes: [UInt8] {
    let isWide = quantization.contains { $0 > 255 }
    let table = quantization.flatMap { isWide ? Self.pair(Int($0)) : [UInt8($0)] }
    let dc = CodeTable(symbols: Self.meanSymbols, isLong: hasLongCodes)
    let ac = CodeTable(symbols: Self.symbols, isLong: hasLongCodes)
    let frame: [UInt8] =
      [8] + Self.pair(size.height) + Self.pair(size.width) + [UInt8(factors.count)]
      + factors.enumerated().flatMap { index, factor in
        [names[index], UInt8(factor.across << 4 | factor.down), 0]
      }
    let scan: [UInt8] =
      [UInt8(factors.count)] + factors.indices.flatMap { [names[$0], 0] } + [0, 63, 0]
    return [0xff, 0xd8]
      + Self.segment(0xdb, content: [isWide ? 0x10 : 0] + table)
      + Self.segment(isWide ? 0xc1 : 0xc0, content: frame)
      + Self.segment(0xc4, content: [0] + dc.described)
      + Self.segment(0xc4, content: [0x10] + ac.described)
      + (restartInterval > 0 ? Self.segment(0xdd, content: Self.pair(restartInterval)) : [])
      + Self.segment(0xda, content: scan) + coded(dc: dc, ac: ac) + [0xff, 0xd9]
  }

  /// Returns a marker, the length of its content, and the content.
  public static func segment(_ marker: UInt8, content: [UInt8]) -> [UInt8] {
    [0xff, marker] + pair(content.count + 2) + content
  }

  private static func pair(_ number: Int) -> [UInt8] {
    [UInt8(number >> 8 & 255), UInt8(number & 255)]
  }

  /// Returns the bytes of the scan (T.81, F.1.2).
  private func coded(dc: CodeTable, ac: CodeTable) -> [UInt8] {
    var writer = BitWriter()
    var means = [Int](repeating: 0, count: factors.count)
    for unit in 0..<units.across * units.down {
      if restartInterval > 0, unit > 0, unit.isMultiple(of: restartInterval) {
        writer.finish()
        writer.bytes += [0xff, 0xd0 + UInt8((unit / restartInterval - 1) % 8)]
        means = means.map { _ in 0 }
      }
      for component in factors.indices {
        let count = inUnit(component)
        for index in 0..<count.across * count.down {
          let x = unit % units.across * count.across + index % count.across
          let y = unit / units.across * count.down + index / count.across
          let block = blocks[component][y * grid(component).columns + x]
          writer.put(symbol: 0, number: block[0] - means[component], dc)
          means[component] = block[0]
          Self.writeNumbers(block, to: &writer, with: ac)
        }
      }
    }
    writer.finish()
    return writer.bytes
  }

  private static func writeNumbers(
    _ block: [Int], to writer: inout BitWriter, with table: CodeTable
  ) {
    var zeros = 0
    for number in block.dropFirst() {
      guard number != 0 else {
        zeros += 1
        continue
      }
      for _ in 0..<zeros / 16 { writer.put(code: 0xf0, table) }
      writer.put(symbol: (zeros % 16) << 4, number: number, table)
      zeros = 0
    }
    if zeros > 0 { writer.put(code: 0, table) }
  }
}

/// Codes for symbols: 8 bits each, or 1 to 8 bits for the first eight and 12 or 16 bits for all
/// others.
private struct CodeTable {
  private var codes: [UInt8: (code: Int, length: Int)] = [:]
  /// The table as a file stores it.
  let described: [UInt8]

  init(symbols: [UInt8], isLong: Bool) {
    let lengths = symbols.indices.map { index in
      isLong ? (index < 8 ? index + 1 : symbols.count < 20 ? 12 : 16) : 8
    }
    var code = 0
    var last = 0
    for (symbol, length) in zip(symbols, lengths) {
      code <<= length - last
      codes[symbol] = (code, length)
      code += 1
      last = length
    }
    let counts = (1...16).map { length in UInt8(lengths.count { $0 == length }) }
    described = counts + symbols
  }

  subscript(symbol: UInt8) -> (code: Int, length: Int) { codes[symbol] ?? (0, 0) }
}

/// Writes bits, most significant first.
private struct BitWriter {
  var bytes: [UInt8] = []
  private var pending = 0
  private var count = 0

  mutating func put(bits: Int, count more: Int) {
    pending = pending << more | bits
    count += more
    while count >= 8 {
      let byte = UInt8(pending >> (count - 8) & 255)
      bytes += byte == 255 ? [255, 0] : [byte]
      count -= 8
      pending &= 1 << count - 1
    }
  }

  mutating func put(code symbol: UInt8, _ table: CodeTable) {
    put(bits: table[symbol].code, count: table[symbol].length)
  }

  /// Writes a symbol whose lower half is the bit count of the number, then those bits (T.81,
  /// F.1.2.1).
  mutating func put(symbol: Int, number: Int, _ table: CodeTable) {
    let length = Int.bitWidth - abs(number).leadingZeroBitCount
    put(code: UInt8(symbol | length), table)
    put(bits: number < 0 ? number + 1 << length - 1 : number, count: length)
  }

  /// Fills the last byte with ones.
  mutating func finish() {
    if count > 0 { put(bits: 1 << (8 - count) - 1, count: 8 - count) }
  }
}
