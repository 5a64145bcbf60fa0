// Console: what commands say, and to whom.

import Glibc

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
