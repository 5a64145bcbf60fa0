// FuzzSeeds: the seeds of a fuzz test, few in a usual run and more by the environment.

import Glibc

/// Seeds of fuzz tests. Each seed makes one input, always the same.
///
/// The environment has three variables:
/// - `PICTOR_FUZZ_SECONDS`: how long each test makes inputs, in place of a usual number of them.
/// - `PICTOR_FUZZ_ROUNDS`: the number of inputs of each test.
/// - `PICTOR_FUZZ_SEED`: the first seed, usually 1.
public enum FuzzSeeds {
  /// Returns the seeds of a run.
  ///
  /// - Parameter usual: the number of seeds without these variables.
  public static func run(usual: Int) -> some Sequence<UInt64> {
    let first = number("PICTOR_FUZZ_SEED") ?? 1
    let seconds = number("PICTOR_FUZZ_SECONDS")
    let rounds = number("PICTOR_FUZZ_ROUNDS") ?? (seconds == nil ? UInt64(usual) : .max - first)
    let end = seconds.map { ContinuousClock.now + .seconds($0) }
    return sequence(state: first) { seed -> UInt64? in
      guard seed - first < rounds, end.map({ ContinuousClock.now < $0 }) ?? true else { return nil }
      defer { seed += 1 }
      return seed
    }
  }

  /// Whether the run is longer than a usual one.
  public static var isLongRun: Bool { number("PICTOR_FUZZ_SECONDS") != nil }

  private static func number(_ name: String) -> UInt64? {
    getenv(name).flatMap { UInt64(String(cString: $0)) }
  }
}
