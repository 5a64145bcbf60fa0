// EntryTimes: what an entry's file tells without being read: its times, and whether it changed.

import CLinux
import Core
import Glibc

/// The times of an entry. They are stored as the times of its file, so a restart reads them without
/// opening files:
///
/// - the last access as the access time
/// - the last write as the seconds of the modification time
/// - the creation as the nanoseconds of the modification time: how many seconds before the last
///   write
///
/// Some file systems round nanoseconds: NTFS to hundreds, FAT and ext4 with its smallest inodes to
/// whole seconds. The entry then appears a little younger. A copy that loses the file times gets a
/// random creation time up to 31 years back. This matters only to `ExpireType.creation`.
struct EntryTimes: Equatable {
  /// When its key was first stored. A replacement keeps this time.
  var created: UnixTime
  /// When its file was written. A revalidation writes it too.
  var stored: UnixTime
  /// When it was last used.
  var access: UnixTime

  /// The access time is written to a file at most once in this many seconds.
  static let accessGranularity = 300
  /// The maximum that nanoseconds can hold: 31 years, in seconds.
  private static let maximumAge = 999_999_999
}

extension EntryTimes {
  /// Creates the times of a new entry.
  init(storedAt now: UnixTime) { self.init(created: now, stored: now, access: now) }

  /// Reads the times of a file.
  init(of status: stat) {
    stored = UnixTime(seconds: status.st_mtim.tv_sec).bounded
    created = UnixTime(seconds: stored.seconds - status.st_mtim.tv_nsec)
    access = max(stored, UnixTime(seconds: status.st_atim.tv_sec).bounded)
  }

  /// Returns whether the access time in the file is due to be updated.
  func isTouchDue(_ now: UnixTime) -> Bool {
    now.seconds / Self.accessGranularity != access.seconds / Self.accessGranularity
  }

  /// Returns the times, with those in the future replaced by `now`.
  func bounded(by now: UnixTime) -> EntryTimes {
    EntryTimes(created: min(created, now), stored: min(stored, now), access: min(access, now))
  }

  /// Writes the times to an open file.
  ///
  /// - Throws: if the times cannot be set. The system's own modification time would be read as a
  ///   random creation time.
  func write(to descriptor: CInt) throws(SystemError) {
    let age = min(max(stored.seconds - created.seconds, 0), Self.maximumAge)
    let status = Self.with(
      access: timespec(tv_sec: access.seconds, tv_nsec: 0),
      modification: timespec(tv_sec: stored.seconds, tv_nsec: age)
    ) { futimens(descriptor, $0) }
    guard status == 0 else { throw SystemError() }
  }

  /// Sets only the access time of a file, so that the order of use survives a restart. A failure is
  /// ignored: the entry then counts as used earlier.
  static func touch(_ path: String, access: UnixTime) {
    _ = with(
      access: timespec(tv_sec: access.seconds, tv_nsec: 0),
      modification: timespec(tv_sec: 0, tv_nsec: utimeOmit)
    ) { utimensat(AT_FDCWD, path, $0, 0) }
  }

  /// `UTIME_OMIT` of `<sys/stat.h>`, a macro that Swift does not import.
  private static let utimeOmit = (1 << 30) - 2

  private static func with(
    access: timespec, modification: timespec, _ body: (UnsafePointer<timespec>?) -> CInt
  ) -> CInt {
    var times = (access, modification)
    return withUnsafeBytes(of: &times) { body($0.bindMemory(to: timespec.self).baseAddress) }
  }
}

/// The identity of a file and the times of its last changes: device, inode, size, modification and
/// change time (statx(2)).
///
/// A write through the file system changes the stamp, also within the tick of the kernel's clock in
/// which the file was written: the modification time of an entry's file holds its age in place of
/// nanoseconds (`EntryTimes`). Only a second write within one tick leaves the stamp as it is. A
/// program that sets the old modification time again changes the change time. Bytes that change on
/// the medium below the file system leave the stamp as it is.
struct FileStamp {
  /// The size of the file in bytes.
  let size: Int
  /// A digest of all fields under a secret of this process, never 0.
  let fingerprint: UInt32

  /// Reads the stamp of an open file. Asks neither a disk nor a server (`AT_STATX_DONT_SYNC`).
  /// Returns `nil` if the system does not support this.
  init?(of descriptor: CInt) {
    var status = pictor_linux_stamp()
    guard pictor_linux_stamp_of(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  init(_ status: pictor_linux_stamp) {
    size = Int(clamping: status.size)
    // Its seed is the secret.
    var hasher = Hasher()
    hasher.combine(status.device)
    hasher.combine(status.inode)
    hasher.combine(status.size)
    hasher.combine(status.modified)
    hasher.combine(status.changed)
    fingerprint = max(UInt32(truncatingIfNeeded: hasher.finalize()), 1)
  }
}
