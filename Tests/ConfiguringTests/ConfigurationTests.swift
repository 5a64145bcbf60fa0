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

  @Test func `CORS origins are a comma-separated text or a list`() throws {
    for text in ["'http://a:81, https://[::1]'", "['http://a:81', 'https://[::1]']"] {
      let configuration = try apply("{ server: { cors_origin: \(text) } }")
      #expect(configuration.server.corsOrigins == ["http://a:81", "https://[::1]"])
    }
    #expect(try apply("{ server: { cors_origin: 'auto' } }").server.corsOrigins == nil)
    var configuration = try apply("{ server: { cors_origin: '' } }")
    #expect(configuration.server.corsOrigins == [])
    try configuration.apply(option: "server.cors_origin", value: "https://a,https://b")
    #expect(configuration.server.corsOrigins == ["https://a", "https://b"])
  }

  @Test func `ports are numbers, texts and ranges`() throws {
    let configuration = try apply("{ download: { ports: [80, '443', '8000-8999'] } }")
    #expect(configuration.download.ports == ["80", "443", "8000-8999"])
    var other = try apply("{ download: { ports: [] } }")
    #expect(other.download.ports.isEmpty)
    try other.apply(option: "download.ports", value: "80,1024-65535")
    #expect(other.download.ports == ["80", "1024-65535"])
    for text in ["0", "80-", "99999", "https", "90-80"] {
      #expect(throws: ConfigurationError.self) {
        try other.apply(option: "download.ports", value: text)
      }
    }
  }

  @Test func `size steps are ascending whole numbers`() throws {
    var configuration = try apply("{ server: { size_steps: [1, 320, 65535] } }")
    #expect(configuration.server.sizeSteps == [1, 320, 65_535])
    try configuration.apply(option: "server.size_steps", value: "160, 320")
    #expect(configuration.server.sizeSteps == [160, 320])
    try configuration.apply(option: "server.size_steps", value: "[100,200]")
    #expect(configuration.server.sizeSteps == [100, 200])
    try configuration.apply(option: "server.size_steps", value: "")
    #expect(configuration.server.sizeSteps.isEmpty)
    let many = (1...101).map(String.init).joined(separator: ",")
    for text in ["0", "65536", "320,160", "160,160", "160,", "a", "1.5", "[160", many] {
      #expect(throws: ConfigurationError.self, "\(text)") {
        try configuration.apply(option: "server.size_steps", value: text)
      }
    }
    for wrong in ["320", "[320.5]", "[[320]]", "[true]", "['a']"] {
      #expect(throws: ConfigurationError.self, "\(wrong)") {
        _ = try apply("{ server: { size_steps: \(wrong) } }")
      }
    }
  }

  @Test func `admission to disk has a mode`() throws {
    #expect(Configuration().disk.admission == .auto)
    let disk = try apply("{ disk: { admission: 'second_request' } }").disk
    #expect(disk.admission == .secondRequest)
    #expect(throws: ConfigurationError.self) { _ = try apply("{ disk: { admission: 'never' } }") }
  }

  @Test func `a size is auto or a number of bytes`() throws {
    var configuration = Configuration()
    #expect(configuration.memory.limit == nil && configuration.imaging.workerMemory == nil)
    try configuration.apply(option: "memory.limit", value: "1GiB")
    #expect(configuration.memory.limit == 1 << 30)
    try configuration.apply(option: "memory.limit", value: "auto")
    #expect(configuration.memory.limit == nil)
  }

  @Test func `an age is a time, or never, which any negative number also means`() throws {
    for never in ["never", "-1", "-7d", "-0.5"] {
      var configuration = Configuration()
      try configuration.apply(option: "disk.maximum_age", value: never)
      #expect(configuration.disk.maximumAge == nil, "\(never)")
    }
    #expect(try apply("{ disk: { maximum_age: -1 } }").disk.maximumAge == nil)
    #expect(try apply("{ disk: { maximum_age: '0' } }").disk.maximumAge == .zero)
    for wrong in ["-", "1", "-x", "-1w", "nan"] {
      var configuration = Configuration()
      #expect(throws: ConfigurationError.self, "\(wrong)") {
        try configuration.apply(option: "disk.maximum_age", value: wrong)
      }
    }
  }

  @Test func `the disk limits and the start of an entry's age are validated`() throws {
    let disk = try apply(
      "{ disk: { count_limit: 0, expire_by: 'creation' }, memory: { pressure: 0.25 } }"
    ).disk
    #expect((disk.countLimit, disk.expireBy) == (0, .creation))
    for wrong in ["count_limit: -1", "expire_by: 'change'"] {
      #expect(throws: ConfigurationError.self) { _ = try apply("{ disk: { \(wrong) } }") }
    }
  }

  @Test func `lists in environment variables are comma-separated`() throws {
    var configuration = Configuration()
    _ = try configuration.apply(environment: [
      "PICTOR_DOWNLOAD_ALLOW_NETWORKS": "127.0.0.0/8, ::1/128", "PICTOR_IMAGING_FORMATS": "jpeg",
    ])
    #expect(configuration.download.allowNetworks == ["127.0.0.0/8", "::1/128"])
    #expect(configuration.imaging.formats == [.jpeg])
  }

  @Test func `the list of automatic formats may be empty and keeps its order`() throws {
    #expect(try apply("{ imaging: { auto_formats: [] } }").imaging.autoFormats == [])
    #expect(
      try apply("{ imaging: { auto_formats: ['webp', 'avif'] } }").imaging.autoFormats
        == [.webp, .avif])
  }

  @Test func `watermarks map names to URLs`() throws {
    let file = try apply("{ watermarks: { logo: 'local:///logo.png', b_2: 'https://h/b?x=1' } }")
    #expect(file.watermarks == ["logo": "local:///logo.png", "b_2": "https://h/b?x=1"])
    var configuration = Configuration()
    try configuration.apply(option: "watermarks", value: "logo=https://h/b?x=1,c=local:///c")
    #expect(configuration.watermarks == ["logo": "https://h/b?x=1", "c": "local:///c"])
    for wrong in ["'a b': 'http://h/a'", "a: 'logo.png'", "a: 'ftp://h/a'", "a: ''", "a: 1"] {
      #expect(throws: ConfigurationError.self) { _ = try apply("{ watermarks: { \(wrong) } }") }
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
}
