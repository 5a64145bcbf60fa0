// SecuritySelfTest: runs the built-in attacks against the configuration, and prints a table.

import Core

/// `pictor selftest security`.
public struct SecuritySelfTest {
  private let cases: [SecurityCase]
  private let console: Console

  /// Creates a run of these cases.
  public init(_ cases: [SecurityCase]) { self.init(cases, console: .standard) }

  init(_ cases: [SecurityCase], console: Console) {
    self.cases = cases
    self.console = console
  }

  /// Runs all cases and prints a row for each. Returns the exit status: 0 if all are refused, 1 if
  /// a source is open.
  ///
  /// - Parameter find: whether a source would be loaded, and the error, or the endpoint that would
  ///   be connected to.
  public func run(_ find: (SecurityCase) -> (isOpen: Bool, text: String)) -> CInt {
    let findings = cases.map { ($0, find($0)) }
    let heads = ["ok", "kind", "case", "expected", "got"]
    let rows = findings.map { test, finding in
      [
        finding.isOpen ? "NO" : "yes", test.kind, Self.printable(test.name), "refused",
        finding.text,
      ]
    }
    let widths = heads.indices.map { column in
      ([heads] + rows).map { $0[column].count }.max() ?? 0
    }
    for row in [heads] + rows {
      let cells = zip(row, widths).map { text, width in
        text + String(repeating: " ", count: width - text.count)
      }
      var line = cells.joined(separator: "  ")
      while line.hasSuffix(" ") { line.removeLast() }
      console.output(line + "\n")
    }
    let open = findings.count { $0.1.isOpen }
    console.output("\(findings.count - open) of \(findings.count) refused\n")
    if open > 0 {
      console.reportError("\(open) of \(findings.count) sources are open: see the rows with NO")
    }
    return open == 0 ? 0 : 1
  }

  /// Sources have no control characters, but a terminal may read others.
  private static func printable(_ text: String) -> String {
    String(text.unicodeScalars.map { $0.isASCII && $0.value >= 0x20 ? Character($0) : "?" })
  }
}
