// PrefetchWatch: shows the progress of a server's prefetch and cancels it when interrupted.

import Core
import FoundationEssentials
import Glibc

/// Polls the state of a prefetch.
struct PrefetchWatch {
  /// The timing of the polls. Tests replace it.
  struct Pace: Sendable {
    var now: @Sendable () -> ContinuousClock.Instant = { .now }
    var milliseconds: CInt = 250
  }

  /// The result of one poll.
  private enum Look {
    case status(PrefetchStatus)
    /// The server does not know the prefetch any more.
    case unknown
    case refused(String)
    case failed(String)
    case interrupted
  }

  private enum End {
    case status(PrefetchStatus)
    case lost(String)
    case interrupted(CInt)
  }

  /// How long polls may fail in a row. A restarting or overloaded server is back by then, and the
  /// prefetch continues meanwhile.
  private static let bearable = Duration.seconds(10)
  /// Deadline of one poll in seconds. Two polls may time out.
  private static let seconds = 5

  private let path: String
  private let client: ServerClient
  private let interruption: Interruption
  private let console: Console
  private let pace: Pace

  init(
    of id: String, by client: ServerClient, until interruption: Interruption, on console: Console,
    pace: Pace
  ) {
    path = "/admin/prefetch/" + PercentEncoding.encode(id)
    self.client = client
    self.interruption = interruption
    self.console = console
    self.pace = pace
  }

  /// Watches until the end. Returns the exit status, see `OperatorCommand.prefetch`.
  func run() -> CInt {
    var line = ProgressLine(on: console, now: pace.now)
    let end = follow(&line)
    line.end()
    switch end {
    case .status(let status):
      console.output(PrefetchReport.summary(status))
      return status.state == .finished && status.failed == 0 ? 0 : 1
    case .lost(let reason):
      console.reportError("cannot watch the prefetch: \(reason)")
      return 1
    case .interrupted(let signal):
      cancel()
      return 128 + signal
    }
  }

  private func follow(_ line: inout ProgressLine) -> End {
    var failing: ContinuousClock.Instant?
    while true {
      let begun = pace.now()
      switch look(until: interruption) {
      case .status(let status):
        failing = nil
        line.show(status)
        guard status.state == .running else { return .status(status) }
      case .unknown: return .lost("the server no longer knows it")
      case .refused(let reason): return .lost(reason + hint)
      case .failed(let reason):
        failing = failing ?? begun
        if let failing, pace.now() - failing >= Self.bearable { return .lost(reason + hint) }
      case .interrupted: break
      }
      if let signal = interruption.wait(milliseconds: pace.milliseconds) {
        return .interrupted(signal)
      }
    }
  }

  /// Explains how to check again, because the prefetch continues without a watch.
  private var hint: String { "; it may still run: GET \(path) shows its progress" }

  private func look(until interruption: Interruption? = nil) -> Look {
    do throws(ServerClient.Failure) {
      let answer = try client.request(
        .get, target: path, seconds: Self.seconds, until: interruption)
      switch answer.status {
      case 200:
        guard let status = try? JSONDecoder().decode(PrefetchStatus.self, from: Data(answer.body))
        else { return .failed("the response of \(client.serverName) is not a prefetch status") }
        return .status(status)
      case 404: return .unknown
      // Time-outs and limits of intermediaries are temporary (RFC 9110, section 15.5.9; RFC 6585,
      // section 4).
      case 408, 429, 500...: return .failed(answer.refusal(client))
      default: return .refused(answer.refusal(client))
      }
    } catch {
      switch error {
      case .unsent(let reason), .unanswered(let reason): return .failed(reason)
      case .interrupted: return .interrupted
      }
    }
  }

  /// Cancels the prefetch and reports its end.
  private func cancel() {
    do throws(ServerClient.Failure) {
      let answer = try client.request(.delete, target: path, seconds: Self.seconds)
      // 404: it has ended meanwhile.
      guard (200..<300).contains(answer.status) || answer.status == 404 else {
        console.reportError(
          "the list could not be cancelled and continues: \(answer.refusal(client))")
        return
      }
      let how = answer.status == 404 ? "the list had already ended" : "the list was cancelled"
      switch look() {
      case .status(let status): console.output(PrefetchReport.summary(status))
      case .unknown: console.reportError("\(how); the server no longer knows it")
      case .refused(let reason), .failed(let reason):
        console.reportError("\(how); its progress is unknown: \(reason)")
      case .interrupted: break
      }
    } catch {
      console.reportError("the list could not be cancelled and may continue: \(error)")
    }
  }
}

/// The progress of a prefetch: one updated line on a terminal, or occasional lines in a log.
struct ProgressLine {
  /// The interval between two lines without a terminal.
  private static let interval = Duration.seconds(5)

  private let console: Console
  private let now: () -> ContinuousClock.Instant
  private var last: ContinuousClock.Instant
  /// Whether the terminal's line is not finished.
  private var isOpen = false

  init(on console: Console, now: @escaping () -> ContinuousClock.Instant) {
    self.console = console
    self.now = now
    last = now()
  }

  /// Shows the progress if it is due.
  mutating func show(_ status: PrefetchStatus) {
    if let columns = console.columns() {
      // Returns to the start of the line and erases the rest (ECMA-48, EL). The last column stays
      // free, because some terminals wrap after it.
      console.errors("\r\(PrefetchReport.progress(status, width: columns - 1))\u{1B}[K")
      isOpen = true
    } else if now() - last >= Self.interval {
      last = now()
      console.errors(PrefetchReport.progress(status, width: 120) + "\n")
    }
  }

  /// Finishes the terminal's line.
  mutating func end() {
    if isOpen { console.errors("\n") }
    isOpen = false
  }
}
