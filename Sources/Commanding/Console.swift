// Console: the output of commands.

import Glibc

/// Writes one line to standard error, regardless of the log's format, because it is for the
/// operator who started the program.
public func reportError(_ line: String) { Console.standard.reportError(line) }

/// The output functions of a command.
struct Console: Sendable {
  let output: @Sendable (String) -> Void
  /// Writes errors and progress.
  let errors: @Sendable (String) -> Void
  /// Returns the columns of the terminal that shows `errors`; `nil` without a terminal.
  let columns: @Sendable () -> Int?

  static let standard = Console(
    output: { write($0, to: STDOUT_FILENO) }, errors: { write($0, to: STDERR_FILENO) },
    columns: { columns(of: STDERR_FILENO) })

  /// Returns the columns of a terminal, 80 if it does not say; `nil` for other files.
  private static func columns(of descriptor: CInt) -> Int? {
    guard isatty(descriptor) == 1 else { return nil }
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Returns rows with their cells below each other.
  static func table(_ rows: [[String]]) -> String {
    let widths = (rows.first ?? []).indices.map { column in
      rows.map { $0[column].count }.max() ?? 0
    }
    return rows.map { row in
      var line = zip(row, widths).map { text, width in
        text + String(repeating: " ", count: width - text.count)
      }.joined(separator: "  ")
      while line.hasSuffix(" ") { line.removeLast() }
      return line + "\n"
    }.joined()
  }

  func reportError(_ line: String) { errors("pictor: \(line)\n") }

  /// Writes a text, and stops when the descriptor is closed.
  private static func write(_ text: String, to descriptor: CInt) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      // The reader is gone.
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}
