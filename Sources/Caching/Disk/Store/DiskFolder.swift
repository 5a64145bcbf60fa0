// DiskFolder: the paths of the disk tier's files, the lock, and who may change them.

import CLinux
import Core
import Glibc
import Synchronization

/// The folder of the disk tier:
///
/// - `v/ab/<digest>`: variants. All variants of a source are in one folder.
/// - `s/ab/<digest>`: sources.
/// - `tmp`: files being written.
/// - `lock`: the lock file.
/// - `purges`: the purge journal, if purges are unfinished.
/// - `CACHEDIR.TAG`: tells backups to leave the folder out (https://bford.info/cachedir).
///
/// There are 256 folders of each kind, so a million entries are about 4,000 in each. Empty folders
/// are removed. Files are addressed by path, not by folder descriptor, so a recreated folder is
/// found again.
final class DiskFolder: Sendable {
  let path: String
  /// The unit to which file sizes are rounded up, in bytes.
  let blockSize: Int
  /// The size of a new folder in bytes, as `du` counts it.
  let folderCost: Int
  /// The size of the permanent folders and the lock file in bytes.
  let baseCost: Int
  private let lockDescriptor: Lock<CInt>
  private let opened: Lock<Place?>
  private let temporaryCount = Atomic<Int>(0)

  /// The open cache folder. Its owner closes it with the last reference.
  final class Place: Sendable {
    /// The descriptor, only for paths relative to it.
    let descriptor: CInt

    fileprivate init?(_ path: String) {
      descriptor = pictor_linux_open_place(path)
      guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
  }

  /// The folder for paths relative to it, which need no look-up of the folder's own path. A folder
  /// that was deleted and created again is another one: nothing is found in the old one until
  /// `heal` opens the new one. `nil` if it cannot be opened.
  var place: Place? { opened.withLock { $0 } }

  /// Creates missing folders and takes the lock.
  init(path: String) throws(DiskTierError) {
    self.path = path
    if let found = Self.kindInPlaceOfLock(path) { throw .lockIsNotAFile(path: path, found: found) }
    do {
      try Self.createParents(of: path)
      try Self.create(path)
    } catch {
      throw .unusable(path: path, reason: error.description)
    }
    // Before anything is created inside: from here on, only this user can exchange a part of it.
    try Self.requireTrust(path)
    do {
      lockDescriptor = Lock(try Self.lock(path))
      for name in Self.fixedFolders { try Self.create("\(path)/\(name)") }
    } catch {
      throw error.code == EWOULDBLOCK
        ? .inUse(path: path) : .unusable(path: path, reason: error.description)
    }
    Self.tag(path)
    // An existing folder may still be read-only.
    if access("\(path)/tmp", W_OK | X_OK) != 0 {
      throw .unusable(path: path, reason: errnoText())
    }
    var system = statvfs()
    blockSize = statvfs(path, &system) == 0 ? max(Int(system.f_frsize), 4_096) : 4_096
    folderCost = Self.blocks(of: "\(path)/tmp") * 512
    opened = Lock(Place(path))
    let fixed =
      Self.fixedFolders.map { "\(path)/\($0)" } + [path, "\(path)/lock", "\(path)/CACHEDIR.TAG"]
    baseCost = fixed.reduce(0) { $0 + Self.blocks(of: $1) * 512 }
  }

  deinit { unlock() }

  /// Releases the lock.
  func unlock() {
    lockDescriptor.withLock { descriptor in
      if descriptor >= 0 { close(descriptor) }
      descriptor = -1
    }
  }

  /// Whether the lock file is still the one that this process has locked. If it was deleted,
  /// another process can take the lock. Costs two system calls.
  var isLocked: Bool { lockDescriptor.withLock { isLock($0) } }

  /// Recreates deleted parts of the folder. Returns whether anything was missing.
  ///
  /// - Throws: `EWOULDBLOCK` if another process has taken the folder meanwhile.
  func heal() throws(SystemError) -> Bool {
    let gone = Self.fixedFolders.filter { access("\(path)/\($0)", F_OK) != 0 }
    let wasLocked = try lockDescriptor.withLock { descriptor throws(SystemError) -> Bool in
      // This process still holds the lock, which cannot be taken twice.
      if isLock(descriptor) { return true }
      // The lock was released for good.
      guard descriptor >= 0 else { throw SystemError(EBADF) }
      try Self.createParents(of: path)
      try Self.create(path)
      guard Self.isTrusted(path) else { throw SystemError(EACCES) }
      let taken = try Self.lock(path)
      close(descriptor)
      descriptor = taken
      return false
    }
    for name in gone { try Self.create("\(path)/\(name)") }
    if !gone.isEmpty { Self.tag(path) }
    let isChanged = !wasLocked || !gone.isEmpty
    if isChanged {
      let place = Place(path)
      opened.withLock { $0 = place }
    }
    return isChanged
  }

