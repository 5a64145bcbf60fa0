// SecuritySelfTest: runs the built-in attacks against the configuration, and prints a table.

import Core

/// `pictor selftest security`.
public struct SecuritySelfTest {
  private let cases: [SecurityCase]
  /// Replaced by tests.
  var console = Console.standard

  /// Creates a run of these cases.
  public init(_ cases: [SecurityCase]) { self.cases = cases }

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
    console.output(Console.table([heads] + rows))
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
