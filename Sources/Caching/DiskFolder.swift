// DiskFolder: where the disk tier's files are, and the lock that keeps a second process out.

import Glibc
import Model
import Platform
import Synchronization

/// The tier's folder: `v/a/bc/<digest>` for variants, `s/a/bc/<digest>` for sources, `tmp` for what is being written,
/// `lock`. 4,096 folders of each kind: a million entries are 250 in each, and empty ones are removed again. All variants
/// of a source are in one.
///
/// Paths and no folder descriptors: a folder that was deleted and made anew is found again.
final class DiskFolder: Sendable {
  let path: String
  /// What files are rounded up to, in bytes.
  let blockSize: Int
  /// What a new folder takes, in bytes, as `du` counts.
  let folderCost: Int
  /// What the folders take that are always there.
  let baseCost: Int
  private let lockDescriptor: Lock<CInt>
  private let temporaryCount = Atomic<Int>(0)

  /// Creates what is absent and takes the lock.
  init(path: String) throws(DiskTierError) {
    self.path = path
    do {
      try Self.createParents(of: path)
      try Self.create(path)
      lockDescriptor = Lock(try Self.lock(path))
      for name in Self.fixedFolders { try Self.create("\(path)/\(name)") }
    } catch {
      throw error.code == EWOULDBLOCK
        ? .inUse(path: path) : .unusable(path: path, reason: error.description)
    }
    // A folder that exists can still be one that nobody may write to.
    if access("\(path)/tmp", W_OK | X_OK) != 0 {
      throw .unusable(path: path, reason: errnoText())
    }
    var system = statvfs()
    blockSize = statvfs(path, &system) == 0 ? max(Int(system.f_frsize), 4_096) : 4_096
    folderCost = Self.blocks(of: "\(path)/tmp") * 512
    let fixed = Self.fixedFolders.map { "\(path)/\($0)" } + [path, "\(path)/lock"]
    baseCost = fixed.reduce(0) { $0 + Self.blocks(of: $1) * 512 }
  }

  deinit { unlock() }

  /// Lets other processes have the folder.
  func unlock() {
    lockDescriptor.withLock { descriptor in
      if descriptor >= 0 { close(descriptor) }
      descriptor = -1
    }
  }

  /// Makes what is gone anew, as after somebody deleted the folder or a part of it; tells whether anything was gone.
  func heal() throws(SystemError) -> Bool {
    let gone = Self.fixedFolders.filter { access("\(path)/\($0)", F_OK) != 0 }
    // A lock that is still there is still held, by this process: it cannot be taken twice.
    let isLockGone = access("\(path)/lock", F_OK) != 0
    guard isLockGone || !gone.isEmpty else { return false }
    try Self.createParents(of: path)
    try Self.create(path)
    if isLockGone {
      let descriptor = try Self.lock(path)
      lockDescriptor.withLock {
        if $0 >= 0 { close($0) }
        $0 = descriptor
      }
    }
    for name in gone { try Self.create("\(path)/\(name)") }
    return true
  }

  /// The path of an entry's file.
  func file(_ kind: EntryKind, _ digest: EntryDigest) -> String {
    folder(kind, digest.folder) + "/" + digest.hexadecimal
  }

  /// The path of the folder numbered 0–4,095.
  func folder(_ kind: EntryKind, _ number: Int) -> String {
    let low = number & 0xff
    return upperFolder(kind, number) + (low < 16 ? "/0" : "/") + String(low, radix: 16)
  }

  /// The path of the folder above the one numbered 0–4,095.
  func upperFolder(_ kind: EntryKind, _ number: Int) -> String {
    "\(path)/\(kind.folderName)/" + String(number >> 8, radix: 16)
  }

  /// A path in `tmp` that was not used before.
  func temporaryFile() -> String {
    "\(path)/tmp/\(temporaryCount.wrappingAdd(1, ordering: .relaxed).newValue)"
  }

  /// Removes what a process that was killed left half written; nobody may be writing.
  func removeLeftovers() {
    for name in Self.names(in: "\(path)/tmp") { unlink("\(path)/tmp/\(name)") }
  }

  /// The names in a folder, without those that begin with a dot; none where it cannot be read.
  static func names(in path: String) -> [String] {
    guard let stream = opendir(path) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }

  /// Blocks of 512 bytes that a file or folder takes, 0 where there is none.
  static func blocks(of path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_blocks) : 0
  }

  private static let fixedFolders = ["v", "s", "tmp"]

  /// Takes the lock. The system drops it with the process, however that ends.
  private static func lock(_ path: String) throws(SystemError) -> CInt {
    let descriptor = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemError() }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let error = SystemError()
      close(descriptor)
      throw error
    }
    return descriptor
  }

  private static func createParents(of path: String) throws(SystemError) {
    for (position, byte) in path.utf8.enumerated() where byte == UInt8(ascii: "/") && position > 0 {
      if let parent = String(path.utf8.prefix(position)) { try create(parent) }
    }
  }

  private static func create(_ path: String) throws(SystemError) {
    guard mkdir(path, 0o700) != 0 else { return }
    let error = SystemError()
    var status = stat()
    if stat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(ENOTDIR) }
    } else {
      throw error
    }
  }
}
