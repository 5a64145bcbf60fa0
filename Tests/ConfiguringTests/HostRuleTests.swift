// HostRuleTests: tests of host rules: members, errors and secrets.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct HostRuleTests {
  private func configuration(_ hosts: String) throws -> Configuration {
    var configuration = Configuration()
    try configuration.apply(json5: "{ hosts: \(hosts) }", file: "pictor.json5")
    return configuration
  }

  private let everything = """
    [
      { host: "*.example.com", drop_parameters: ["utm_*", "fbclid"], tags: ["shop-1", "a:b"],
        headers: { "Referer": "https://example.com/", "X-Key": "env:KEY", "Cookie": "file:/run/c" },
        drop_headers: ["User-Agent"], forward_headers: ["Accept-Language"],
        user: "pictor", password: "env:PASSWORD", allow_invalid_certificates: true,
        credentials_to: ["https:8443", "http", "https:443"],
        proxy: "http://proxy.internal:3128",
        default_lifetime: "1h", minimum_lifetime: "1m", maximum_lifetime: "2d",
        stale_while_revalidate: "0s", stale_if_error: "30d" },
      { host: "EXAMPLE.org", keep_parameters: ["id"], token: "file:/run/token", cookies: true,
        proxy: "direct" },
      { host: "*", proxy: "env:PROXY" },
    ]
    """

  @Test func `every member of a host rule is read`() throws {
    let rules = try configuration(everything).hosts
    #expect(rules.map(\.host.description) == ["*.example.com", "example.org", "*"])
    let first = try #require(rules.first)
    #expect(
      first.parameters == .drop(["utm_*", "fbclid"].compactMap { ParameterPattern($0) }))
    #expect(first.tags == ["shop-1", "a:b"])
    #expect(
      first.written.headers == [
        "Referer": .literal("https://example.com/"), "X-Key": .environment("KEY"),
        "Cookie": .file("/run/c"),
      ])
    #expect(first.droppedHeaders == ["User-Agent"] && first.forwardedHeaders == ["Accept-Language"])
    #expect(first.written.user == "pictor" && first.written.password == .environment("PASSWORD"))
    #expect(first.credentialOrigins.map(\.description) == ["https:8443", "http", "https"])
    #expect(rules[1].credentialOrigins == [.https])
    #expect(first.allowsInvalidCertificates && !first.keepsCookies)
    #expect(first.freshness.defaultLifetime == .seconds(3_600))
    #expect(first.freshness.minimumLifetime == .seconds(60))
    #expect(first.freshness.maximumLifetime == .seconds(172_800))
    #expect(first.freshness.staleWhileRevalidate == .zero)
    #expect(first.freshness.staleIfError == .seconds(30 * 86_400))
    #expect(rules[1].freshness == FreshnessOverrides())
    #expect(first.written.proxy == .url(.literal("http://proxy.internal:3128")))
    #expect(rules[1].parameters == .keep([ParameterPattern("id")].compactMap(\.self)))
    #expect(rules[1].written.token == .file("/run/token") && rules[1].keepsCookies)
    #expect(rules[1].written.proxy == .direct)
    #expect(rules[2].written.proxy == .url(.environment("PROXY")))
  }

  @Test
  func `printed host rules can be read again and contain references to secrets, not their values`()
    throws
  {
    var original = try configuration(everything)
    original.download.proxy = .environment("PROXY")
    let printed = original.json5
    var again = Configuration()
    try again.apply(json5: printed, file: "printed")
    #expect(again == original)
    for reference in ["env:KEY", "file:/run/c", "env:PASSWORD", "file:/run/token", "env:PROXY"] {
      #expect(printed.contains(reference))
    }
  }

  @Test func `the variable and the option take host rules as JSON5 text`() throws {
    var configuration = Configuration()
    _ = try configuration.apply(environment: ["PICTOR_HOSTS": "[{ host: 'a.example' }]"])
    #expect(configuration.hosts.map(\.host.description) == ["a.example"])
    try configuration.apply(option: "hosts", value: "[]")
    #expect(configuration.hosts.isEmpty)
    let wrong = complaint { try configuration.apply(option: "hosts", value: "[{ token: secret") }
    #expect(wrong == "--hosts: not a JSON5 list")
    let second = complaint {
      try configuration.apply(option: "hosts", value: "[{ host: 'a' }, { host: 'b', cookie: 1 }]")
    }
    #expect(second == "--hosts: rule 2, cookie: unknown member; did you mean cookies?")
  }

  @Test func `all errors of all host rules are reported, one per line`() {
    let lines = complaint {
      _ = try configuration(
        "[{ cookies: 1, token: 'hunter2' }, 7, { host: 'a' }, { host: 'b', user: 'u', tag: [] }]")
    }.split(separator: "\n")
    let beginnings = [
      "rule 1, host: it is required", "rule 1, token: not allowed", "rule 1, cookies: 1 is not",
      "rule 2: not an object", "rule 4, tag: unknown member; did you mean tags?",
    ]
    #expect(lines.count == beginnings.count, "\(lines)")
    for (line, beginning) in zip(lines, beginnings) {
      #expect(line.hasPrefix("pictor.json5: hosts: " + beginning))
      #expect(!line.contains("hunter2"))
    }
  }

  @Test(arguments: [
    ("{}", "hosts: not allowed: a list of rules"),
    ("[1]", "hosts: rule 1: not an object"),
    ("[{ tags: [] }]", "hosts: rule 1, host: it is required"),
    ("[{ host: 'a b' }]", "hosts: rule 1, host: 'a b' is not allowed: a host such as"),
    ("[{ host: 'a', stale_if_error: 5 }]", "rule 1, stale_if_error: 5 is not allowed: a time"),
    (
      "[{ host: 'a', default_lifetime: '4000d' }]",
      "rule 1, default_lifetime: '4000d' is not allowed: a time such as \"15s\""
    ),
    ("[{ host: 'a', tags: 'x' }]", "rule 1, tags: 'x' is not allowed: a list of names"),
    ("[{ host: 'a', tags: ['a b'] }]", "rule 1, tags: "),
    ("[{ host: 'a', drop_parameters: ['a*b'] }]", "rule 1, drop_parameters: "),
    (
      "[{ host: 'a', drop_parameters: ['a'], keep_parameters: ['b'] }]",
      "rule 1, drop_parameters: it cannot be combined with keep_parameters"
    ),
    ("[{ host: 'a', headers: ['X'] }]", "rule 1, headers: not allowed: an object"),
    ("[{ host: 'a', headers: { 'X Y': 'a' } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { X: '' } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { X: 'a\\r\\nHost: b' } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { X: 1 } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { Authorization: 'Bearer x' } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { X: 'env:' } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { X: 'file:relative' } }]", "rule 1, headers"),
    ("[{ host: 'a', headers: { X: 'a', x: 'b' } }]", "rule 1, headers: 'x' appears twice"),
    ("[{ host: 'a', user: 'u' }]", "rule 1, user: it requires a password"),
    ("[{ host: 'a', credentials_to: ['ftp'] }]", "rule 1, credentials_to: "),
    ("[{ host: 'a', credentials_to: ['https:0'] }]", "rule 1, credentials_to: "),
    ("[{ host: 'a', credentials_to: ['http:*'] }]", "rule 1, credentials_to: "),
    ("[{ host: 'a', credentials_to: 'https' }]", "rule 1, credentials_to: "),
    ("[{ host: 'a', password: 'env:P' }]", "rule 1, password: it requires a user"),
    (
      "[{ host: 'a', user: 'a:b', password: 'env:P' }]", "rule 1, user: not allowed: a name without"
    ),
    (
      "[{ host: 'a', user: 'u', password: 'env:P', token: 'env:T' }]",
      "rule 1, token: it cannot be combined with user and password"
    ),
    (
      "[{ host: 'a', token: 'env:T', headers: { authorization: 'env:A' } }]",
      "rule 1, headers: 'authorization' is in token already"
    ),
    (
      "[{ host: 'a', headers: { 'X-A': 'a' }, forward_headers: ['x-a'] }]",
      "rule 1, forward_headers: 'x-a' is in headers already"
    ),
    (
      "[{ host: 'a', drop_headers: ['Accept', 'accept'] }]",
      "rule 1, drop_headers: 'accept' appears twice"
    ),
    (
      "[{ host: 'a', cookies: true, forward_headers: ['authorization'] }]",
      "rule 1, cookies: they cannot be combined with a forwarded Authorization or Cookie"
    ),
    (
      "[{ host: 'a', cookies: true, headers: { cookie: 'env:C' } }]",
      "rule 1, cookies: they cannot be combined with a Cookie in headers"
    ),
    ("[{ host: 'a', cookies: 'yes' }]", "rule 1, cookies: 'yes' is not allowed: true or false"),
    ("[{ host: 'a', proxy: 'socks5://p:1' }]", "rule 1, proxy: not allowed: direct, http://"),
    ("[{ host: 'a', proxy: 'http://p' }]", "rule 1, proxy: "),
    ("[{ host: 'a', proxy: '' }]", "rule 1, proxy: "),
    (
      "[{ host: 'a' }, { host: 'b', hosts: [] }]",
      "rule 2, hosts: unknown member; did you mean host?"
    ),
    (
      "[{ host: 'a' }, { host: 'b', zzzzzzzz: [] }]",
      "rule 2, zzzzzzzz: unknown member: host, "
    ),
  ])
  func `an error in a host rule names the rule, the member and the allowed values`(
    hosts: String, problem: String
  ) {
    let message = complaint { _ = try configuration(hosts) }
    #expect(message.hasPrefix("pictor.json5: hosts"))
    #expect(message.contains(problem), "\(message)")
    #expect(!message.contains("\n"))
  }

  @Test(arguments: [
    "CDN-Loop", "Host", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE",
    "Trailer",
    "Upgrade", "Range", "If-None-Match", "IF-RANGE", "Accept-Encoding", "Proxy-Authorization",
  ])
  func `headers for framing, connections and conditions cannot be set`(name: String) {
    for member in ["headers: { '\(name)': 'a' }", "\(list("drop")), ", "\(list("forward"))"] {
      let message = complaint { _ = try configuration("[{ host: 'a', \(member) }]") }
      #expect(message.contains("rule 1, "), "\(member)")
      #expect(message.contains("not allowed"), "\(member)")
    }
    func list(_ what: String) -> String { "\(what)_headers: ['\(name)']" }
  }

  @Test(arguments: [
    "'hunter2'", "[{ host: 'a', user: 'me:hunter2' }]",
    "[{ host: 'a', forward_headers: ['X-Key: hunter2'] }]", "[{ host: 'a', token: 'hunter2' }]",
    "[{ host: 'a', user: 'u', password: 'hunter2' }]",
    "[{ host: 'a', headers: { Authorization: 'hunter2' } }]",
    "[{ host: 'a', headers: { 'X-A': 'hunter2', Host: 'b' } }]",
    "[{ host: 'a', proxy: 'http://u:hunter2@p:1' }]", "[{ host: 'a', token: ['hunter2'] }]",
  ])
  func `a secret in plain text is refused and not repeated in the message`(hosts: String) {
    let message = complaint { _ = try configuration(hosts) }
    #expect(message.contains("not allowed"))
    #expect(!message.contains("hunter2"))
  }

  @Test(arguments: [
    "http://u:hunter2@p:1", "https://p:1", "p:3128", "http://p:1/hunter2", "http://p:0", "env:",
  ])
  func `a proxy must be an HTTP URL with a port and without a password`(text: String) {
    var configuration = Configuration()
    let message = complaint { try configuration.apply(option: "download.proxy", value: text) }
    #expect(message.hasPrefix("--download.proxy: not allowed: http://host:port"))
    #expect(!message.contains("hunter2"))
  }

  @Test func `an empty proxy means no proxy`() throws {
    var configuration = Configuration()
    try configuration.apply(option: "download.proxy", value: "http://[::1]:3128/")
    #expect(configuration.download.proxy == .literal("http://[::1]:3128/"))
    try configuration.apply(option: "download.proxy", value: "")
    #expect(configuration.download.proxy == nil)
  }
}

