// LogQueue: lines on their way to the log, written by a thread of its own.

import Glibc
import Platform

/// A bounded queue in front of the log, so that no event loop, task or worker thread waits for whoever reads the log.
///
/// A line that finds no room is dropped and counted; the next that is written says how many were. Failures that repeat
/// are summed up (`LogLimiter`).
public final class LogQueue: Sendable {
  private struct State {
    var lines: [String] = []
    /// Bytes of `lines`.
    var bytes = 0
    var limiter = LogLimiter()
    var figures = LogFigures()
    /// Lines that were dropped and of which the log does not tell yet.
    var untold = 0
    /// Bytes of those that are being written.
    var writing = 0
    var isClosed = false
    var isEnded = false
  }

  /// How lines look.
  let format: Log.Format
  private let descriptor: CInt
  private let limit: Int
  private let state = Lock(State())
  private let wake: WakeSignal

  /// Starts the thread.
  ///
  /// - Parameters:
  ///   - descriptor: where lines go; it stays the caller's.
  ///   - limit: most bytes that wait, beside as many that are being written.
  public init(
    format: Log.Format, descriptor: CInt = STDERR_FILENO, limit: Int = 1 << 20
  ) throws(SystemError) {
    (self.format, self.descriptor, self.limit) = (format, descriptor, limit)
    wake = try WakeSignal()
    try OwnThread.start(name: "pictor-log", rank: .work) { self.run() }
  }

  /// Takes in a line. Never waits.
  func add(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>) {
    if let kind = LogLimiter.kind(of: level, message, fields) {
      let isAdmitted = state.withLock { state in
        let isAdmitted = state.limiter.admits(kind, level, now: .now)
        if !isAdmitted { state.figures.summedUp += 1 }
        return isAdmitted
      }
      guard isAdmitted else { return }
    }
    let line = format.line(level, message, fields)
    let isTaken = state.withLock { state in
      guard !state.isClosed, state.bytes + line.utf8.count <= limit else {
        state.figures.dropped += 1
        state.untold += 1
        return false
      }
      state.lines.append(line)
      state.bytes += line.utf8.count
      return true
    }
    if isTaken { wake.set() }
  }

  /// Waits until all that was taken in is written, for at most so long; tells whether it is. For own threads.
  func flush(within limit: Duration) -> Bool {
    wait(within: limit) { $0.bytes + $0.writing == 0 }
  }

  /// Writes what waits, for at most so long, sums up what was held back, and ends the thread; tells whether all is
  /// written. What is logged afterwards is dropped. For own threads.
  @discardableResult
  public func stop(within limit: Duration) -> Bool {
    state.withLock { $0.isClosed = true }
    wake.set()
    return wait(within: limit) { $0.isEnded }
  }

  /// What was done so far.
  var figures: LogFigures {
    state.withLock { state in
      var figures = state.figures
      figures.waitingBytes = state.bytes + state.writing
      return figures
    }
  }

  private func wait(within limit: Duration, _ condition: (State) -> Bool) -> Bool {
    let deadline = ContinuousClock.now + limit
    while !state.withLock({ condition($0) }) {
      guard .now < deadline else { return false }
      usleep(1_000)
    }
    return true
  }

  private func run() {
    var waiting = pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let pause = state.withLock { $0.limiter.nextSummary.map { $0 - .now } }
      _ = poll(&waiting, 1, pause.map { CInt(clamping: max($0, .zero).inMilliseconds + 1) } ?? -1)
      wake.reset()
      let (lines, isLast) = take()
      let isWritten = write(lines)
      state.withLock { state in
        state.writing = 0
        if isWritten {
          state.figures.written += lines.count
        } else {
          state.figures.dropped += lines.count
          state.untold += lines.count
        }
        state.isEnded = isLast
      }
      if isLast { return }
    }
  }

  /// What is to be written next, with what there is to say of lines that were not; whether nothing comes after it.
  private func take() -> (lines: [String], isLast: Bool) {
    state.withLock { state in
      var lines = state.lines
      (state.lines, state.bytes) = ([], 0)
      for summary in state.limiter.summaries(now: .now, all: state.isClosed) {
        lines.append(
          format.line(
            summary.level, "repeated, and not logged each time",
            ["what": .string(summary.kind), "times": .int(summary.count)]))
      }
      if state.untold > 0 {
        lines.append(
          format.line(
            .warning, "log lines dropped: the log is not read fast enough",
            ["lines": .int(state.untold)]))
        state.untold = 0
      }
      state.writing = lines.reduce(0) { $0 + $1.utf8.count }
      return (lines, state.isClosed)
    }
  }

  private func write(_ lines: [String]) -> Bool {
    // In pieces that a pipe takes at once, so that lines of other processes do not fall into them.
    var isWritten = true
    for line in lines {
      var line = line
      if !line.withUTF8({ Log.write(UnsafeRawBufferPointer($0), to: descriptor) }) {
        isWritten = false
      }
    }
    return isWritten
  }
}

extension Duration {
  /// Whole milliseconds.
  fileprivate var inMilliseconds: Int {
    Int(clamping: components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000)
  }
}
