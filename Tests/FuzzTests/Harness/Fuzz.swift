// Fuzz: makes inputs by seeds, checks a property of each, and keeps the input that shows a fault.

import Glibc
import TestSupport
import Testing

/// A property that does not hold for an input.
struct Fault: Error, CustomStringConvertible {
  let description: String
}

/// Throws a `Fault` unless the property holds.
func hold(_ holds: Bool, _ property: @autoclosure () -> String) throws(Fault) {
  if !holds { throw Fault(description: property()) }
}

enum Fuzz {
  /// The processor time of one input above which a long run reports it: no input here needs a
  /// hundredth. Usual runs do not measure time.
  private static let maximumSeconds = 2.0

  /// Makes inputs and checks each. Stops at the first fault, and names its seed and its file. A
  /// long run without a fault prints the number of inputs.
  ///
  /// - Parameters:
  ///   - name: the name of the file in which an input is kept.
  ///   - usual: the number of inputs of a usual run.
  ///   - make: makes the input of a seed.
  ///   - check: throws if a property does not hold.
  static func run(
    _ name: String, usual: Int, make: (inout SeededGenerator) throws -> [UInt8],
    check: ([UInt8]) throws -> Void
  ) throws {
    let kept = try KeptInput(name)
    var count = 0
    for seed in FuzzSeeds.run(usual: usual) {
      var generator = SeededGenerator(seed: seed)
      count += 1
      do {
        let input = try make(&generator)
        kept.replace(with: input, seed: seed)
        let start = FuzzSeeds.isLongRun ? processorTime : 0
        try check(input)
        guard FuzzSeeds.isLongRun else { continue }
        let seconds = processorTime - start
        try hold(seconds < maximumSeconds, "took \(seconds) s of processor time")
      } catch {
        Issue.record("\(name): \(error). Seed \(seed), input in \(kept.path)")
        return
      }
    }
    kept.remove()
    if FuzzSeeds.isLongRun { print("\(name): \(count) inputs") }
  }

  /// Makes texts and checks each as `run` does.
  static func texts(
    _ name: String, usual: Int, make: (inout SeededGenerator) throws -> String,
    check: (String) throws -> Void
  ) throws {
    try run(name, usual: usual, make: { Array(try make(&$0).utf8) }) {
      try check(String(decoding: $0, as: UTF8.self))
    }
  }

  /// The seconds that the thread has used.
  private static var processorTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
