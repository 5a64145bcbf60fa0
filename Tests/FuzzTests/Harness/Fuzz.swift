// Fuzz: makes inputs by seeds, of random words too, checks a property of each, and keeps the input
// that shows a fault in a file, which outlives a crash.

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

extension SeededGenerator {
  /// Returns up to `most` words in a row.
  mutating func sentence(of words: [String], most: Int) -> String {
    (0..<Int.random(in: 0...most, using: &self))
      .map { _ in words.randomElement(using: &self) ?? "" }.joined()
  }

  /// Returns one of the values.
  mutating func pick<Value>(_ first: Value, _ others: Value...) -> Value {
    let index = Int.random(in: 0...others.count, using: &self)
    return index == 0 ? first : others[index - 1]
  }

  /// Returns a number within a range.
  mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &self) }

  /// Returns `true` one time of `count`.
  mutating func isOne(of count: Int) -> Bool { number(1...count) == 1 }

  /// Returns random bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in .random(in: 0...255, using: &self) }
  }
}

/// The last input of a fuzz test, in a file, and its seed, in another. Both are written before the
/// input is checked, so they are there after a crash, too.
final class KeptInput {
  /// The path of the input; that of the seed ends in `.seed`.
  let path: String
  private let input: UnsafeMutablePointer<FILE>
  private let seed: UnsafeMutablePointer<FILE>
  private let folder: String
  private var lengths = (input: 0, seed: 0)

  /// Creates the files, in `PICTOR_FUZZ_FOLDER` or in a new folder below `/tmp`.
  ///
  /// - Throws: `Fault` if they cannot be created.
  init(_ name: String) throws(Fault) {
    if let stated = getenv("PICTOR_FUZZ_FOLDER") {
      folder = String(cString: stated)
      mkdir(folder, 0o755)
    } else {
      folder = try Self.newFolder()
    }
    path = "\(folder)/\(name)"
    guard let input = fopen(path, "w") else {
      throw Fault(description: "cannot write \(path): \(String(cString: strerror(errno)))")
    }
    guard let seed = fopen(path + ".seed", "w") else {
      fclose(input)
      throw Fault(description: "cannot write \(path).seed: \(String(cString: strerror(errno)))")
    }
    self.input = input
    self.seed = seed
  }

  deinit {
    fclose(input)
    fclose(seed)
  }

  /// Creates a folder of its own: other tests remove theirs while this one starts.
  private static func newFolder() throws(Fault) -> String {
    guard let path = strdup("/tmp/pictor-fuzz-XXXXXX") else {
      throw Fault(description: "no memory for a path")
    }
    defer { free(path) }
    guard mkdtemp(path) != nil else {
      throw Fault(
        description: "cannot create \(String(cString: path)): \(String(cString: strerror(errno)))")
    }
    return String(cString: path)
  }

  /// Writes another input over the last one.
  func replace(with bytes: [UInt8], seed number: UInt64) {
    Self.write(bytes, to: input, over: &lengths.input)
    Self.write(Array("\(number)\n".utf8), to: seed, over: &lengths.seed)
  }

  private static func write(
    _ bytes: [UInt8], to file: UnsafeMutablePointer<FILE>, over length: inout Int
  ) {
    pwrite(fileno(file), bytes, bytes.count, 0)
    if bytes.count < length { ftruncate(fileno(file), bytes.count) }
    length = bytes.count
  }

  /// Removes the files, and the folder with the last of them.
  func remove() {
    unlink(path)
    unlink(path + ".seed")
    rmdir(folder)
  }
}
