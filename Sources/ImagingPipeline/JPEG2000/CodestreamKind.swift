// CodestreamKind: the grid and the samples of a JPEG 2000 codestream, and which of them are decoded right.

import Platform

/// The facts of the segment SIZ (ISO/IEC 15444-1, A.5.1).
struct CodestreamKind {
  /// A component: the bits of a sample, and its steps on the grid.
  struct Component: Equatable {
    let bits: Int
    let isSigned: Bool
    let across: Int
    let down: Int
  }

  /// What boxes, or a TIFF, say of the colours.
  enum Colours {
    case grey, rgb, ycc
    /// A codestream alone: grey, RGB, or YCC if colours have fewer samples.
    case unstated
  }

  let isHighThroughput: Bool
  /// The right and the lower end of the image on its grid.
  let width: Int
  let height: Int
  /// The offset of the image.
  let left: Int
  let top: Int
  let tileWidth: Int
  let tileHeight: Int
  /// The offset of the first tile.
  let tileLeft: Int
  let tileTop: Int
  let components: [Component]

  private var isOfOneTile: Bool { width - left <= tileWidth && height - top <= tileHeight }

  /// Reads the first segment of a codestream; `nil` if it is not SIZ, or ends early. OpenJPEG accepts no other.
  init?(of source: UnsafeRawBufferPointer) {
    var bytes = ByteReader(source)
    guard (try? bytes.number(4)) == 0xff4f_ff51, let length = try? bytes.number(2), length >= 2,
      let segment = try? bytes.reader(of: length - 2)
    else { return nil }
    self.init(segment)
  }

  /// Reads a segment SIZ, starting after its length.
  init?(_ segment: ByteReader) {
    var segment = segment
    guard let capabilities = try? segment.number(2) else { return nil }
    // Bit 14: part 15 (ISO/IEC 15444-15, A.2).
    isHighThroughput = capabilities & 0x4000 != 0
    var numbers: [Int] = []
    for _ in 0..<8 {
      guard let number = try? segment.number(4) else { return nil }
      numbers.append(number)
    }
    (width, height, left, top) = (numbers[0], numbers[1], numbers[2], numbers[3])
    (tileWidth, tileHeight, tileLeft, tileTop) = (numbers[4], numbers[5], numbers[6], numbers[7])
    guard tileWidth > 0, tileHeight > 0, let count = try? segment.number(2) else { return nil }
    var components: [Component] = []
    for _ in 0..<count {
      guard let depth = try? segment.number(1), let across = try? segment.number(1),
        let down = try? segment.number(1)
      else { return nil }
      components.append(
        Component(bits: depth & 127 + 1, isSigned: depth > 127, across: across, down: down))
    }
    self.components = components
  }

  /// Checks that libvips 8.14 decodes all samples, and as what they are.
  ///
  /// It takes the first tile for a whole one, and an only one for one at 0,0; it forgets signs, scales samples below 8 bits to less than white, takes
  /// fewer samples of colours for YCC, and takes YCC with all samples for RGB.
  ///
  /// - Throws: `ContainerFault.unsupported`.
  func check(_ colours: Colours) throws(ContainerFault) {
    guard !isHighThroughput else { throw Self.highThroughput }
    guard left == tileLeft, top == tileTop, !isOfOneTile || (left == 0 && top == 0) else {
      throw .unsupported(
        "an image at \(left),\(top) with tiles from \(tileLeft),\(tileTop); "
          + "decoded are images that begin with the first of several tiles, or at 0,0")
    }
    guard let first = components.first, components.count <= 4 else {
      throw .unsupported("\(components.count) components; 1 to 4 are decoded")
    }
    let isGrey = components.count < 3
    guard colours == .unstated || isGrey == (colours == .grey) else {
      throw .unsupported("\(components.count) components for colours of another number")
    }
    guard components.allSatisfy({ !$0.isSigned && $0.bits == first.bits }),
      8...16 ~= first.bits
    else {
      let kinds = components.map { "\($0.bits)\($0.isSigned ? " signed" : "")" }
      throw .unsupported(
        "components of \(kinds.joined(separator: ", ")) bits; decoded are unsigned ones "
          + "of the same 8 to 16 bits")
    }
    try checkSampling(colours)
  }

  private func checkSampling(_ colours: Colours) throws(ContainerFault) {
    let steps = components.map { [$0.across, $0.down] }
    let step = components.count == 3 ? components[1].across : 1
    let isReduced = step > 1 && steps == [[1, 1], [step, step], [step, step]]
    guard isReduced || steps.allSatisfy({ $0 == [1, 1] }) else {
      throw .unsupported(
        "components of \(steps) steps; decoded are equal ones, and one step for the colours of YCC")
    }
    guard isReduced ? colours == .ycc || colours == .unstated : colours != .ycc else {
      throw .unsupported(
        isReduced
          ? "RGB with fewer samples of two components; decoded is YCC"
          : "YCC with all samples; decoded is YCC with fewer samples of its colours")
    }
    // A tile's colours would begin within a sample.
    guard !isReduced || left % step == 0 && top % step == 0,
      !isReduced || isOfOneTile || tileWidth % step == 0 && tileHeight % step == 0
    else {
      throw .unsupported("tiles of \(tileWidth)x\(tileHeight) with colours of each \(step)th pixel")
    }
  }

  static let highThroughput = ContainerFault.unsupported(
    "high-throughput JPEG 2000 (part 15); decoded is part 1")
}