  /// Returns whether the descriptor belongs to the current lock file.
  private func isLock(_ descriptor: CInt) -> Bool {
    var held = stat()
    var found = stat()
    return fstat(descriptor, &held) == 0 && lstat("\(path)/lock", &found) == 0
      && held.st_ino == found.st_ino && held.st_dev == found.st_dev
  }

  /// Returns whether the file system has room for these bytes and inodes. A file system without an
  /// inode limit reports 0 inodes in total.
  func hasRoom(bytes: Int, inodes: Int) -> Bool {
    var system = statvfs()
    guard statvfs(path, &system) == 0 else { return true }
    return Int(clamping: system.f_bavail) >= bytes / max(Int(system.f_frsize), 1)
      && (system.f_files == 0 || Int(clamping: system.f_favail) >= inodes)
  }

  /// Returns the path of an entry's file.
  func file(_ kind: EntryKind, of digest: EntryDigest) -> String {
    folder(kind, number: digest.folder) + "/" + digest.hexadecimal
  }

  /// Returns the path of an entry's file relative to the cache folder.
  static func relativePath(_ kind: EntryKind, of digest: EntryDigest) -> String {
    // The first two digits of the name are the number of the folder.
    let name = digest.hexadecimal
    return "\(kind.folderName)/\(name.prefix(2))/\(name)"
  }

  /// Returns the path of the folder with a number, 0–255.
  func folder(_ kind: EntryKind, number: Int) -> String {
    "\(path)/\(kind.folderName)" + (number < 16 ? "/0" : "/") + String(number, radix: 16)
  }

  /// The folder of unfinished files.
  var temporaryFolder: String { "\(path)/tmp" }

  /// Returns an unused path in `tmp`.
  func temporaryFile() -> String {
    "\(temporaryFolder)/\(temporaryCount.wrappingAdd(1, ordering: .relaxed).newValue)"
  }

  /// Removes unfinished files of a killed process. No write may be in progress.
  func removeLeftovers() {
    for name in Self.names(in: temporaryFolder) { unlink("\(temporaryFolder)/\(name)") }
  }

  /// Returns the names in a folder, except those that start with a dot. An unreadable folder yields
  /// no names.
  static func names(in path: String) -> [String] { (try? contents(of: path)) ?? [] }

  /// Returns the names in a folder, except those that start with a dot. A missing folder yields no
  /// names.
  ///
  /// - Throws: the system error if an existing folder cannot be read.
  static func contents(of path: String) throws(SystemError) -> [String] {
    guard let stream = opendir(path) else {
      guard errno == ENOENT else { throw SystemError() }
      return []
    }
    defer { closedir(stream) }
    return try names(in: stream)
  }

  /// Returns the remaining names of an open folder, except those that start with a dot.
  static func names(in stream: OpaquePointer) throws(SystemError) -> [String] {
    var names: [String] = []
    while true {
      // Only errno tells the end from a failure (readdir(3)).
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

  /// Returns the blocks of 512 bytes that a file or folder takes; 0 if it does not exist.
  static func blocks(of path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_blocks) : 0
  }

  /// Syncs the names in a folder to the medium.
  static func sync(_ path: String) throws(SystemError) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError() }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw SystemError() }
  }

  /// Syncs the folder with a number, 0–255. If it was removed, syncs its parent.
  func sync(_ kind: EntryKind, number: Int) throws(SystemError) {
    do {
      try Self.sync(folder(kind, number: number))
    } catch {
      guard error.code == ENOENT else { throw error }
      try Self.sync("\(path)/\(kind.folderName)")
    }
  }

  static let fixedFolders = ["v", "s", "tmp"]
  /// How often the lock is tried, because a check of the configuration holds it for a moment.
  private static let lockAttempts = 5
  /// The time between two attempts, in microseconds.
  private static let lockPause = useconds_t(10_000)

  /// Takes the lock. The system releases it when the process ends in any way.
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

  /// Writes the tag if it is missing. Without room for it, the cache works as well.
  private static func tag(_ path: String) {
    let descriptor = open(
      "\(path)/CACHEDIR.TAG", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let text = "Signature: 8a477f597d28d172789f06886806bc55\n# The disk tier of Pictor.\n"
    _ = text.withCString { write(descriptor, $0, strlen($0)) }
  }

  /// Returns the kind of object in place of the lock file; `nil` if it is a file or absent.
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

  /// Checks that the folder and those in it belong to this process's user, that only this user may
  /// write to them, and that those in it are no symbolic links. An absent folder passes.
  ///
  /// Otherwise another user could put images into the cache, or lead writes to other places. The
  /// folder itself may be reached through a link, which the operator chose.
  ///
  /// - Throws: `DiskTierError.untrusted`.
  static func requireTrust(_ path: String) throws(DiskTierError) {
    for name in [nil] + fixedFolders.map(Optional.some) {
      let folder = name.map { "\(path)/\($0)" } ?? path
      var status = stat()
      guard (name == nil ? stat(folder, &status) : lstat(folder, &status)) == 0 else { continue }
      guard let reason = reason(against: status) else { continue }
      throw .untrusted(path: folder, reason: reason + ", or name another folder in disk.path")
    }
  }

  /// Whether `requireTrust` accepts the folder.
  static func isTrusted(_ path: String) -> Bool { (try? requireTrust(path)) != nil }

  /// Returns why a folder is not safe, and what to do; `nil` if it is.
  private static func reason(against status: stat) -> String? {
    guard status.st_mode & S_IFMT != S_IFLNK else {
      return "it is a symbolic link, and must be a folder: remove it"
    }
    // Anything else that is no folder has an error of its own.
    guard status.st_mode & S_IFMT == S_IFDIR else { return nil }
    guard status.st_uid == geteuid() else {
      return
        "it belongs to user \(status.st_uid), and this process is user \(geteuid()): change its "
        + "owner"
    }
    let mode = status.st_mode & 0o7777
    guard mode & 0o022 == 0 else {
      return "other users may write to it (mode \(String(mode, radix: 8))): make it mode 700"
    }
    return nil
  }
}

