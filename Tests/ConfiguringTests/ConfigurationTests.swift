// ConfigurationTests: tests of all sources of settings, their precedence, and errors.

import FoundationEssentials
import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct ConfigurationTests {
  private func apply(_ json5: String) throws -> Configuration {
    var configuration = Configuration()
    try configuration.apply(json5: json5, file: "pictor.json5")
    return configuration
  }

  @Test func `a file sets the keys that it names and keeps the other defaults`() throws {
    let configuration = try apply(
      """
      { // a comment, unquoted keys, single quotes and a trailing comma are JSON5
        server: { port: 9000, },
        'memory': { limit: '1GiB' },
        disk: { maximum_age: "never", count_limit: 7 },
        download: { allow_networks: ["10.0.0.0/8", "fd00::/8"], timeout: "250ms" },
        imaging: { formats: ["jpeg", "png"] },
      }
      """)
    #expect(configuration.server.port == 9_000)
    #expect(configuration.memory.limit == 1 << 30)
    #expect(configuration.disk.maximumAge == nil)
    #expect(configuration.disk.countLimit == 7)
    #expect(configuration.download.allowNetworks == ["10.0.0.0/8", "fd00::/8"])
    #expect(configuration.download.timeout == .milliseconds(250))
    #expect(configuration.imaging.formats == [.jpeg, .png])
    #expect(configuration.server.addresses == Configuration().server.addresses)
  }

  @Test(arguments: [
    ("'0.0.0.0'", ["0.0.0.0:8080"], "\"0.0.0.0\""), ("['::']", ["[::]:8080"], "\"::\""),
    ("'unix:/run/p.sock'", ["unix:/run/p.sock"], "\"unix:/run/p.sock\""),
    (
      "['10.0.0.1', '[::1]:81', 'unix:/p', '127.0.0.1:82']",
      ["10.0.0.1:8080", "[::1]:81", "unix:/p", "127.0.0.1:82"],
      "[\"10.0.0.1\", \"[::1]:81\", \"unix:/p\", \"127.0.0.1:82\"]"
    ),
  ])
  func `an address, or a list of them, is read and written`(
    text: String, addresses: [String], literal: String
  ) throws {
    let configuration = try apply("{ server: { address: \(text) } }")
    #expect(configuration.server.clientAddresses.map(\.description) == addresses)
    let key = try #require(Configuration.key("server.address"))
    #expect(key.literal(in: configuration) == literal)
  }

  @Test func `command line beats environment beats file beats default`() throws {
    var configuration = try apply("{ server: { port: 1, workers: 1, connections: 100 } }")
    let unknown = try configuration.apply(environment: [
      "PICTOR_SERVER_PORT": "2", "PICTOR_SERVER_WORKERS": "2", "HOME": "/", "PICTOR_PORT": "x",
    ])
    try configuration.apply(option: "server.port", value: "3")
    #expect(configuration.server.port == 3)
    #expect(configuration.server.workers == 2)
    #expect(configuration.server.connectionLimit == 100)
    #expect(unknown == ["PICTOR_PORT"])
  }

  /// A value in a file, and how it is written; `nil`: it is refused.
  @Test(arguments: [
    ("server.cors_origin", "'http://a:81, https://[::1]'", #"["http://a:81", "https://[::1]"]"#),
    (
      "server.cors_origin", "['http://a:81', 'https://[::1]']", #"["http://a:81", "https://[::1]"]"#
    ),
    ("server.cors_origin", "'auto'", #""auto""#), ("server.cors_origin", "''", "[]"),
    ("download.ports", "[80, '443', '8000-8999']", #"["80", "443", "8000-8999"]"#),
    ("download.ports", "[]", "[]"), ("server.size_steps", "[1, 320, 65535]", "[1, 320, 65535]"),
    ("server.size_steps", "320", nil), ("server.size_steps", "[320.5]", nil),
    ("server.size_steps", "[[320]]", nil), ("server.size_steps", "[true]", nil),
    ("server.size_steps", "['a']", nil),
    ("disk.admission", "'second_request'", #""second_request""#),
    ("disk.admission", "'never'", nil),
    ("disk.maximum_age", "-1", #""never""#), ("disk.maximum_age", "'0'", #""0s""#),
    ("disk.count_limit", "0", "0"), ("disk.count_limit", "-1", nil),
    ("disk.expire_by", "'creation'", #""creation""#), ("disk.expire_by", "'change'", nil),
    ("memory.pressure", "0.25", "0.25"), ("imaging.auto_formats", "[]", "[]"),
    ("imaging.auto_formats", "['webp', 'avif']", #"["webp", "avif"]"#),
    (
      "watermarks", "{ logo: 'local:///logo.png', b_2: 'https://h/b?x=1' }",
      #"{ "b_2": "https://h/b?x=1", "logo": "local:///logo.png" }"#
    ),
    ("watermarks", "{ 'a b': 'http://h/a' }", nil), ("watermarks", "{ a: 'logo.png' }", nil),
    ("watermarks", "{ a: 'ftp://h/a' }", nil), ("watermarks", "{ a: '' }", nil),
    ("watermarks", "{ a: 1 }", nil),
  ])
  func `a value in a file is read as it is written, or refused`(
    path: String, value: String, literal: String?
  ) throws {
    let key = try #require(Configuration.key(path))
    let text = path.split(separator: ".").reversed().reduce(value) { "{ \($1): \($0) }" }
    let configuration = try? apply(text)
    #expect(configuration.map { key.literal(in: $0) } == literal)
  }

  /// Values of an option, and how they are written; `nil`: they are refused.
  @Test(
    arguments: [
      ("server.cors_origin", ["https://a,https://b"], #"["https://a", "https://b"]"#),
      ("download.ports", ["80,1024-65535"], #"["80", "1024-65535"]"#),
      ("download.ports", ["0", "80-", "99999", "https", "90-80"], nil),
      ("server.size_steps", ["160, 320", "[160,320]"], "[160, 320]"),
      ("server.size_steps", [""], "[]"),
      ("server.size_steps", ["0", "65536", "320,160", "160,160", "160,", "a", "1.5", "[160"], nil),
      ("server.size_steps", [(1...101).map(String.init).joined(separator: ",")], nil),
      ("memory.limit", ["1GiB"], #""1GiB""#), ("memory.limit", ["auto"], #""auto""#),
      (
        "watermarks", ["logo=https://h/b?x=1,c=local:///c"],
        #"{ "c": "local:///c", "logo": "https://h/b?x=1" }"#
      ),
      ("disk.maximum_age", ["never", "-1", "-7d", "-0.5"], #""never""#),
      ("disk.maximum_age", ["-", "1", "-x", "-1w", "nan"], nil),
    ] as [(String, [String], String?)])
  func `a value of an option is read as it is written, or refused`(
    path: String, values: [String], literal: String?
  ) throws {
    let key = try #require(Configuration.key(path))
    for value in values {
      var configuration = Configuration()
      let isTaken = (try? configuration.apply(option: path, value: value)) != nil
      #expect((isTaken ? key.literal(in: configuration) : nil) == literal, "\(value)")
    }
  }

  @Test(arguments: [
    ("{ server: { prot: 1 } }", "pictor.json5: server.prot", "server.port"),
    ("{ sever: {} }", "pictor.json5: sever", "server"),
    ("{ server: 1 }", "pictor.json5: server", "an object"),
    ("[]", "pictor.json5", "an object"),
    ("{ server: { port: 65536 } }", "pictor.json5: server.port: 65536", "0 to 65535"),
    ("{ server: { port: '80' } }", "server.port: '80'", "whole number"),
    ("{ server: { port: 80.5 } }", "server.port: 80.5", "whole number"),
    ("{ server: { port: null } }", "server.port: null", "whole number"),
    ("{ server: { address: [] } }", "server.address", "at most 32"),
    ("{ server: { address: ['0.0.0.0', 'unix:p'] } }", "server.address", "absolute path"),
    ("{ server: { address: 8080 } }", "server.address", "numeric addresses"),
    ("{ server: { address: 'localhost' } }", "server.address: 'localhost'", "numeric"),
    ("{ server: { cors_origin: ['https://a/'] } }", "server.cors_origin", "without a path"),
    ("{ server: { cors_origin: 'https://a:443' } }", "server.cors_origin", "without a path"),
    ("{ server: { cors_origin: 'HTTPS://a' } }", "server.cors_origin", "lower case"),
    ("{ server: { cors_origin: 'a.example' } }", "server.cors_origin", "https://example.com"),
    ("{ server: { cors_origin: ['*', '*'] } }", "server.cors_origin", "origins"),
    ("{ memory: { limit: '64MB' } }", "memory.limit: '64MB'", "MiB"),
    ("{ memory: { limit: '99999999TiB' } }", "memory.limit", "MiB"),
    ("{ memory: { limit: -1 } }", "memory.limit: -1", "at least 0B"),
    ("{ download: { timeout: '15' } }", "download.timeout: '15'", "\"15s\""),
    ("{ download: { timeout: 15 } }", "download.timeout: 15", "\"15s\""),
    ("{ download: { timeout: '0s' } }", "download.timeout", "from 100ms"),
    ("{ download: { allow_networks: ['10.0.0.0/33'] } }", "download.allow_networks", "10.0.0.0/8"),
    ("{ download: { allow_networks: '10.0.0.0/8' } }", "download.allow_networks", "a list"),
    ("{ download: { allow_hosts: ['http://a/'] } }", "download.allow_hosts", "*.example.com"),
    ("{ imaging: { formats: ['pdf'] } }", "imaging.formats", "jpeg, png"),
    ("{ imaging: { formats: [] } }", "imaging.formats", "jpeg, png"),
    ("{ imaging: { auto_formats: ['png'] } }", "imaging.auto_formats", "avif, webp, jxl"),
    ("{ imaging: { auto_formats: ['jxl', 'jxl'] } }", "imaging.auto_formats", "each once"),
    ("{ memory: { pressure: NaN } }", "memory.pressure", "0.0 to 1.0"),
    ("{ log: { level: 'loud' } }", "log.level: 'loud'", "debug, info"),
    ("{\n\n server: { port 1 } }", "pictor.json5:3: not valid JSON5", ""),
    ("{ // {\n server:\n  { port: 1\n} /* \n } */\n x }", "pictor.json5:6: ", "not valid JSON5"),
    ("{ server: { port: 1 }\n", "pictor.json5:2: ", "not valid JSON5"),
    ("", "pictor.json5:1: ", "not valid JSON5"),
  ])
  func `an error in a file names the key, the value and the allowed values`(
    text: String, place: String, allowed: String
  ) {
    let message = complaint { _ = try apply(text) }
    #expect(message.contains(place))
    #expect(allowed.isEmpty || message.contains(allowed))
    #expect(!message.contains("\n"))
  }

  @Test func `all errors in a file are reported, one per line, and valid keys are still applied`() {
    var configuration = Configuration()
    let said = complaint {
      try configuration.apply(
        json5: """
          { server: { prot: 1, port: 70000, workers: 3 }, disk: 1, sever: {},
            presets: { "a b": "w=1", c: "w=2" }, download: { timeout: 1, retries: -1 } }
          """, file: "f")
    }
    #expect(
      said.split(separator: "\n").map(String.init) == [
        "f: disk: 1 is not allowed: an object",
        "f: download.retries: -1 is not allowed: a whole number from 0 to 5",
        "f: download.timeout: 1 is not allowed: "
          + "a time such as \"15s\" (ms, s, m, h, d), from 100ms to 1h",
        "f: presets.a b: 'w=1' is not allowed: an object of queries such as \"w=300&h=200\", "
          + "by names of letters, digits, - and _",
        "f: server.port: 70000 is not allowed: a whole number from 0 to 65535",
        "f: server.prot: unknown key; did you mean server.port?",
        "f: sever: unknown key; did you mean server?",
      ])
    #expect(configuration.server.workers == 3 && configuration.server.port == 8_080)
  }

  @Test func `errors in the file, environment and command line are reported together`() throws {
    let folder = try TemporaryFolder()
    try folder.write("a.json5", bytes: Array("{ server: { port: -1, workers: 2 } }".utf8))
    var problems = ConfigurationProblems()
    let invocation = Invocation(
      arguments: ["--config", folder.path + "/a.json5", "--wrong", "1", "--disk.limit", "much"],
      &problems)
    let (configuration, unknown) = Configuration.load(
      invocation, environment: ["PICTOR_SERVER_PORT": "x", "PICTOR_PORT": "y"], into: &problems)
    #expect(
      problems.lines.map { $0.prefix { $0 != ":" } } == [
        "--wrong", folder.path[...] + "/a.json5", "PICTOR_SERVER_PORT", "--disk.limit",
      ])
    #expect(configuration.server.workers == 2 && unknown == ["PICTOR_PORT"])
    #expect(throws: ConfigurationError.self) { try problems.check() }
  }

  @Test(arguments: [
    ("PICTOR_PORT", "; did you mean PICTOR_SERVER_PORT?"),
    ("PICTOR_SERVER_PROT", "; did you mean PICTOR_SERVER_PORT?"),
    ("PICTOR_CA_FILE", "; did you mean PICTOR_DOWNLOAD_CA_FILE or PICTOR_FLEET_S3_CA_FILE?"),
    ("PICTOR_SERVICE_HOST", ""), ("PICTOR_", ""), ("PICTOR_ZZZZZZZZZ", ""),
  ])
  func `an unknown variable suggests the nearest key`(name: String, hint: String) {
    #expect(Configuration.hint(forVariable: name) == hint)
  }

  @Test func `errors in variables and options name them`() {
    var configuration = Configuration()
    #expect(
      complaint { _ = try configuration.apply(environment: ["PICTOR_SERVER_PORT": "tcp://10"]) }
        == "PICTOR_SERVER_PORT: 'tcp://10' is not allowed: a whole number from 0 to 65535")
    #expect(
      complaint { try configuration.apply(option: "server.port", value: "-1") }
        == "--server.port: '-1' is not allowed: a whole number from 0 to 65535")
    #expect(
      complaint { try configuration.apply(option: "x.y", value: "1") }.hasPrefix("--x.y: "))
  }

  @Test func `lists in environment variables are comma-separated`() throws {
    var configuration = Configuration()
    _ = try configuration.apply(environment: [
      "PICTOR_DOWNLOAD_ALLOW_NETWORKS": "127.0.0.0/8, ::1/128", "PICTOR_IMAGING_FORMATS": "jpeg",
    ])
    #expect(configuration.download.allowNetworks == ["127.0.0.0/8", "::1/128"])
    #expect(configuration.imaging.formats == [.jpeg])
  }

  @Test func `the printed configuration can be read again`() throws {
    var original = Configuration()
    original.server.port = 1
    original.disk.path = "a \"quoted\" \\ path\n"
    original.disk.maximumAge = nil
    original.download.allowHosts = ["*.example.com"]
    original.memory.limit = 12_345
    original.download.timeout = .milliseconds(1_500)
    #expect(try apply(original.json5) == original)
  }

  @Test func `sizes and times are printed in the form that is read`() {
    #expect(ByteSize.text(256 << 20) == "256MiB")
    #expect(ByteSize.text(0) == "0B")
    #expect(TimeSpan.text(.seconds(604_800)) == "7d")
    #expect(TimeSpan.text(.milliseconds(1_500)) == "1500ms")
    #expect(TimeSpan.text(.zero) == "0s")
  }

  @Test func `the paths and variables of keys are unique`() {
    #expect(Set(Configuration.keys.map(\.path)).count == Configuration.keys.count)
    #expect(Set(Configuration.keys.map(\.environmentVariable)).count == Configuration.keys.count)
  }

  @Test(arguments: [
    ("{ server: { port: 1, port: 2 } }", "server.port"),
    ("{ 'log': { level: 'info' }, \"log\": { level: 'debug' } }", "log"),
    ("{ presets: { a: 'w=1', /* a: */ b: '{a:1,', a: 'w=2', }, // presets: {\n }", "presets.a"),
  ])
  func `a key that a file gives twice is refused`(text: String, path: String) throws {
    var configuration = Configuration()
    #expect(
      throws: ConfigurationError(
        at: "f: \(path)", "it is given twice in one object; merge the two")
    ) { try configuration.apply(json5: text, file: "f") }
  }

  @Test func `the same key in two objects, and a suggestion that is key and section, are no pair`()
    throws
  {
    var configuration = Configuration()
    try configuration.apply(
      json5: "{ memory: { limit: '1GiB' }, disk: { limit: '1GiB' }, presets: { w: 'w=1' } }",
      file: "f")
    let error = #expect(throws: ConfigurationError.self) {
      try configuration.apply(json5: "{ preset: 1 }", file: "f")
    }
    #expect(error?.problems == ["f: preset: unknown key; did you mean presets?"])
  }

  @Test func `a reload takes the live keys over, and keeps all others`() throws {
    var wanted = Configuration()
    try wanted.apply(
      json5:
        """
        {
          server: { port: 9000, allow: ["refresh"], cors_origin: ["https://a.example"],
            size_steps: [100, 200], requests_per_second: 7, trusted_proxies: ["10.0.0.0/8"] },
          hosts: [{ host: "*.example.com", headers: { "X-Key": "env:KEY" }, drop_parameters: ["t"] }],
          presets: { thumb: "w=1&background=\\"x\\"" }, fallbacks: { gone: "local:///g.svg" },
          admin: { tokens: ["0123456789abcdef", { name: "a", token: "env:T", scopes: ["read"] }] },
          signing: { mode: "options", keys: ["a:file:/key", "b:0123456789abcdef0123456789abcdef"] },
          download: { allow_hosts: ["*.example.com:8443"], ports: [80, "8000-8999"], timeout: "1s" },
          imaging: { auto_formats: [], workers: 3 }, failures: { ttl: ["404=10m"] },
          freshness: { maximum_lifetime: "1d" }, log: { format: "json", level: "error" },
          memory: { limit: "1GiB" }, disk: { maximum_age: "never" },
        }
        """, file: "pictor.json5")
    let reloaded = Configuration().reloaded(from: wanted)
    for key in Configuration.keys {
      let expected = key.literal(in: key.isLive ? wanted : Configuration())
      #expect(key.literal(in: reloaded) == expected, "\(key.path)")
    }
    #expect(reloaded.presets == wanted.presets && reloaded.signing == wanted.signing)
    #expect(reloaded.hosts == wanted.hosts && !wanted.hosts.isEmpty)
    #expect(Configuration.keys.count(where: \.isLive) == 90)
  }
}
