// DiskFolderCheck: whether a folder could be the disk tier's, found out without changing anything in it.

import Glibc
import Platform

extension DiskTier {
  /// Looks whether a tier could start in a folder, and leaves everything as it was. A running tier keeps its lock.
  ///
  /// - Throws: what `init` would: `unusable` for what cannot be created or written to, `noLock`, and `inUse` where another
  ///   process has the folder.
  public static func check(path: String) throws(DiskTierError) {
    if let found = DiskFolder.kindInPlaceOfLock(path) { throw .noLock(path: path, found: found) }
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
  /// - Throws: the reason why a folder that is needed cannot be created or written to.
  fileprivate static func checkFolders(_ path: String) throws(SystemError) {
    guard try isFolder(path) else { return try requireRoom(in: parentThatExists(of: path)) }
    try requireWritable(path)
    for name in fixedFolders where try isFolder("\(path)/\(name)") {
      try requireWritable("\(path)/\(name)")
    }
  }

  /// - Throws: `EWOULDBLOCK` where another process has the lock, or the reason why it cannot be taken.
  fileprivate static func checkLock(_ path: String) throws(SystemError) {
    let descriptor = open("\(path)/lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      // A start creates it.
      if errno == ENOENT { return }
      throw SystemError()
    }
    defer { close(descriptor) }
    // Shared, and for a moment: a server that starts meanwhile tries again (`DiskFolder.lock`).
    guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { throw SystemError() }
  }

  /// Whether there is a folder; nothing is there otherwise.
  ///
  /// - Throws: `ENOTDIR` for anything else that is there, and why it cannot be told.
  private static func isFolder(_ path: String) throws(SystemError) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else { throw SystemError() }
      return false
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(ENOTDIR) }
    return true
  }

  /// The folder in which the first folder on the way to `path` would be made.
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

  /// - Throws: why no folder can be made in one: it makes one with a name that nobody uses, and removes it.
  private static func requireRoom(in parent: String) throws(SystemError) {
    let path = "\(parent)/.pictor-check-\(getpid())"
    guard mkdir(path, 0o700) == 0 else { throw SystemError() }
    rmdir(path)
  }

  private static func requireWritable(_ path: String) throws(SystemError) {
    guard access(path, W_OK | X_OK) == 0 else { throw SystemError() }
  }
}
