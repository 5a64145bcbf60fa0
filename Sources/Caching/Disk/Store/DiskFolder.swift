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
    if let found = Self.kindInPlaceOfLock(path) { throw .noLock(path: path, found: found) }
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

  /// Whether the lock that keeps other processes out is still the one that this process has: whoever deletes its file
  /// lets them in. Two system calls.
  var isLocked: Bool { lockDescriptor.withLock { isLock($0) } }

  /// Makes what is gone anew, as after somebody deleted the folder or a part of it; tells whether anything was gone.
  ///
  /// - Throws: `EWOULDBLOCK` where another process has taken the folder meanwhile.
  func heal() throws(SystemError) -> Bool {
    let gone = Self.fixedFolders.filter { access("\(path)/\($0)", F_OK) != 0 }
    let wasLocked = try lockDescriptor.withLock { descriptor throws(SystemError) -> Bool in
      // One that is still there is still held, by this process: it cannot be taken twice.
      if isLock(descriptor) { return true }
      // Given up for good.
      guard descriptor >= 0 else { throw SystemError(EBADF) }
      try Self.createParents(of: path)
      try Self.create(path)
      let taken = try Self.lock(path)
      close(descriptor)
      descriptor = taken
      return false
    }
    for name in gone { try Self.create("\(path)/\(name)") }
    return !wasLocked || !gone.isEmpty
  }

  /// Whether the lock's file is the one that this descriptor is of.
  private func isLock(_ descriptor: CInt) -> Bool {
    var (held, found) = (stat(), stat())
    return fstat(descriptor, &held) == 0 && stat("\(path)/lock", &found) == 0
      && held.st_ino == found.st_ino && held.st_dev == found.st_dev
  }

  /// Whether the file system says that it has room for so many bytes and inodes. One that counts no inodes says 0 of all.
  func hasRoom(bytes: Int, inodes: Int) -> Bool {
    var system = statvfs()
    guard statvfs(path, &system) == 0 else { return true }
    return Int(clamping: system.f_bavail) >= bytes / max(Int(system.f_frsize), 1)
      && (system.f_files == 0 || Int(clamping: system.f_favail) >= inodes)
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

  /// The numbers of the folders of a kind that are there, of those in `range`, which are all in one upper folder.
  func folders(_ kind: EntryKind, in range: Range<Int>) throws(SystemError) -> [Int] {
    let upper = range.lowerBound & ~0xff
    return try Self.contents(of: upperFolder(kind, range.lowerBound)).compactMap { name in
      guard name.utf8.count == 2, let low = UInt8(name, radix: 16) else { return nil }
      let number = upper + Int(low)
      return range.contains(number) ? number : nil
    }
  }

  /// The names in a folder, without those that begin with a dot; none where it cannot be read.
  static func names(in path: String) -> [String] { (try? contents(of: path)) ?? [] }

  /// The same for whoever has to know why it cannot be read; a folder that is not there is empty.
  static func contents(of path: String) throws(SystemError) -> [String] {
    guard let stream = opendir(path) else {
      guard errno == ENOENT else { throw SystemError() }
      return []
    }
    defer { closedir(stream) }
    return try names(in: stream)
  }

  /// The names that are left in an open folder, without those that begin with a dot.
  static func names(in stream: OpaquePointer) throws(SystemError) -> [String] {
    var names: [String] = []
    while true {
      // The end and a failure look alike but for this (readdir(3)).
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw SystemError() }
        return names
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
  }

  /// Blocks of 512 bytes that a file or folder takes, 0 where there is none.
  static func blocks(of path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_blocks) : 0
  }

  /// Has it on the medium which names are in a folder.
  static func sync(_ path: String) throws(SystemError) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError() }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw SystemError() }
  }

  /// The same for the folder numbered 0–4,095, or, where that was removed, for whichever above it is there.
  func sync(_ kind: EntryKind, _ number: Int) throws(SystemError) {
    for path in [folder(kind, number), upperFolder(kind, number)] {
      do {
        return try Self.sync(path)
      } catch  where error.code != ENOENT {
        throw error
      } catch {}
    }
    try Self.sync("\(path)/\(kind.folderName)")
  }

  static let fixedFolders = ["v", "s", "tmp"]
  /// How often the lock is tried, and how long between, in microseconds: a check of the configuration has it for a
  /// moment.
  private static let (lockAttempts, lockPause) = (5, useconds_t(10_000))

  /// Takes the lock. The system drops it with the process, however that ends.
  private static func lock(_ path: String) throws(SystemError) -> CInt {
    let descriptor = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw SystemError() }
    for attempt in 1...lockAttempts {
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
      let error = SystemError()
      guard error.code == EWOULDBLOCK, attempt < lockAttempts else {
        close(descriptor)
        throw error
      }
      usleep(lockPause)
    }
    return descriptor
  }

  /// What is in place of the lock's file, where that is anything but a file.
  static func kindInPlaceOfLock(_ path: String) -> String? {
    var status = stat()
    guard lstat("\(path)/lock", &status) == 0 else { return nil }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: nil
    case S_IFDIR: "a folder"
    case S_IFLNK: "a symbolic link"
    default: "a special file"
    }
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