@Suite(.onOwnThreads) struct SecretTextTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(_ name: String, text: String) throws -> String {
    try folder.write(name, bytes: Array(text.utf8))
    return "\(folder.path)/\(name)"
  }

  private func problem(
    _ text: String, environment: [String: String] = [:]
  ) -> String {
    do throws(ConfigurationError) {
      return "'" + (try SecretText(text).value(environment: environment, at: "here")) + "'"
    } catch {
      return error.description
    }
  }

  @Test func `a secret is a variable's value, or a file's content without its line break`() throws {
    #expect(problem("env:S", environment: ["S": "a b"]) == "'a b'")
    #expect(problem("literal") == "'literal'")
    for (name, text) in [("a", "s3\n"), ("b", "s3\r\n\n"), ("c", "s3")] {
      #expect(problem("file:" + (try write(name, text: text))) == "'s3'")
    }
  }

  @Test func `the error for a missing or empty secret names its location`() throws {
    #expect(problem("env:S") == "here: the environment variable S is not set")
    #expect(problem("env:S", environment: ["S": ""]) == "here: env:S is empty")
    let path = try write("empty", text: "\n")
    #expect(problem("file:" + path) == "here: file:\(path) is empty")
    #expect(
      problem("file:/nonexistent")
        == "here: '/nonexistent' cannot be read: No such file or directory")
    let long = try write("long", text: String(repeating: "x", count: 70_000))
    #expect(problem("file:" + long) == "here: '\(long)' has more than 64KiB")
  }

  @Test func `a proxy URL from the environment is validated when it is resolved`() throws {
    func url(_ value: String) -> String {
      do throws(ConfigurationError) {
        return try ProxyURL.url(
          of: .environment("P"), environment: ["P": value], at: "download.proxy")
      } catch {
        return error.description
      }
    }
    #expect(url("http://u:p%40@proxy:3128") == "http://u:p%40@proxy:3128")
    let message = url("ftp://u:hunter2@proxy:3128")
    #expect(message.hasPrefix("download.proxy: env:P is not http://"))
    #expect(!message.contains("hunter2"))
  }
}
