// OperatorTokenTests: all forms of admin.tokens, their errors, secrets from elsewhere.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct OperatorTokenTests {
  private func file(_ tokens: String) throws -> [OperatorToken] {
    var configuration = Configuration()
    try configuration.apply(json5: "{ admin: { tokens: \(tokens) } }", file: "f")
    return configuration.admin.tokens
  }

  private func option(_ value: String) throws -> [OperatorToken] {
    var configuration = Configuration()
    try configuration.apply(option: "admin.tokens", value: value)
    return configuration.admin.tokens
  }

  private func token(
    _ text: String, name: String? = nil, scopes: Set<OperatorScope>? = nil
  ) -> OperatorToken {
    var token = OperatorToken(SecretText(text))
    token.name = name
    if let scopes { token.scopes = scopes }
    return token
  }

  @Test func `a token is a secret, a reference, or an object with name and scopes`() throws {
    let expected = [
      token("0123456789abcdef"), token("env:OPS_TOKEN"), token("file:/run/secrets/ops"),
      token("env:DEPLOY_TOKEN", name: "deploy", scopes: [.purge]),
      token("file:/x", name: "a.b-c_D", scopes: [.read, .write]), token("env:Y"),
    ]
    let list = """
      ["0123456789abcdef", "env:OPS_TOKEN", "file:/run/secrets/ops",
       { name: "deploy", token: "env:DEPLOY_TOKEN", scopes: ["purge"] },
       { name: "a.b-c_D", token: "file:/x", scopes: ["read", "write", "read"] }, { token: "env:Y" }]
      """
    #expect(try file(list) == expected)
    #expect(try option(list) == expected)
    var settings = AdminSettings()
    settings.tokens = expected
    #expect(settings.names == ["token1", "token2", "token3", "deploy", "a.b-c_D", "token6"])
    // And the printed form can be read again
    var configuration = Configuration()
    configuration.admin = settings
    var read = Configuration()
    try read.apply(json5: configuration.json5, file: "f")
    #expect(read == configuration)
  }

  @Test(arguments: [
    ("", 0), ("0123456789abcdef", 1), ("0123456789abcdef,fedcba9876543210", 2),
    ("0123456789abcdef, env:OTHER", 2), ("[]", 0), ("['0123456789abcdef']", 1),
    ("[\"0123456789abcdef\"]", 1), (" [ '0123456789abcdef', 'env:OTHER' ]", 2),
  ])
  func `an option is a comma-separated or a JSON5 list`(value: String, count: Int) throws {
    let expected = [token("0123456789abcdef"), token("fedcba9876543210"), token("env:OTHER")]
    let found = try option(value)
    #expect(found.count == count && found.allSatisfy(expected.contains), "\(found)")
    var configuration = Configuration()
    _ = try configuration.apply(environment: ["PICTOR_ADMIN_TOKENS": value])
    #expect(configuration.admin.tokens == found)
  }

  @Test(arguments: [
    ("['secret-short']", "token 1: not allowed: a secret of 16"),
    ("['secret-with, comma-of-17']", "token 1: not allowed"),
    ("['0123456789abcdef', 7]", "token 2: not allowed"), ("'0123456789abcdef'", "a list of"),
    ("{}", "a list of"), ("['file:secret-relative']", "token 1: not allowed"),
    ("['env:']", "token 1: not allowed"), ("[{}]", "token 1, token: it is required"),
    ("[{ token: 'secret-short' }]", "token 1, token: not allowed"),
    ("[{ token: 'env:A', name: 'a b' }]", "token 1, name: not allowed: 1 to 64"),
    ("[{ token: 'env:A', name: '' }]", "token 1, name"),
    ("[{ token: 'env:A', name: 7 }]", "token 1, name"),
    ("[{ token: 'env:A', scopes: [] }]", "token 1, scopes: [] is not allowed"),
    ("[{ token: 'env:A', scopes: ['raed'] }]", "scopes: ['raed'] is not allowed: a list of read"),
    ("[{ token: 'env:A', scopes: 'read' }]", "token 1, scopes: 'read' is not allowed"),
    (
      "[{ token: 'env:A', scope: ['read'] }]",
      "token 1, scope: unknown member; did you mean scopes?"
    ),
    ("[{ token: 'env:A', name: 'x' }, { token: 'env:B', name: 'x' }]", "have the name x"),
    ("[{ token: 'env:A', name: 'token2' }, 'env:B']", "have the name token2"),
  ])
  func `a mistake in a file names the token, and never the secret`(text: String, problem: String) {
    let message = complaint { _ = try file(text) }
    #expect(message.hasPrefix("f: admin.tokens") && message.contains(problem), "\(message)")
    #expect(!message.contains("secret-"))
  }

  @Test(arguments: [
    "['secret-0123456789abcdef'", "[\"secret-0123456789abcdef", "[secret-0123456789abcdef]",
    "{ token: 'secret-0123456789abcdef' }", "\"secret-0123456789abcdef\"",
    "'secret-0123456789abcdef'", "0123456789abcdef,\"secret-0123456789abcdef\"", "short",
    "0123456789abcdef,", ",", "0123456789abcdef,short", "['secret-0123456789abcdef', 1]",
  ])
  func `brackets and quotes never become part of a token`(value: String) {
    let message = complaint { _ = try option(value) }
    #expect(message.hasPrefix("--admin.tokens: token "), "\(message)")
    #expect(message.contains("not allowed") && !message.contains("secret-"))
  }

  // MARK: Secrets

  private func operators(
    _ tokens: [OperatorToken], environment: [String: String] = [:]
  ) -> (operators: [Operator], problems: [String]) {
    var settings = AdminSettings()
    settings.tokens = tokens
    var problems = ConfigurationProblems()
    return (settings.operators(environment: environment, into: &problems), problems.lines)
  }

  @Test func `secrets come from the list, a variable or a file`() throws {
    let folder = try TemporaryFolder()
    try folder.write("token", bytes: Array("of-a-file-abcdef\r\n".utf8))
    let found = operators(
      [
        token("0123456789abcdef"), token("env:A", name: "deploy", scopes: [.purge]),
        token("file:\(folder.path)/token"),
      ], environment: ["A": "of-a-variable-abc"])
    #expect(found.problems.isEmpty)
    #expect(
      found.operators == [
        Operator(name: "token1", token: "0123456789abcdef"),
        Operator(name: "deploy", token: "of-a-variable-abc", scopes: [.purge]),
        Operator(name: "token3", token: "of-a-file-abcdef"),
      ])
  }

  @Test func `secrets that cannot be used are all reported, without their text`() throws {
    let folder = try TemporaryFolder()
    try folder.write("blank", bytes: Array("secret with a blank".utf8))
    try folder.write("empty", bytes: Array("\n".utf8))
    let found = operators(
      [
        token("env:MISSING"), token("env:SHORT", name: "short"), token("file:/nonexistent/token"),
        token("file:\(folder.path)/blank"), token("file:\(folder.path)/empty"),
        token("env:RIGHT"), token("env:SAME", name: "again"),
      ],
      environment: ["SHORT": "secret", "RIGHT": "secret-0123456789", "SAME": "secret-0123456789"])
    #expect(found.operators.map(\.name) == ["token6"])
    #expect(found.problems.count == 6)
    let text = found.problems.joined(separator: "\n")
    for part in [
      "admin.tokens: token1: the environment variable MISSING is not set",
      "admin.tokens: short: env:SHORT is not allowed: a secret of 16",
      "admin.tokens: token3: '/nonexistent/token' cannot be read",
      "admin.tokens: token4: file:\(folder.path)/blank is not allowed",
      "admin.tokens: token5: file:\(folder.path)/empty is empty",
      "admin.tokens: again has the same secret as token6",
    ] {
      #expect(text.contains(part), "\(part) in \(text)")
    }
    #expect(!text.contains("secret-0") && !text.contains("secret with"))
  }
}

