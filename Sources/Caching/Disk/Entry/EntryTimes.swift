// EntryTimes: when an entry was first kept, last written and last used, and how its file says so.

import Glibc
import Model

/// The times of an entry. They are its file's own, so that they outlive a restart without a file being read: the access
/// time, the seconds of the modification time, and in the nanoseconds of that how many seconds earlier its key was first
/// kept. A file system that rounds nanoseconds (NTFS to hundreds, FAT and ext4 with its smallest inodes to whole seconds)
/// makes an entry a little younger than it is. A copy without its times has been kept for up to 31 years, by chance; only
/// what counts age from there minds.
struct EntryTimes: Equatable {
  /// When its key was first kept. Whatever replaces an entry has the same.
  var created: UnixTime
  /// When its file was written, which a revalidation does too.
  var stored: UnixTime
  /// When it was last asked for.
  var access: UnixTime

  /// The time of use is written to a file at most once in so many seconds.
  static let accessGranularity = 300
  /// Seconds that a time may be ahead of the clock before the clock is blamed: clocks are moved a little all the time.
  private static let tolerance = 60
  /// The most that nanoseconds can say: 31 years.
  private static let greatestAge = 999_999_999

  init(created: UnixTime, stored: UnixTime, access: UnixTime) {
    (self.created, self.stored, self.access) = (created, stored, access)
  }

  /// Those of an entry that is new.
  init(keptAt now: UnixTime) { self.init(created: now, stored: now, access: now) }

  /// What a file says.
  init(of status: stat) {
    stored = UnixTime(seconds: status.st_mtim.tv_sec).bounded
    created = UnixTime(seconds: stored.seconds - status.st_mtim.tv_nsec)
    access = max(stored, UnixTime(seconds: status.st_atim.tv_sec).bounded)
  }

  /// The latest moment of a use that was not written to the file because this one had been.
  var latestAccess: UnixTime {
    UnixTime(
      seconds: (access.seconds / Self.accessGranularity + 1) * Self.accessGranularity - 1)
  }

  /// Whether it is time to write to a file that its entry is used now.
  func isTouchDue(_ now: UnixTime) -> Bool {
    now.seconds / Self.accessGranularity != access.seconds / Self.accessGranularity
  }

  /// Whether one of them cannot be, because it is still to come.
  func areAhead(of now: UnixTime) -> Bool {
    max(created, stored, access).seconds - now.seconds > Self.tolerance
  }

  /// The same with none that is still to come.
  func bounded(by now: UnixTime) -> EntryTimes {
    EntryTimes(created: min(created, now), stored: min(stored, now), access: min(access, now))
  }

  /// Gives them to an open file; a failure loses no more than them.
  func write(to descriptor: CInt) { withFileTimes { _ = futimens(descriptor, $0) } }

  /// Gives them to a file that is not open.
  func write(to path: String) { withFileTimes { _ = utimensat(AT_FDCWD, path, $0, 0) } }

  private func withFileTimes(_ body: (UnsafePointer<timespec>?) -> Void) {
    let age = min(max(stored.seconds - created.seconds, 0), Self.greatestAge)
    Self.with(
      access: timespec(tv_sec: access.seconds, tv_nsec: 0),
      modification: timespec(tv_sec: stored.seconds, tv_nsec: age), body)
  }

  /// Gives a time of use alone to an open file, so that the order of use outlives a restart.
  static func touch(_ descriptor: CInt, _ access: UnixTime) {
    withAccess(access) { _ = futimens(descriptor, $0) }
  }

  /// The same for a file that is not open.
  static func touch(_ path: String, _ access: UnixTime) {
    withAccess(access) { _ = utimensat(AT_FDCWD, path, $0, 0) }
  }

  private static func withAccess(
    _ access: UnixTime, _ body: (UnsafePointer<timespec>?) -> Void
  ) {
    with(
      access: timespec(tv_sec: access.seconds, tv_nsec: 0),
      modification: timespec(tv_sec: 0, tv_nsec: utimeOmit), body)
  }

  /// `UTIME_OMIT` of `<sys/stat.h>`, a macro that Swift does not see.
  private static let utimeOmit = (1 << 30) - 2

  private static func with(
    access: timespec, modification: timespec, _ body: (UnsafePointer<timespec>?) -> Void
  ) {
    var times = (access, modification)
    withUnsafeBytes(of: &times) { body($0.bindMemory(to: timespec.self).baseAddress) }
  }
}
