// JPEGUnitReader: reads the units of a JPEG's codes, without computing pixels.

/// Reads units into a list, from a place where one begins, or from any.
struct JPEGUnitReader: ~Copyable {
  private(set) var units = JPEGUnitList()
  /// The place of the next code.
  var bits: JPEGBits
  private let restartInterval: Int
  /// One decoder for each component. Owned; freed by `deinit`.
  private let decoders: UnsafeMutablePointer<JPEGComponentDecoder>
  private let bands: Int
  /// The units since the last restart.
  private var done = 0
  /// The number of the next restart, modulo 8.
  private var restart: UInt8
  /// The maximum words of a unit.
  private let mostWords: Int

  /// Prepares reading.
  ///
  /// - Parameters:
  ///   - bits: The first code.
  ///   - restart: The number of the next restart, modulo 8.
  ///   - highestMean: The highest mean, without its sign.
  init(
    _ bits: JPEGBits, frame: JPEGFrame, bases: [JPEGBasis], restart: UInt8, highestMean: Int
  ) {
    self.bits = bits
    self.restart = restart
    restartInterval = frame.restartInterval
    bands = frame.components.count
    decoders = .allocate(capacity: bands)
    for (index, basis) in bases.enumerated() {
      (decoders + index).initialize(
        to: JPEGComponentDecoder(frame.components[index], basis: basis, highestMean: highestMean))
    }
    mostWords = frame.words(bases)
  }

  deinit {
    decoders.deinitialize(count: bands)
    decoders.deallocate()
  }

  /// The mean of each component after the last unit.
  var means: SIMD4<Int> {
    var means = SIMD4<Int>.zero
    for index in 0..<bands { means[index] = decoders[index].mean }
    return means
  }

  /// Whether a restart marker comes before the next unit.
  var isRestartDue: Bool { restartInterval > 0 && done == restartInterval }

  /// Whether a unit was read last, and no restart marker.
  var isAfterUnit: Bool { done > 0 }

  /// Moves past a restart marker. Returns whether it is there.
  mutating func passRestart() -> Bool {
    guard bits.pass(0xd0 + restart) else { return false }
    restart = (restart + 1) % 8
    done = 0
    resetMeans()
    return true
  }

  /// Reads a unit. Returns whether its codes are valid; otherwise nothing is added.
  mutating func readUnit() -> Bool {
    let decoders = decoders
    // A copy, because the thread sanitizer's build takes both arguments of `readUnit` for one access to `self`.
    var bits = bits
    let unit = units.begin(atMost: mostWords)
    var isWhole = true
    for index in 0..<bands where isWhole {
      isWhole = decoders[index].readUnit(&bits, into: &units)
    }
    self.bits = bits
    isWhole = isWhole && !bits.isPastEnd
    units.end(unit, isWhole: isWhole)
    if isWhole { done += 1 }
    return isWhole
  }

  /// Forgets all units, and reads from another place.
  mutating func beginAgain(at bits: JPEGBits) {
    self.bits = bits
    units.removeAll()
    done = 0
    resetMeans()
  }

  private func resetMeans() {
    for index in 0..<bands { decoders[index].mean = 0 }
  }
}

extension JPEGFrame {
  /// The maximum words of a unit in a `JPEGUnitList`.
  func words(_ bases: [JPEGBasis]) -> Int {
    zip(components, bases).reduce(0) { sum, each in
      sum + each.0.blocks.across * each.0.blocks.down * (1 + each.1.last)
    }
  }
}