/// Lists and objects in environment variables and options, for every key that takes one.
@Suite(.onOwnThreads) struct ListArgumentTests {
  private static let lists: [(path: String, items: [String])] = [
    ("server.address", ["0.0.0.0", "[::1]:8081", "unix:/run/p.sock"]),
    ("server.cors_origin", ["https://a", "https://b"]),
    ("server.trusted_proxies", ["10.0.0.0/8", "fd00::/8"]),
    ("server.ignore_parameters", ["v", "_"]),
    ("sources.allow", ["https://a.example/", "https://*.b.example/public/"]),
    ("download.allow_networks", ["10.0.0.0/8", "fd00::/8"]),
    ("download.allow_hosts", ["a.example", "*.b.example"]),
    ("download.deny_hosts", ["a.example", "*.b.example"]),
    ("tracing.propagate", ["a.example", "*.b.example"]),
    ("admin.tokens", ["0123456789abcdef", "fedcba9876543210"]),
    ("imaging.formats", ["jpeg", "png"]), ("imaging.auto_formats", ["webp", "avif"]),
    ("failures.ttl", ["404=1m", "410=2m"]), ("server.allow", ["refresh", "retry"]),
    ("server.samples", ["https://a/b.jpg", "local:///c.png"]),
    ("download.ports", ["80", "8000-8999"]), ("server.size_steps", ["320", "640"]),
    ("signing.keys", ["a:0123456789abcdef0123456789abcdef", "b:env:SIGNING_KEY"]),
  ]

