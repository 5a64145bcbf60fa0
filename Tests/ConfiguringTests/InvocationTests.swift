// InvocationTests: tests of the command line.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct InvocationTests {
  /// What `sign` signs.
  private static func order(
    _ urls: String..., expiresIn: Duration? = nil, key: String? = nil
  ) -> SigningOrder {
    var order = SigningOrder()
    order.urls = urls
    order.expiresIn = expiresIn
    order.key = key
    return order
  }

  @Test func `without arguments, the server starts with the defaults`() throws {
    let invocation = try Invocation(arguments: [])
    #expect(invocation.action == .serve)
    #expect(invocation.file == nil)
    let (configuration, unknown) = try Configuration.load(invocation, environment: [:])
    #expect(configuration == Configuration())
    #expect(unknown.isEmpty)
  }

  @Test func `options take their value after a space or an equals sign`() throws {
    let invocation = try Invocation(arguments: [
      "--server.port", "1", "--sources.local_root=a=b", "--disk.path=",
    ])
    #expect(
      invocation.options == [
        .init(path: "server.port", value: "1"),
        .init(path: "sources.local_root", value: "a=b"),
        .init(path: "disk.path", value: ""),
      ])
  }

  @Test(arguments: [
    (["--help"], Invocation.Action.help(nil)), (["help"], .help(nil)),
    (["help", "sign"], .help(.sign)),
    (["-h"], .help(nil)), (["--version"], .version),
    (["--check-config"], .checkConfiguration), (["--print-config"], .printConfiguration),
    (["check"], .check(isJSON: false)), (["check", "--json"], .check(isJSON: true)),
    (["doctor", "http://h/a", "--json"], .doctor(DoctorOrder(url: "http://h/a", isJSON: true))),
    (["healthcheck"], .healthcheck), (["healthcheck", "--server.port", "1"], .healthcheck),
    (["prefetch", "a.txt"], .prefetch(file: "a.txt", presets: [])),
    (
      ["prefetch", "--preset", "x", "-", "--server.port=1", "--preset=y"],
      .prefetch(file: "-", presets: ["x", "y"])
    ),
    (["prefetch", "--help"], .help(.prefetch)),
    (["purge", "--all"], .purge([.everything])),
    (
      [
        "purge", "http://h/a", "--prefix", "http://h/", "--host=*.h", "--server.port", "1", "--tag",
        "shop", "http://h/b",
      ],
      .purge([
        .url("http://h/a"), .prefix("http://h/"), .host("*.h"), .tag("shop"), .url("http://h/b"),
      ])
    ),
    (["purge", "--help"], .help(.purge)), (["purge", "http://h/a", "-h"], .help(.purge)),
    (["healthcheck", "--help"], .help(.healthcheck)),
    (["sign", "/image?url=a"], .sign(order("/image?url=a"))),
    (
      ["sign", "a", "--expires-in=90m", "b", "--key", "k", "--server.port", "1"],
      .sign(order("a", "b", expiresIn: .seconds(5_400), key: "k"))
    ),
    (["sign", "-h"], .help(.sign)), (["selftest", "security"], .securityTest),
    (["selftest", "security", "--server.port", "1"], .securityTest),
    (["selftest", "--help"], .help(.selftest)),
  ])
  func `each command and option selects its action`(arguments: [String], action: Invocation.Action)
    throws
  {
    #expect(try Invocation(arguments: arguments).action == action)
  }

  @Test(arguments: [
    ["--nope"], ["serve"], ["--config"], ["--server.port"], ["-x"], ["--"],
    ["prefetch"], ["prefetch", "a", "b"], ["prefetch", "-x"], ["prefetch", "a", "--preset"],
    ["purge"], ["purge", "-x"], ["purge", "--tag"], ["purge", "--preset", "x"], ["--all"],
    ["--tag", "x"], ["--preset", "x"], ["healthcheck", "a"], ["a", "prefetch"],
    ["sign"], ["sign", "-x"], ["sign", "a", "--key"], ["sign", "a", "--expires-in", "0s"],
    ["sign", "a", "--expires-in", "5"], ["sign", "a", "--expires-in", "3651d"],
    ["sign", "--all"], ["prefetch", "a", "--key", "b"], ["--expires-in", "1h"],
    ["replay", "a"], ["replay", "--door", "x", "a"], ["replay", "--door", "ipx"],
    ["replay", "--door", "ipx", "a", "b"], ["replay", "--door", "ipx", "a", "--sample", "0"],
    ["selftest"], ["selftest", "speed"], ["selftest", "security", "security"],
  ])
  func `invalid arguments are refused`(arguments: [String]) {
    #expect(throws: ConfigurationError.self) { try Invocation(arguments: arguments) }
  }

  @Test(arguments: [
    ("http://127.0.0.1:9000", true), ("http://[::1]:9000/a/", true), ("https://localhost", true),
    ("http://old.example", true), ("http://new.example", false), ("http://10.0.0.1", false),
    ("http://localhost@new.example", false), ("http://new.example#@127.0.0.1", false),
    ("local:///a", false), ("old.example", false), ("", false),
  ])
  func `a log is replayed against this machine and named hosts`(url: String, isAllowed: Bool) {
    let arguments = ["--door", "imgproxy", "-", "--allow-host", "old.example", "--against", url]
    let action = try? Invocation(arguments: ["replay"] + arguments).action
    guard case .replay(let order)? = action else { return #expect(!isAllowed) }
    #expect(isAllowed && order.log == "-" && order.peer == .imgproxy && order.sample == 500)
    #expect(order.against?.hasPrefix("http") == true && order.page == nil)
  }

  @Test(arguments: [
    (["--port", "1"], "--port: unknown option; did you mean --server.port?"),
    (["--server-port=1"], "--server-port=1: unknown option; did you mean --server.port?"),
    (
      ["--server.prot", "1"], "--server.prot: unknown option; did you mean --server.port?"
    ),
    (["--confg", "a"], "--confg: unknown option; did you mean --config?"),
    (["--check"], "--check: unknown option; did you mean --check-config?"),
    (
      ["--log"],
      "--log: unknown option; did you mean --log.format, --log.level, --log.requests, "
        + "--log.access_format or --log.access_path?"
    ),
    (
      ["purge", "--prefx", "http://h/"],
      "--prefx: unknown option; did you mean --prefix?"
    ),
    (["--zzzzzzzz"], "--zzzzzzzz: unknown option; --help lists them"),
    (["purg"], "purg: unknown command; did you mean purge?"),
    (["serve"], "serve: unknown command; --help lists them"),
  ])
  func `an unknown option or command suggests the nearest`(
    arguments: [String], message: String
  ) {
    let said = complaint {
      let invocation = try Invocation(arguments: arguments)
      _ = try Configuration.load(invocation, environment: [:])
    }
    #expect(said == message)
  }

  @Test func `all errors in the arguments are reported, and values of unknown options are not`() {
    let said = complaint {
      _ = try Invocation(arguments: [
        "--port", "1", "--x.y=2", "b", "--server.port", "3", "--config",
      ])
    }
    #expect(
      said.split(separator: "\n").map { $0.prefix { $0 != ":" } } == [
        "--port", "--x.y=2", "b", "--config",
      ])
  }

  @Test func `each command has its own help text`() {
    let texts = ([nil] + Invocation.Command.allCases).map { Invocation.help(for: $0) }
    #expect(Set(texts).count == 1 + Invocation.Command.allCases.count)
    for (command, text) in zip(Invocation.Command.allCases, texts.dropFirst()) {
      #expect(text.hasPrefix("pictor \(command.rawValue): "))
      #expect(text.contains("usage: pictor \(command.rawValue)"))
      #expect(!text.contains("--print-config"))
      #expect(texts[0].contains("pictor \(command.rawValue) "))
    }
    #expect(Invocation.help(for: .purge).contains("--prefix URL"))
    #expect(!Invocation.help(for: .prefetch).contains("--prefix"))
    let lines = texts.joined().split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 120 })
  }

  @Test func `the error for a missing configuration file names the file`() throws {
    let invocation = try Invocation(arguments: ["--config", "/nonexistent/pictor.json5"])
    #expect {
      try Configuration.load(invocation, environment: [:])
    } throws: {
      "\($0)" == "/nonexistent/pictor.json5: cannot be read: No such file or directory"
    }
  }
}
