// SessionNiceness: the priority of a worker's session.

import Core
import Glibc

/// A session of the worker's own, and the niceness of its autogroup.
///
/// If the kernel groups tasks by session (sched(7), “The autogroup feature”), niceness counts
/// within a group only, and one task's use counts against its whole group: an event loop would wait
/// for the workers' share. So the session's group gets the niceness. Without groups, the worker's
/// own niceness counts. A failure only makes images faster and hits slower.
public struct SessionNiceness: ~Copyable {
  /// The process's `autogroup` file in /proc, until the group has its niceness.
  private var file: OwnedDescriptor
  /// The group's niceness to come, as text.
  private let wanted: String

  /// Adds `niceness` to the process's own, and remembers that of the session to come.
  init(lowering niceness: CInt) {
    let own = getpriority(CInt(PRIO_PROCESS.rawValue), 0)
    _ = nice(niceness)
    file = OwnedDescriptor(owning: open("/proc/self/autogroup", O_RDWR | O_CLOEXEC))
    var text = [UInt8](repeating: 0, count: 64)
    let count = max(pread(file.value, &text, text.count, 0), 0)
    let group = Self.niceness(ofGroup: String(decoding: text[..<count], as: UTF8.self))
    wanted = "\(min((group ?? own) + niceness, 19))"
  }

  /// Returns the niceness in the text of an `autogroup` file (`/autogroup-25 nice 0`), or `nil` if
  /// it is empty. A process without a session has no group.
  static func niceness(ofGroup text: String) -> CInt? {
    text.split { $0 == " " || $0 == "\n" }.last.flatMap { CInt($0) }
  }

  /// Starts a session with a process group, so that all that the worker starts is killed.
  mutating func startSession() {
    guard setsid() >= 0 else { return finish() }
    applyIfAllowed()
  }

  /// Sets the niceness of the session's group unless it is set. Never blocks: without
  /// CAP_SYS_ADMIN, one group can change in 0.1 s (EAGAIN), so a worker tries again.
  public mutating func applyIfAllowed() {
    guard file.value >= 0 else { return }
    var text = wanted
    let isWritten = text.withUTF8 { write(file.value, $0.baseAddress, $0.count) } > 0
    if isWritten || errno != EAGAIN { finish() }
  }

  private mutating func finish() { file = OwnedDescriptor(owning: -1) }
}
