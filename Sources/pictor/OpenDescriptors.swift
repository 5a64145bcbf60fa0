// OpenDescriptors: how many descriptors this process has open, counted without holding up an event loop.

import Glibc
import Platform

/// Counts open descriptors for `/stats`, which event loops answer.
///
/// Linux 6.2 and later tell the number as the size of `/proc/self/fd`. Earlier kernels have to list the folder, which
/// takes 14 ms of processor with 15,000 descriptors. A thread does that, at most once a second; the last number is told.
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

  /// - Parameter hasSize: Whether the kernel's own number is used where there is one.
  init(hasSize: Bool = true) { self.hasSize = hasSize }

  /// The number now, or at most a few seconds ago; 0 until it is known. Never lists on the calling thread.
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
      // Without the descriptor that the listing itself opens.
      let found = Self.entries - 1
      state.withLock { state in
        (state.last, state.listedAt, state.isListing) = (max(found, 0), .now, false)
      }
    }
    if isStarted == nil { state.withLock { $0.isListing = false } }
  }

  /// Entries of the folder, but for `.` and `..`.
  private static var entries: Int {
    guard let stream = opendir(folder) else { return 0 }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    return count - 2
  }
}
