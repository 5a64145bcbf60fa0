// DownloadMonitor: the list of current downloads, written by the transfer thread.

import Core

/// All unfinished downloads, and the observers of their progress.
final class DownloadMonitor: Sendable {
  private struct Line {
    var status: DownloadStatus
    let load: PendingDownload
    var firstByteAt: ContinuousClock.Instant?

    /// Returns the download's status at `now`.
    func status(at now: ContinuousClock.Instant) -> DownloadStatus {
      var status = status
      status.priority = load.priority.value.rawValue
      status.waiters = load.waiters
      status.seconds = (now - load.arrived) / .seconds(1)
      if let firstByteAt, now > firstByteAt {
        status.bytesPerSecond = Double(status.received) / ((now - firstByteAt) / .seconds(1))
      }
      return status
    }
  }

  private let lines = Lock<[DownloadQueue.ID: Line]>([:])
  private let observers = Observers<DownloadStatus>()

  /// All downloads, in order of arrival.
  var all: [DownloadStatus] {
    let now = ContinuousClock.now
    return lines.withLock { Array($0.values) }.sorted { $0.load.id < $1.load.id }
      .map { $0.status(at: now) }
  }

  func observe(_ observer: @escaping @Sendable (DownloadStatus) -> Void) -> Observation {
    observers.add(observer)
  }

  /// Adds a download.
  func add(_ load: PendingDownload) {
    let status = DownloadStatus(
      id: UInt64(load.id), url: SecretMask.withoutUsers(load.target.source.text),
      host: load.target.hostAndPort,
      priority: load.priority.value)
    let line = Line(status: status, load: load)
    lines.withLock { $0[load.id] = line }
    tell(line)
  }

  /// Records that the transfer began, or followed a redirect to another host.
  func run(_ id: DownloadQueue.ID, at host: String) {
    update(id) {
      $0.status.state = .running
      $0.status.host = host
    }
  }

  /// Records the received bytes of the body; `expected` is −1 while its length is unknown.
  func progress(_ id: DownloadQueue.ID, received: Int, expected: Int) {
    update(id) { line in
      line.status.received = received
      line.status.expected = expected
      if received > 0, line.firstByteAt == nil { line.firstByteAt = ContinuousClock.now }
    }
  }

  /// Removes a finished download, and reports its last step.
  func end(_ id: DownloadQueue.ID, with result: Result<LoadResult, ImageError>) {
    guard var line = lines.withLock({ $0.removeValue(forKey: id) }) else { return }
    line.status.state = .finished
    if case .failure(let error) = result {
      line.status.state = .failed
      line.status.error = error.code
    }
    tell(line)
  }

  private func update(_ id: DownloadQueue.ID, change: (inout Line) -> Void) {
    let line = lines.withLock { lines in
      if var line = lines[id] {
        change(&line)
        lines[id] = line
      }
      return lines[id]
    }
    if let line { tell(line) }
  }

  private func tell(_ line: Line) {
    // Usually there are no observers.
    if observers.count > 0 { observers.tell(line.status(at: .now)) }
  }
}
