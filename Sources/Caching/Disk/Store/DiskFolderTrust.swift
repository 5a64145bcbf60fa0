// DiskFolderTrust: checks that no other user can change the cache.

import Glibc

extension DiskFolder {
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
