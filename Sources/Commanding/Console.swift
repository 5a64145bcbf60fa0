// Console: what commands say, and to whom.

import Glibc
import Model

/// One line on standard error, whatever the log's format: it is for whoever started the program.
public func complain(_ line: String) { Console.standard.complain(line) }

/// Where a command's words go.
struct Console: Sendable {
  /// Results.
  let output: @Sendable (String) -> Void
  /// Complaints and progress.
  let errors: @Sendable (String) -> Void
  /// Columns of the terminal that shows `errors`; `nil` where that is none.
  let columns: @Sendable () -> Int?

  /// The program's own.
  static let standard = Console(
    output: { write($0, to: STDOUT_FILENO) }, errors: { write($0, to: STDERR_FILENO) },
    columns: {
      guard isatty(STDERR_FILENO) == 1 else { return nil }
      var size = winsize()
      guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
      return Int(size.ws_col)
    })

  /// What is wrong, in one line.
  func complain(_ line: String) { errors("pictor: \(line)\n") }

  /// All of a text, as far as anybody takes it.
  private static func write(_ text: String, to descriptor: CInt) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      // Nothing is left to be done where nobody reads any more.
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}

/// A prefetch's progress: over and over in one line of a terminal, or now and then in a log.
struct ProgressLine {
  /// How long nothing is said where nobody looks at a terminal.
  private static let interval = Duration.seconds(5)

  private let console: Console
  private var last = ContinuousClock.now

  init(on console: Console) { self.console = console }

  /// Shows how far it is, where it is time for that.
  mutating func show(_ status: PrefetchStatus) {
    if let columns = console.columns() {
      // Back to the beginning, and what was longer there is erased (ECMA-48, EL). The last column stays free: some
      // terminals break the line after it.
      console.errors("\r\(PrefetchReport.progress(status, width: columns - 1))\u{1B}[K")
    } else if ContinuousClock.now - last >= Self.interval {
      last = .now
      console.errors(PrefetchReport.progress(status, width: 120) + "\n")
    }
  }

  /// Leaves the line to what comes next.
  func end() { if console.columns() != nil { console.errors("\n") } }
}
