// JPEGTurn: rotates and mirrors a JPEG without loss, by moving its blocks of coefficients.

import CJPEG
import Core

/// The coefficient blocks of a JPEG, read by libjpeg; no pixel is computed.
struct JPEGTurn: ~Copyable {
  private let jpeg: UnsafeMutablePointer<pictor_jpeg>

  /// The maximum bytes of coefficients, for source and result together.
  private static let maximumBytes = 512 << 20
  /// The side of a block, in pixels.
  private static let side = 8

  /// Reads the header.
  ///
  /// - Parameter source: The file; it must outlive this value.
  init?(_ source: UnsafeRawBufferPointer) {
    guard let jpeg = pictor_jpeg_open(source.baseAddress, source.count, 0) else { return nil }
    self.jpeg = jpeg
  }

  deinit { pictor_jpeg_close(jpeg) }

  /// Whether the source is progressive.
  var isProgressive: Bool { jpeg.pointee.source.progressive_mode != 0 }

  /// Returns the upright JPEG with the source's tables and without metadata, except for the colour
  /// description. Returns `nil` if a lossless rotation is not possible.
  func turned(by orientation: Orientation, isProgressive: Bool) -> [UInt8]? {
    let turn = BlockTurn(orientation)
    guard isSuited(to: turn) else { return nil }
    var components: [Component] = []
    for index in 0..<Int(jpeg.pointee.source.num_components) { components.append(component(index)) }
    let blocks = components.reduce(0) { $0 + $1.columns * $1.rows }
    let bytes = blocks * 2 * 64 * MemoryLayout<JCOEF>.stride
    // Without memory for them, the image is encoded again instead, row by row.
    guard bytes <= Self.maximumBytes, MemoryLeft.hasPlenty(for: bytes) else { return nil }
    for (index, from) in components.enumerated() {
      let to = turn.swapsSides ? from.turned : from
      guard
        pictor_jpeg_make_room(
          jpeg, CInt(index), CUnsignedInt(to.columns), CUnsignedInt(to.rows),
          CUnsignedInt(to.down)) == 0
      else { return nil }
    }
    guard pictor_jpeg_read(jpeg) == 0, jpeg.pointee.errors.num_warnings == 0 else { return nil }
    jpeg.pointee.result.optimize_coding = 1
    if turn.swapsSides { swapSides() }
    for (index, from) in components.enumerated() {
      guard move(component: index, from, by: turn) else { return nil }
    }
    guard pictor_jpeg_write(jpeg, isProgressive ? 1 : 0) == 0, let bytes = jpeg.pointee.bytes
    else { return nil }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(jpeg.pointee.count)))
  }

  /// Returns whether the turn is lossless: a partial block at the right or lower edge must stay at
  /// that edge.
  private func isSuited(to turn: BlockTurn) -> Bool {
    let spaces = [JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB]
    guard jpeg.pointee.source.data_precision == 8,
      spaces.contains(jpeg.pointee.source.jpeg_color_space)
    else { return false }
    // A single component is stored block by block, regardless of its sampling.
    let isAlone = jpeg.pointee.source.num_components == 1
    let across = Self.side * (isAlone ? 1 : Int(jpeg.pointee.source.max_h_samp_factor))
    let down = Self.side * (isAlone ? 1 : Int(jpeg.pointee.source.max_v_samp_factor))
    return (!turn.mirrorsX || Int(jpeg.pointee.source.image_width).isMultiple(of: across))
      && (!turn.mirrorsY || Int(jpeg.pointee.source.image_height).isMultiple(of: down))
  }

  /// The block counts of a component.
  private struct Component {
    /// The blocks of the image.
    let width, height: Int
    /// The blocks padded to whole units.
    let columns, rows: Int
    /// The sampling factors.
    let across, down: Int

    var turned: Component {
      Component(
        width: height, height: width, columns: rows, rows: columns, across: down, down: across)
    }
  }

  private func component(_ index: Int) -> Component {
    let info = jpeg.pointee.source.comp_info[index]
    let across = Int(info.h_samp_factor)
    let down = Int(info.v_samp_factor)
    return Component(
      width: Int(info.width_in_blocks), height: Int(info.height_in_blocks),
      columns: (Int(info.width_in_blocks) + across - 1) / across * across,
      rows: (Int(info.height_in_blocks) + down - 1) / down * down, across: across, down: down)
  }

  /// Swaps width and height in the result's parameters, including its quantization tables.
  private func swapSides() {
    swap(&jpeg.pointee.result.image_width, &jpeg.pointee.result.image_height)
    for index in 0..<Int(jpeg.pointee.result.num_components) {
      let info = jpeg.pointee.result.comp_info + index
      swap(&info.pointee.h_samp_factor, &info.pointee.v_samp_factor)
    }
    let tables = jpeg.pointee.result.quant_tbl_ptrs
    for table in [tables.0, tables.1, tables.2, tables.3] {
      guard let table else { continue }
      withUnsafeMutableBytes(of: &table.pointee.quantval) { bytes in
        let values = bytes.bindMemory(to: UInt16.self)
        for row in 0..<Self.side {
          for column in 0..<row {
            values.swapAt(row * Self.side + column, column * Self.side + row)
          }
        }
      }
    }
  }

  /// Fills a component of the result. libjpeg keeps all rows in memory, so their addresses stay
  /// valid.
  private func move(component: Int, _ from: Component, by turn: BlockTurn) -> Bool {
    let to = turn.swapsSides ? from.turned : from
    var rows: [UnsafeMutablePointer<JCOEF>] = []
    for row in 0..<from.height {
      guard let blocks = pictor_jpeg_row(jpeg, CInt(component), CUnsignedInt(row), 0) else {
        return false
      }
      rows.append(blocks)
    }
    for y in 0..<to.height {
      guard let row = pictor_jpeg_row(jpeg, CInt(component), CUnsignedInt(y), 1) else {
        return false
      }
      for x in 0..<to.width {
        let (across, down) = turn.swapsSides ? (y, x) : (x, y)
        let column = turn.mirrorsX ? from.width - 1 - across : across
        let line = turn.mirrorsY ? from.height - 1 - down : down
        turn.copy(rows[line] + column * 64, to: row + x * 64)
      }
    }
    return true
  }
}

/// The effect of a turn on a block of 8×8 coefficients.
private struct BlockTurn {
  /// Whether columns become rows.
  let swapsSides: Bool
  /// Whether the stored image is mirrored horizontally, and vertically.
  let mirrorsX, mirrorsY: Bool
  /// For each coefficient of the result, the source coefficient and its sign.
  private let places: [(from: Int, sign: Int16)]

  init(_ orientation: Orientation) {
    swapsSides = orientation.swapsSides
    let mirrorsX = [2, 3, 7, 8].contains(orientation.tag)
    let mirrorsY = [3, 4, 6, 7].contains(orientation.tag)
    self.mirrorsX = mirrorsX
    self.mirrorsY = mirrorsY
    let swapsSides = swapsSides
    places = (0..<64).map { index in
      let (x, y) = swapsSides ? (index / 8, index % 8) : (index % 8, index / 8)
      // Mirroring negates a cosine of odd frequency.
      let isNegative = (mirrorsX && x % 2 == 1) != (mirrorsY && y % 2 == 1)
      return (y * 8 + x, isNegative ? -1 : 1)
    }
  }

  @inline(__always)
  func copy(_ from: UnsafePointer<JCOEF>, to: UnsafeMutablePointer<JCOEF>) {
    for index in 0..<64 { to[index] = from[places[index].from] &* places[index].sign }
  }
}
