// SecuritySelfTest: runs the built-in attacks against the configuration, and prints a table.

import Core

/// `pictor selftest security`.
public struct SecuritySelfTest {
  private let cases: [SecurityCase]
  private let find: (SecurityCase) -> (isOpen: Bool, text: String)
  /// Replaced by tests.
  var console = Console.standard

  /// Creates a run of these cases.
  ///
  /// - Parameter find: whether a source would be loaded, and the error, or the endpoint that would
  ///   be connected to.
  public init(
    _ cases: [SecurityCase], find: @escaping (SecurityCase) -> (isOpen: Bool, text: String)
  ) {
    self.cases = cases
    self.find = find
  }

  /// The number of cases.
  public var count: Int { cases.count }

  /// Runs all cases. Returns the names of the sources that are open.
  public func openSources() -> [String] {
    cases.filter { find($0).isOpen }.map { Self.printable($0.name) }
  }

  /// Runs all cases and prints a row for each. Returns the exit status: 0 if all are refused, 1 if
  /// a source is open.
  public func run() -> CInt {
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

/// A source that no safe configuration loads.
public struct SecurityCase: Hashable, Sendable {
  /// The kind of attack.
  public let kind: String
  /// The source, as a client would send it.
  public let source: String
  /// Whether an allowed origin redirects to the source.
  public let isRedirect: Bool

  /// The source, marked if it is reached by a redirect.
  public var name: String { isRedirect ? "redirect to \(source)" : source }

  /// Returns the built-in list.
  ///
  /// - Parameters:
  ///   - port: the port of this server; 0: none.
  ///   - hostName: the name of this machine, which usually resolves to a private address.
  public static func all(ownPort port: Int, hostName: String) -> [SecurityCase] {
    func cases(_ kind: String, _ sources: [String], isRedirect: Bool = false) -> [SecurityCase] {
      sources.map { SecurityCase(kind: kind, source: $0, isRedirect: isRedirect) }
    }
    func http(_ hosts: [String]) -> [String] { hosts.map { "http://\($0)/a.jpg" } }
    let own = ["127.0.0.1", "[::1]", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"]
    return cases("loopback", http(loopback)) + cases("private", http(privateHosts))
      + cases("cloud", http(cloud)) + cases("embedded", http(embedded))
      + cases("name", http(names + (hostName.isEmpty ? [] : [hostName])))
      + cases("user", users) + cases("scheme", schemes) + cases("port", ports)
      + cases("file", files)
      + cases("own", port == 0 ? [] : own.map { "http://\($0):\(port)/stats" })
      + cases("redirect", redirects, isRedirect: true)
  }

  /// IPv4 loopback in every notation that inet_aton(3) and browsers read, and IPv6 loopback.
  private static let loopback = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1",
    "017700000001", "127.0.0.1.", "127.000.000.001", "%31%32%37.0.0.1", "127.255.255.254", "0",
    "0.0.0.0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]",
  ]

  private static let privateHosts = [
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.168.1.1.", "3232235777",
    "100.64.0.1", "169.254.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "[fc00::1]", "[fd00::1]", "[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]",
    "[ff02::1]",
  ]

  private static let cloud = [
    "169.254.169.254", "2852039166", "0xa9fea9fe", "169.254.170.2", "168.63.129.16",
    "100.100.100.200", "192.0.0.192", "161.26.0.10", "166.8.0.1", "[fd00:ec2::254]",
    "[fd20:ce::254]", "metadata.google.internal", "metadata",
  ]

  /// Private and cloud addresses inside IPv6 addresses.
  private static let embedded = [
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b::a83f:8110]", "[64:ff9b:1::a9fe:a9fe]",
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::]", "[2001:0:7f00:1::f7f7:f7f7]",
    "[2606:4700::5efe:10.0.0.1]", "[::ffff:168.63.129.16]",
  ]

  private static let names = ["localhost", "LOCALHOST", "localhost.", "a.localhost", "loc%61lhost"]

  private static let users = [
    "http://images.example@127.0.0.1/a.jpg", "http://user:password@127.0.0.1/a.jpg",
    "http://127.0.0.1\\@images.example/a.jpg", "http://images.example%40127.0.0.1/a.jpg",
    "http://127.0.0.1%2f@images.example/a.jpg", "http://127.0.0.1 .images.example/a.jpg",
  ]

  private static let schemes = [
    "file:///etc/passwd", "FILE:///etc/passwd", "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL", "dict://127.0.0.1:11211/stats", "ftp://127.0.0.1/a.jpg",
    "ldap://127.0.0.1/", "data:image/gif;base64,R0lGODlhAQABAAAAACw=", "//127.0.0.1/a.jpg",
  ]

  /// Ports of other services, at a public address.
  private static let ports = [22, 23, 25, 110, 143, 445, 993].map { "http://1.1.1.1:\($0)/a.jpg" }

  /// Files outside of `sources.local_root`, and hidden files.
  private static let files = [
    "local:///../etc/passwd", "local:///%2e%2e/%2e%2e/etc/passwd", "local:///a/../../etc/passwd",
    "local:///.env", "local:///.git/config", "local:////etc/passwd",
  ]

  private static let redirects: [String] =
    [
      "http://127.0.0.1/a.jpg", "http://2130706433/a.jpg", "http://[::1]/a.jpg",
      "http://localhost/a.jpg", "http://10.0.0.1/a.jpg", "http://169.254.169.254/latest/meta-data/",
      "http://168.63.129.16/machine", "http://[64:ff9b::a9fe:a9fe]/", "http://1.1.1.1:25/a.jpg",
      "http://user:password@1.1.1.1/a.jpg", "//127.0.0.1/a.jpg", "\\\\127.0.0.1\\a.jpg",
    ] + Array(schemes.dropLast()) + ["local:///a.jpg"]
}