  private func literal(of path: String, set value: String) throws -> String {
    var configuration = Configuration()
    try configuration.apply(option: path, value: value)
    return try #require(Configuration.key(path)).literal(in: configuration)
  }

  @Test func `a JSON5 list means the same as a comma-separated one`() throws {
    for (path, items) in Self.lists {
      let expected = try literal(of: path, set: items.joined(separator: ","))
      for quote in ["\"", "'"] {
        let list = items.map { quote + $0 + quote }
        for text in ["[\(list.joined(separator: ","))]", "[ \(list.joined(separator: ", ")), ]"] {
          #expect(try literal(of: path, set: text) == expected, "\(path) \(text)")
        }
      }
    }
  }

  @Test func `each key with a list is covered`() {
    let others: Set = ["hosts"]
    let found = Configuration.keys.filter { $0.allowed.contains("a list of") }.map(\.path)
    let covered = Set(Self.lists.map(\.path))
    #expect(Set(found).subtracting(covered).subtracting(others).isEmpty, "\(found)")
  }

  @Test func `a list that is not closed or has other values is refused`() {
    for (path, items) in Self.lists {
      for text in ["[\"\(items[0])\"", "[\"\(items[0])\", true]", "[[\"\(items[0])\"]]"] {
        #expect(complaint { _ = try literal(of: path, set: text) } != "nothing", "\(path) \(text)")
      }
    }
  }

  @Test func `an address in brackets is a host, not a list`() throws {
    #expect(try literal(of: "download.allow_hosts", set: "[::1]") == "[\"[::1]\"]")
    #expect(try literal(of: "download.allow_hosts", set: "[::1],a") == "[\"[::1]\", \"a\"]")
  }

  @Test func `an object in JSON5 means the same as names with values`() throws {
    #expect(
      try literal(of: "presets", set: "{ thumb: 'w=300', big: \"w=9\" }")
        == literal(of: "presets", set: "thumb=w=300,big=w=9"))
    #expect(complaint { _ = try literal(of: "presets", set: "{ thumb: 'w=300'") } != "nothing")
    #expect(complaint { _ = try literal(of: "presets", set: "{ thumb: 300 }") } != "nothing")
  }
}
