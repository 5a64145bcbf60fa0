// TemporaryFolder: a temporary folder of one test, removed with its last reference.

import Core
import Glibc

/// A new, empty folder that is removed with its content when the object is released.
public final class TemporaryFolder: Sendable {
  /// The absolute path of the folder.
  public let path: String

  /// Creates a folder below `/var/tmp`, which is on disk; `/tmp` is in memory on some systems.
  public init() throws {
    var template = Array("/var/tmp/pictor-test-XXXXXX".utf8CString)
    path = try template.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress, let made = mkdtemp(start) else {
        throw Failure(what: "mkdtemp", code: errno)
      }
      return String(cString: made)
    }
  }

  deinit { Self.remove(path) }

  /// Writes a file at a path inside the folder, replacing an existing one.
  public func write(_ name: String, bytes: [UInt8]) throws {
    let descriptor = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Failure(what: "open", code: errno) }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      throw Failure(what: "write", code: errno)
    }
  }

  /// Reads a file at a path inside the folder.
  public func read(_ name: String) throws -> [UInt8] {
    let descriptor = open("\(path)/\(name)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(what: "open", code: errno) }
    let count = Int(lseek(descriptor, 0, SEEK_END))
    let bytes = try ImageBytes(
      contentsOf: FileRegion(owning: descriptor, count: count), mayMap: false)
    return bytes.withUnsafeBytes { Array($0) }
  }

  /// Writes a shell script that can be started. Returns its path.
  ///
  /// A program of its own writes the file. Another test's thread may fork meanwhile, and its child
  /// copies the writing descriptor; until it starts its program, a start of the file is ETXTBSY.
  public func writeProgram(_ name: String, script: String) throws -> String {
    let (text, program) = ("\(path)/\(name).sh", "\(path)/\(name)")
    try write("\(name).sh", bytes: Array(script.utf8))
    try ChildProcess.run("install", "-m", "755", text, program)
    unlink(text)
    return program
  }

  /// Returns the paths of all files below `path`, without folders, in any order.
  public static func files(below path: String) -> [String] {
    var files: [String] = []
    walk(path) { path, status in
      if status.st_mode & S_IFMT != S_IFDIR { files.append(path) }
    }
    return files
  }

  /// Returns the bytes that everything at and below `path` uses on disk, as `du` counts them.
  public static func diskUsage(of path: String) -> Int {
    // A file that is moved during the walk is met twice.
    var blocks: [ino_t: Int] = [:]
    walk(path) { _, status in blocks[status.st_ino] = Int(status.st_blocks) }
    return blocks.values.reduce(0, +) * 512
  }

  /// Removes a file, or a folder with its content.
  public static func remove(_ path: String) {
    var all: [(String, Bool)] = []
    walk(path) { path, status in all.append((path, status.st_mode & S_IFMT == S_IFDIR)) }
    for (path, isFolder) in all.reversed() { _ = isFolder ? rmdir(path) : unlink(path) }
  }

  /// Visits `path` and everything below, folders before their content. Skips entries that vanish
  /// during the walk.
  private static func walk(_ path: String, visit: (String, stat) -> Void) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    visit(path, status)
    guard status.st_mode & S_IFMT == S_IFDIR, let stream = opendir(path) else { return }
    defer { closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { walk(path + "/" + name, visit: visit) }
    }
  }

  /// A failed system call.
  public struct Failure: Error {
    /// The name of the call.
    public let what: String
    /// The `errno` of the call.
    public let code: CInt

    /// Creates a failure.
    public init(what: String, code: CInt) {
      self.what = what
      self.code = code
    }
  }
}
