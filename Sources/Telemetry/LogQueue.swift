// LogQueue: queues log lines for a thread that writes them.

import Glibc
import Synchronization

/// A bounded queue in front of the log, so no event loop, task or disk thread waits for the log's
/// reader.
///
/// A full queue drops lines, and the next written line reports their number. Repeated failures are
/// summarized (`LogLimiter`).
public final class LogQueue: Sendable {
  private struct State {
    var format: Log.Format
    var accessFormat = AccessSettings().format
    var lines: [[UInt8]] = []
    /// Bytes of `lines`.
    var bytes = 0
    var limiter = LogLimiter()
    /// Lines that a limit has summarized, lines written, and lines lost to a full queue or a failed
    /// write.
    var summedUp = 0, written = 0, dropped = 0
    /// Dropped lines that the log has not reported yet.
    var untold = 0
    /// Bytes that are being written.
    var writing = 0
    var isClosed = false
    var isEnded = false
    /// Whether the file ends with the beginning of a line.
    var isTorn = false
  }

  private let descriptor: CInt
  private let file: LogFile?
  private let reports: Log?
  private let limit: Int
  private let state: Lock<State>
  private let lowest = Atomic<Int>(0)
  private let wake: WakeSignal

  /// Creates a queue and starts its thread.
  ///
  /// - Parameters:
  ///   - descriptor: the output; the caller keeps ownership.
  ///   - file: a file to write to in place of `descriptor`.
  ///   - reports: where dropped lines are reported, because the file's format may not allow it;
  ///     `nil`: in this log.
  ///   - limit: the maximum number of queued bytes. As many more may be in the process of being
  ///     written.
  public init(
    format: Log.Format, descriptor: CInt = STDERR_FILENO, file: LogFile? = nil,
    reports: Log? = nil, limit: Int = 1 << 20
  ) throws(SystemError) {
    state = Lock(State(format: format))
    self.descriptor = descriptor
    self.file = file
    self.reports = reports
    self.limit = limit
    wake = try WakeSignal()
    try OwnThread.start(name: "pictor-log", rank: .work) { self.run() }
  }

  /// The format of log lines.
  public var format: Log.Format {
    get { state.withLock { $0.format } }
    set { state.withLock { $0.format = newValue } }
  }

  /// The format of lines of requests, in the log or in a file of their own.
  public var accessFormat: AccessFormat {
    get { state.withLock { $0.accessFormat } }
    set { state.withLock { $0.accessFormat = newValue } }
  }

  /// The lowest level that logs of the queue write.
  public var level: LogLevel {
    get { LogLevel.allCases[lowest.load(ordering: .relaxed)] }
    set { lowest.store(newValue.rank, ordering: .relaxed) }
  }

  /// Adds a line. Never blocks.
  func add(_ level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>) {
    if let kind = LogLimiter.kind(of: level, message: message, fields: fields) {
      let isAdmitted = state.withLock { state in
        let isAdmitted = state.limiter.admits(kind, at: level, now: .now)
        if !isAdmitted { state.summedUp += 1 }
        return isAdmitted
      }
      guard isAdmitted else { return }
    }
    add(LogLine(level, message: message, fields: fields, format: format).bytes)
  }

  /// Whether lines get to the same place as those of a stream.
  func writes(to other: LogFile) -> Bool { file == nil && other.isStream(to: descriptor) }

  /// Lets the thread look for a reopened file.
  func wakeUp() { wake.set() }

  /// Adds the bytes of a line. Never blocks.
  func add(_ line: [UInt8]) {
    let isTaken = state.withLock { state in
      guard !state.isClosed, state.bytes + line.count <= limit else {
        state.dropped += 1
        state.untold += 1
        return false
      }
      state.lines.append(line)
      state.bytes += line.count
      return true
    }
    if isTaken { wake.set() }
  }