extension DiskTier {
  /// Checks whether a tier could start in a folder. Changes nothing; a running tier keeps its lock.
  ///
  /// - Throws: the errors of `init`: `unusable` if the folder cannot be created or written,
  ///   `lockIsNotAFile`, `untrusted` if another user may change the folder, and `inUse` if another
  ///   process has the folder.
  public static func check(path: String) throws(DiskTierError) {
    if let found = DiskFolder.kindInPlaceOfLock(path) {
      throw .lockIsNotAFile(path: path, found: found)
    }
    try DiskFolder.requireTrust(path)
    do throws(SystemError) {
      try DiskFolder.checkFolders(path)
      try DiskFolder.checkLock(path)
    } catch {
      throw error.code == EWOULDBLOCK
        ? .inUse(path: path) : .unusable(path: path, reason: error.description)
    }
  }
}

extension DiskFolder {
  /// Checks that all folders of a tier exist or can be created, and are writable.
  fileprivate static func checkFolders(_ path: String) throws(SystemError) {
    guard try isFolder(path) else { return try requireRoom(in: parentThatExists(of: path)) }
    try requireWritable(path)
    for name in fixedFolders where try isFolder("\(path)/\(name)") {
      try requireWritable("\(path)/\(name)")
    }
  }

  /// Checks that the lock can be taken.
  ///
  /// - Throws: `EWOULDBLOCK` if another process has it, or the system error.
  fileprivate static func checkLock(_ path: String) throws(SystemError) {
    let descriptor = open("\(path)/lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      // A start creates it.
      if errno == ENOENT { return }
      throw SystemError()
    }
    defer { close(descriptor) }
    // A shared lock for a moment; a server that starts meanwhile tries again (`DiskFolder.lock`).
    guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { throw SystemError() }
  }

  /// Returns whether a folder exists at `path`; `false` if nothing does.
  ///
  /// - Throws: `ENOTDIR` if something else exists there, or the system error.
  private static func isFolder(_ path: String) throws(SystemError) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else { throw SystemError() }
      return false
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(ENOTDIR) }
    return true
  }

  /// Returns the innermost folder on the way to `path` that exists.
  private static func parentThatExists(of path: String) throws(SystemError) -> String {
    var parent = path
    while true {
      while parent.count > 1, parent.hasSuffix("/") { parent.removeLast() }
      guard let slash = parent.lastIndex(of: "/") else { return "." }
      parent = slash == parent.startIndex ? "/" : String(parent[..<slash])
      if try isFolder(parent) { return parent }
      guard parent != "/" else { throw SystemError(ENOENT) }
    }
  }

  /// Checks that a folder can be created in `parent`: creates and removes one.
  private static func requireRoom(in parent: String) throws(SystemError) {
    let path = "\(parent)/.pictor-check-\(getpid())"
    guard mkdir(path, 0o700) == 0 else { throw SystemError() }
    rmdir(path)
  }

  private static func requireWritable(_ path: String) throws(SystemError) {
    guard access(path, W_OK | X_OK) == 0 else { throw SystemError() }
  }
}
