// PrefetchWatch: shows how far a server's prefetch is until its end, and cancels it when it is interrupted.

import FoundationEssentials
import Glibc
import Model

/// A look at a prefetch now and then.
struct PrefetchWatch {
  /// When it looks. Figures of its own are for tests.
  struct Pace: Sendable {
    /// What time it is.
    var now: @Sendable () -> ContinuousClock.Instant = { .now }
    /// Milliseconds between two looks.
    var milliseconds: CInt = 250
  }

  /// What one look finds.
  private enum Look {
    case status(PrefetchStatus)
    /// There is none of this name any more.
    case unknown
    /// The next one will fail too.
    case refused(String)
    /// The next one may do better.
    case failed(String)
    case interrupted
  }

  /// Why nobody looks any more.
  private enum End {
    case status(PrefetchStatus)
    case lost(String)
    case interrupted(CInt)
  }

  /// How long looks may fail in a row: a server that starts anew or has no place for a connection is back by then, and
  /// the list runs on meanwhile.
  private static let bearable = Duration.seconds(10)
  /// Seconds for one look, of which two that hang are borne.
  private static let seconds = 5

  private let path: String
  private let client: ServerClient
  private let interruption: Interruption
  private let console: Console
  private let pace: Pace

  /// A watch of the prefetch with this id.
  init(
    of id: String, by client: ServerClient, until interruption: Interruption, on console: Console,
    pace: Pace
  ) {
    path = "/admin/prefetch/" + PrefetchCommand.encoded(id)
    (self.client, self.interruption) = (client, interruption)
    (self.console, self.pace) = (console, pace)
  }

  /// The exit status, as of `PrefetchCommand.run`.
  func run() -> CInt {
    var line = ProgressLine(on: console, now: pace.now)
    let end = follow(&line)
    line.end()
    switch end {
    case .status(let status):
      console.output(PrefetchReport.summary(status))
      return status.state == .finished && status.failed == 0 ? 0 : 1
    case .lost(let reason):
      console.complain("the prefetch cannot be watched: \(reason)")
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
      switch look(.none(interruption)) {
      case .status(let status):
        failing = nil
        line.show(status)
        guard status.state == .running else { return .status(status) }
      case .unknown: return .lost("it is not known any more")
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

  /// How to look again, since the list does not end with whoever watches it.
  private var hint: String { "; it may still run: GET \(path) tells how far it is" }

  private func look(_ patience: ServerClient.Patience) -> Look {
    do throws(ServerClient.Failure) {
      let answer = try client.request("GET", path, seconds: Self.seconds, patience: patience)
      switch answer.status {
      case 200:
        guard let status = try? JSONDecoder().decode(PrefetchStatus.self, from: Data(answer.body))
        else { return .failed("what \(client.place) answered is no prefetch") }
        return .status(status)
      case 404: return .unknown
      // Time-outs and limits of whatever stands between (RFC 9110, section 15.5.9; RFC 6585, section 4) pass.
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

  /// Has the server end the list, and tells how it ended.
  private func cancel() {
    do throws(ServerClient.Failure) {
      let answer = try client.request("DELETE", path, seconds: Self.seconds)
      // 404: it ended in the meantime.
      guard (200..<300).contains(answer.status) || answer.status == 404 else {
        console.complain("the list could not be cancelled and runs on: \(answer.refusal(client))")
        return
      }
      let how = answer.status == 404 ? "the list ended before" : "the list was cancelled"
      switch look(.full) {
      case .status(let status): console.output(PrefetchReport.summary(status))
      case .unknown: console.complain("\(how); it is not known any more")
      case .refused(let reason), .failed(let reason):
        console.complain("\(how); how far it came cannot be told: \(reason)")
      case .interrupted: break
      }
    } catch {
      console.complain("the list could not be cancelled and may run on: \(error)")
    }
  }
}
