// FileStamp: what tells one state of an open file from another, without reading its bytes.

import CLinux
import Model

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
    var hash = Self.secret
    for word in [
      status.device, status.inode, status.size, UInt64(bitPattern: status.modified),
      UInt64(bitPattern: status.changed),
    ] {
      let product = (hash ^ word).multipliedFullWidth(by: 0x9e37_79b9_7f4a_7c15)
      // Adds what a product with 0 would lose.
      hash = (product.high ^ product.low) &+ word
    }
    let folded = UInt32(truncatingIfNeeded: hash ^ hash >> 32)
    fingerprint = folded == 0 ? 1 : folded
  }

  private static let secret = UInt64.random(in: 1...UInt64.max)
}
