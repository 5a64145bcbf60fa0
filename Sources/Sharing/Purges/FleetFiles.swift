// FleetFiles: the files of a machine in a fleet: its position, and purges that wait for Redis.

import Core
import Glibc

/// The files `fleet-position` and `fleet-purges` in the folder of the disk tier. Without a folder
/// nothing outlives the process: then there is no disk tier, and memory is empty after a start.
struct FleetFiles: Sendable {
  /// The longest file that is read, in bytes: a full journal of the longest scopes fits.
  private static let longest = OwnPurges.limit * (PurgeScope.longestJSON + 1)

  /// The folder; `nil` without a disk tier.
  let folder: String?

  /// Reads the position. Returns `nil` without a file: the machine is new. One that is damaged or
  /// cannot be read is `.unknown`.
  func readPosition() -> AppliedPosition? {
    switch read("fleet-position") {
    case .absent: nil
    case .unreadable: .unknown
    case .text(let text): AppliedPosition(text) ?? .unknown
    }
  }

  func write(_ applied: AppliedPosition) throws(SystemError) {
    try write("fleet-position", applied.text)
  }

  /// Reads the purges that wait. A damaged line counts as a purge of everything, which contains it,
  /// and so does a file that cannot be read.
  func readPurges() -> [PurgeScope] {
    switch read("fleet-purges") {
    case .absent: []
    case .unreadable: [.everything]
    case .text(let text):
      text.split(separator: "\n").map { PurgeScope(json: String($0)) ?? .everything }
    }
  }

  func write(_ purges: [PurgeScope]) throws(SystemError) {
    try write("fleet-purges", purges.map { $0.json + "\n" }.joined())
  }

  private enum Content {
    case absent
    case unreadable
    case text(String)
  }

  private func read(_ name: String) -> Content {
    guard let folder else { return .absent }
    let file = OwnedDescriptor(
      owning: open("\(folder)/\(name)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW))
    guard file.value >= 0 else { return errno == ENOENT ? .absent : .unreadable }
    guard let text = try? FileContents.read(file.value, limit: Self.longest) else {
      return .unreadable
    }
    return .text(String(decoding: text, as: UTF8.self))
  }

  /// Replaces a file. It is on the medium when this returns.
  private func write(_ name: String, _ text: String) throws(SystemError) {
    guard let folder else { return }
    let path = "\(folder)/\(name)"
    let temporary = path + ".new"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw SystemError() }
    defer { close(descriptor) }
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw SystemError() }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw SystemError() }
    guard rename(temporary, path) == 0 else { throw SystemError() }
    let parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0 else { throw SystemError() }
    defer { close(parent) }
    guard fsync(parent) == 0 else { throw SystemError() }
  }
}

/// Whether the file may have the position. It never has more than what is durable: a crash applies
/// the rest again.
struct PositionFile {
  /// Purges in force that the disk refused, so far.
  var refused = 0
  /// How many of these it has taken since.
  private var recorded = 0
  /// Whether the file has the position of the last attempt.
  var isWritten = true
  /// When a failed attempt is repeated.
  var retry = ContinuousClock.now

  /// Whether all applied purges are durable.
  var isDurable: Bool { recorded == refused }

  /// Notes that the purges up to a number of refused ones are durable. A later one may have been
  /// refused meanwhile.
  mutating func record(upTo number: Int) { recorded = max(recorded, number) }

  /// Whether there is something to do.
  func isDue(now: ContinuousClock.Instant) -> Bool { !(isDurable && isWritten) && now >= retry }
}
