// KeptInput: the file of the input that is being checked, which outlives a crash.

import Glibc

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