  /// Waits up to `limit` until all lines are written, and returns whether they are. Blocks; not for
  /// tasks.
  func flush(within limit: Duration) -> Bool {
    wait(within: limit) { $0.bytes + $0.writing == 0 }
  }

  /// Writes all queued lines and summaries, then ends the thread. Waits up to `limit` and returns
  /// whether it finished.
  ///
  /// Lines logged afterwards are dropped. Blocks; not for tasks.
  @discardableResult
  public func stop(within limit: Duration) -> Bool {
    state.withLock { $0.isClosed = true }
    wake.set()
    return wait(within: limit) { $0.isEnded }
  }

  /// Adds the figures now.
  func add(to figures: inout Figures) {
    let lines = "pictor_log_lines_total"
    let help = "Lines of the log, by what became of them."
    state.withLock { state in
      figures.add("written", state.written, lines, help, ["result": "written"])
      figures.add("dropped", state.dropped, lines, help, ["result": "dropped"])
      figures.add("summed_up", state.summedUp, lines, help, ["result": "summed_up"])
      figures.add(
        "waiting_bytes", state.bytes + state.writing, "pictor_log_queue_bytes",
        "Bytes of lines that wait or are being written.")
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
    var waiting = Poll([wake.descriptor])
    var last: CInt?
    while true {
      waiting.wait(until: state.withLock { $0.limiter.nextSummary })
      wake.reset()
      let (lines, isLast) = take()
      let current = file?.descriptor() ?? descriptor
      // The beginning of a line stays in the file before a reopening, which had another descriptor.
      if let last, last != current { state.withLock { $0.isTorn = false } }
      last = current
      let lost = write(lines, to: current)
      let untold = state.withLock { state in
        state.writing = 0
        state.written += lines.count - lost
        state.dropped += lost
        state.untold += lost
        state.isEnded = isLast
        guard reports != nil else { return 0 }
        defer { state.untold = 0 }
        return state.untold
      }
      if untold > 0 {
        reports?.warning("access log lines dropped", fields: ["lines": .int(untold)])
      }
      if isLast { return }
    }
  }

  /// Returns the lines to write, with summaries and a report of dropped lines, and whether they are
  /// the last.
  private func take() -> (lines: [[UInt8]], isLast: Bool) {
    state.withLock { state in
      var lines = state.lines
      state.lines = []
      state.bytes = 0
      for summary in state.limiter.summaries(now: .now, all: state.isClosed) {
        lines.append(
          LogLine(
            summary.level, message: "repeated, and not logged each time",
            fields: ["what": .string(summary.kind), "times": .int(summary.count)],
            format: state.format
          ).bytes)
      }
      if state.untold > 0, reports == nil {
        lines.append(
          LogLine(
            .warning, message: "log lines dropped: the log is not read fast enough",
            fields: ["lines": .int(state.untold)], format: state.format
          ).bytes)
        state.untold = 0
      }
      state.writing = lines.reduce(0) { $0 + $1.count }
      return (lines, state.isClosed)
    }
  }

  /// Writes the lines and returns how many were lost.
  private func write(_ lines: [[UInt8]], to descriptor: CInt) -> Int {
    // Writes line by line: a pipe accepts a short write atomically, so lines of other processes do
    // not interleave.
    var lost = 0
    for line in lines {
      // Ends the beginning of a line that a full disk cut off.
      let isTorn = state.withLock { $0.isTorn }
      let whole = isTorn ? [UInt8(ascii: "\n")] + line : line
      let written = whole.withUnsafeBytes { Log.write($0, to: descriptor) }
      guard written < whole.count else {
        if isTorn { state.withLock { $0.isTorn = false } }
        continue
      }
      lost += 1
      // Only a started line in a file is torn: a pipe's reader that left sees none of it.
      if file != nil, written > (isTorn ? 1 : 0) { state.withLock { $0.isTorn = true } }
      if written == 1, isTorn { state.withLock { $0.isTorn = false } }
    }
    return lost
  }
}
