// JPEGScanFrame: a JPEG's frame as its scans fill it: which coefficients have come, and how precisely.

/// A frame coded by Huffman, in one scan or in many.
final class JPEGScanFrame {
  /// One of its bands.
  struct Component {
    let id: UInt8
    /// Blocks in a unit of an interleaved scan.
    let inUnit: (across: Int, down: Int)
    /// Blocks of the component by itself (T.81, A.2.2).
    let columns: Int
    let rows: Int
    let quantizer: Int
    /// Of each coefficient the lowest bit that has come; -1: none of them.
    var lowestBits = [Int](repeating: -1, count: 64)
    /// Of each block a bit for each coefficient that is not zero; empty until a progressive scan needs it.
    var masks: [UInt64] = []
  }

  let isProgressive: Bool
  /// Units of an interleaved scan of all components.
  let units: (across: Int, down: Int)
  var components: [Component] = []

  /// Reads a frame header (T.81, B.2.2); `nil` where libjpeg refuses it, or it has other than 8 bits a band.
  init?(_ segment: UnsafeRawBufferPointer, isProgressive: Bool) {
    guard segment.count >= 6, segment[0] == 8 else { return nil }
    let (height, width) = (
      Int(segment[1]) << 8 | Int(segment[2]), Int(segment[3]) << 8 | Int(segment[4])
    )
    let count = Int(segment[5])
    guard width > 0, height > 0, (1...4).contains(count), segment.count >= 6 + 3 * count else {
      return nil
    }
    self.isProgressive = isProgressive
    let factors = (0..<count).map { index in
      let both = segment[7 + 3 * index]
      return (across: Int(both >> 4), down: Int(both & 15))
    }
    guard factors.allSatisfy({ (1...4).contains($0.across) && (1...4).contains($0.down) }) else {
      return nil
    }
    let most = (
      across: factors.map(\.across).max() ?? 1, down: factors.map(\.down).max() ?? 1
    )
    func divided(_ side: Int, by divisor: Int) -> Int { (side + divisor - 1) / divisor }
    units = (divided(width, by: 8 * most.across), divided(height, by: 8 * most.down))
    for (index, own) in factors.enumerated() {
      guard segment[8 + 3 * index] < 4 else { return nil }
      components.append(
        Component(
          id: segment[6 + 3 * index], inUnit: own,
          columns: divided(width * own.across, by: 8 * most.across),
          rows: divided(height * own.down, by: 8 * most.down),
          quantizer: Int(segment[8 + 3 * index])))
    }
  }

  /// Whether each component has come, its means at the least.
  var isComplete: Bool { components.allSatisfy { $0.lowestBits[0] >= 0 } }

  /// Whether all coefficients have come to their last bit.
  var isRefined: Bool {
    components.allSatisfy { $0.lowestBits.allSatisfy { $0 == 0 } }
  }

  /// Notes what a scan brings.
  ///
  /// - Returns: What is wrong with the order of scans; `nil`: nothing.
  func begin(_ scan: JPEGScanHeader) -> String? {
    for member in scan.members {
      for place in scan.places {
        let lowest = components[member.component].lowestBits[place]
        // The bit before the first one is 0 in a header.
        guard !isProgressive || max(lowest, 0) == scan.highBit, scan.highBit == 0 || lowest >= 0
        else { return "a JPEG's scan refines what has not come" }
        components[member.component].lowestBits[place] = scan.lowBit
      }
      if scan.places.lowerBound > 0 {
        guard components[member.component].lowestBits[0] >= 0 else {
          return "a JPEG's scan of details comes before its means"
        }
        if components[member.component].masks.isEmpty {
          components[member.component].masks = [UInt64](
            repeating: 0,
            count: components[member.component].columns * components[member.component].rows)
        }
      }
    }
    return nil
  }
}

/// What a scan says of itself (T.81, B.2.3).
struct JPEGScanHeader {
  /// A component and its tables.
  struct Member {
    let component: Int
    let dc: Int
    let ac: Int
  }

  let members: [Member]
  /// The coefficients that it brings.
  let places: ClosedRange<Int>
  /// The lowest bit of them that has come before, 0 where none has.
  let highBit: Int
  /// The lowest bit of them that comes.
  let lowBit: Int

  /// Reads it; `nil` where libjpeg refuses it.
  init?(_ segment: UnsafeRawBufferPointer, of frame: JPEGScanFrame) {
    guard let count = segment.first.map({ Int($0) }), (1...4).contains(count),
      segment.count == 4 + 2 * count
    else { return nil }
    var members: [Member] = []
    for index in 0..<count {
      let (id, codes) = (segment[1 + 2 * index], segment[2 + 2 * index])
      guard let component = frame.components.firstIndex(where: { $0.id == id }),
        !members.contains(where: { $0.component == component }), codes >> 4 < 4, codes & 15 < 4
      else { return nil }
      members.append(Member(component: component, dc: Int(codes >> 4), ac: Int(codes & 15)))
    }
    let (start, end) = (Int(segment[1 + 2 * count]), Int(segment[2 + 2 * count]))
    let bits = segment[3 + 2 * count]
    self.members = members
    guard frame.isProgressive else {
      // libjpeg only warns of other values here, and reads all coefficients.
      (places, highBit, lowBit) = (0...63, 0, 0)
      return
    }
    // T.81, G.1.1.1.1: means by themselves, details of one component, refined by a bit at a time.
    guard start == 0 ? end == 0 : start <= end && end <= 63 && count == 1 else { return nil }
    (places, highBit, lowBit) = (start...end, Int(bits >> 4), Int(bits & 15))
    guard lowBit <= 13, highBit == 0 || highBit == lowBit + 1 else { return nil }
  }

  /// Whether it refines what has come.
  var isRefinement: Bool { highBit > 0 }
}
