// TopCommand: shows the figures of a running server in a terminal.

import Configuring
import FoundationEssentials
import Glibc
import Model
import Platform

/// `pictor top`.
public struct TopCommand {
  /// Deadline of one look in seconds.
  private static let seconds = 5
  /// The width of lines without a terminal.
  private static let plainColumns = 160

  private let server: ServerSettings
  private let order: TopOrder
  private let console: Console
  private let interruption: Interruption?

  /// Creates a view of the configured server.
  public init(_ configuration: ServerSettings, order: TopOrder) {
    self.init(configuration, order: order, console: .standard, interruption: nil)
  }

  /// - Parameter interruption: `nil` for the program's own signals.
  init(
    _ configuration: ServerSettings, order: TopOrder, console: Console,
    interruption: Interruption?
  ) {
    server = configuration
    self.order = order
    self.console = console
    self.interruption = interruption
  }

  /// Shows the figures until a signal arrives, or once. Returns the exit status: 0, or 1 with a line on
  /// standard error if the first look or the only one fails.
  ///
  /// Later failures are shown in place of the figures: the server may be restarting.
  public func run() -> CInt {
    if let problem = ServerClient.problem(of: server) {
      console.reportError(problem)
      return 1
    }
    let client = ServerClient(server)
    do throws(SystemError) {
      if let interruption { return run(client, until: interruption) }
      return run(client, until: try .ofProgram())
    } catch {
      console.reportError("cannot wait for signals: \(error)")
      return 1
    }
  }

  private func run(_ client: ServerClient, until interruption: Interruption) -> CInt {
    var before: TopFigures
    switch look(client, interruption) {
    case .success(let figures): before = figures
    case .failure(.interrupted): return 0
    case .failure(let failure):
      console.reportError(failure.description)
      return 1
    }
    var screen = Screen(console)
    defer { screen.end() }
    while true {
      // Figures that are computed at most once in `server.stats_lifetime` have changed by then.
      let pause = CInt(clamping: Int(order.interval / .milliseconds(1)))
      guard interruption.wait(milliseconds: pause) == nil else { return 0 }
      switch look(client, interruption) {
      case .success(let figures):
        let columns = console.screen().map { $0.columns - 1 } ?? Self.plainColumns
        screen.show(
          TopScreen.lines(
            TopInterval(from: before, to: figures), server: client.serverName, columns: columns))
        before = figures
      case .failure(.interrupted): return 0
      case .failure(let failure):
        guard !order.isOnce else {
          console.reportError(failure.description)
          return 1
        }
        screen.show([failure.description])
      }
      if order.isOnce { return 0 }
    }
  }

  private func look(
    _ client: ServerClient, _ interruption: Interruption
  ) -> Result<TopFigures, ServerClient.Failure> {
    do throws(ServerClient.Failure) {
      let answer = try client.request(
        "GET", target: "/stats", seconds: Self.seconds, patience: .none(interruption))
      guard answer.status == 200 else { throw .unanswered(answer.refusal(client)) }
      guard let figures = try? JSONDecoder().decode(TopFigures.self, from: Data(answer.body)) else {
        throw .unanswered("the response of \(client.serverName) is not that of /stats")
      }
      return .success(figures)
    } catch {
      return .failure(error)
    }
  }
}

/// The part of a terminal that is drawn again and again; without a terminal, one block after the other.
private struct Screen {
  private let console: Console
  private var isDrawn = false

  init(_ console: Console) { self.console = console }

  /// Shows lines in place of those before.
  mutating func show(_ lines: [String]) {
    guard let size = console.screen() else {
      console.output((isDrawn ? "\n" : "") + lines.joined(separator: "\n") + "\n")
      isDrawn = true
      return
    }
    // ECMA-48: ED and CUP to begin with, then CUP; EL after each line, ED after the last.
    let start = isDrawn ? "\u{1B}[H" : "\u{1B}[2J\u{1B}[H"
    let visible = lines.prefix(max(size.rows - 1, 1))
    console.output(start + visible.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
    isDrawn = true
  }

  /// Leaves the lines on the screen.
  func end() {
    if isDrawn, console.screen() != nil { console.output("\n") }
  }
}
