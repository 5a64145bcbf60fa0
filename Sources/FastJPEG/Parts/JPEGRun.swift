// JPEGRun: the units of a part that are in step with the codes.

/// Successive units of one part. The runs of a JPEG have each of its units once.
struct JPEGRun {
  let part: JPEGPart
  /// Of the part's units.
  let units: Range<Int>
  /// What each component's relative means are relative to.
  let means: SIMD4<Int>

  /// Joins parts that have been read. Where a part is not in step with the next, it reads on by itself.
  ///
  /// - Parameter count: The units of the image.
  /// - Returns: The runs of all units; `nil` if codes are invalid, missing or left over.
  static func joined(_ parts: [JPEGPart], units count: Int) -> [JPEGRun]? {
    var runs: [JPEGRun] = []
    var left = count
    var first = 0
    var means = SIMD4<Int>.zero
    for (index, part) in parts.enumerated() {
      let next = part.joint.flatMap { joint in
        index + 1 < parts.count ? (part: parts[index + 1], unit: joint) : nil
      }
      if next == nil, part.count - first < left {
        guard part.resume(limit: first + left) else { return nil }
      }
      let units = first..<part.count
      guard units.count <= left else { return nil }
      left -= units.count
      runs.append(JPEGRun(part: part, units: units, means: means))
      guard let next else {
        // The end marker must follow the last unit exactly; libjpeg decides about other files.
        return left == 0 && part.isFollowedByEnd() ? runs : nil
      }
      means &+= part.means &- next.part.means(before: next.unit)
      first = next.unit
    }
    return nil
  }

  /// A place among the units of all runs.
  struct Place {
    private var run = 0
    private var unit: Int

    /// - Parameter unit: The number of the unit in the image.
    init(of unit: Int, in runs: [JPEGRun]) {
      var left = unit
      while left >= runs[run].units.count && run + 1 < runs.count {
        left -= runs[run].units.count
        run += 1
      }
      self.unit = runs[run].units.lowerBound + left
    }

    /// Returns the words of a unit and what its means are relative to, and moves to the next.
    mutating func next(in runs: [JPEGRun]) -> (words: UnsafePointer<UInt32>, means: SIMD4<Int>) {
      while unit == runs[run].units.upperBound && run + 1 < runs.count {
        run += 1
        unit = runs[run].units.lowerBound
      }
      defer { unit += 1 }
      return (runs[run].part.words(of: unit), runs[run].means)
    }
  }
}
