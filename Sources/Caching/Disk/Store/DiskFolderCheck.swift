// DiskFolderCheck: checks whether a folder is usable for the disk tier, without changing it.

import Glibc
import Platform

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
