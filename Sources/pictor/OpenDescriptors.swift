// OpenDescriptors: counts the process's open descriptors without delaying an event loop.

import Core
import Glibc

/// Counts open descriptors for `/stats`, which event loops answer.
///
/// Linux 6.2 and later report the number as the size of `/proc/self/fd`. Before, a thread lists the
/// folder, at most once a second: that takes 14 ms with 15,000 descriptors.
final class OpenDescriptors: Sendable {
  private struct State {
    var last: Int?
    var listedAt: ContinuousClock.Instant?
    var isListing = false
  }

  private static let folder = "/proc/self/fd"
  private static let interval = Duration.seconds(1)

  private let hasSize: Bool
  private let state = Lock(State())

  /// - Parameter hasSize: Whether to use the kernel's own number if it has one.
  init(hasSize: Bool = true) { self.hasSize = hasSize }

  /// The number, at most a few seconds old; 0 until it is known. Never lists on the calling thread.
  var count: Int {
    var status = stat()
    if hasSize, stat(Self.folder, &status) == 0, status.st_size > 0 { return Int(status.st_size) }
    let (last, mustList) = state.withLock { state in
      let isDue = state.listedAt.map { .now - $0 >= Self.interval } ?? true
      let mustList = isDue && !state.isListing
      if mustList { state.isListing = true }
      return (state.last, mustList)
    }
    if mustList { list() }
    return last ?? 0
  }

  private func list() {
    let isStarted: Void? = try? OwnThread.start(name: "pictor-count", rank: .background) { [self] in
      // Without the descriptor that the listing itself uses.
      let found = Self.entries - 1
      state.withLock { state in
        state.last = max(found, 0)
        state.listedAt = .now
        state.isListing = false
      }
    }
    if isStarted == nil { state.withLock { $0.isListing = false } }
  }

  /// Returns the number of entries of the folder, without `.` and `..`.
  private static var entries: Int {
    guard let stream = opendir(folder) else { return 0 }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    return count - 2
  }
}
