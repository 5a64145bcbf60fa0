// Tests of Invocation: the command line.

import Testing

@testable import Configuring

struct InvocationTests {
  @Test func `nothing serves with the defaults`() throws {
    let invocation = try Invocation(arguments: [])
    #expect(invocation.action == .serve)
    #expect(invocation.file == nil)
    let (configuration, unknown) = try Configuration.load(invocation, environment: [:])
    #expect(configuration == Configuration())
    #expect(unknown.isEmpty)
  }

  @Test func `options come with a space or an equals sign`() throws {
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
    (["--help"], Invocation.Action.help), (["--version"], .version),
    (["--check-config"], .checkConfiguration), (["--print-config"], .printConfiguration),
    (["healthcheck"], .healthcheck), (["healthcheck", "--server.port", "1"], .healthcheck),
    (["prefetch", "a.txt"], .prefetch(file: "a.txt", presets: [])),
    (
      ["prefetch", "--preset", "x", "-", "--server.port=1", "--preset=y"],
      .prefetch(file: "-", presets: ["x", "y"])
    ),
    (["prefetch", "--help"], .help),
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
    (["purge", "--help"], .help),
  ])
  func `each action has its word`(arguments: [String], action: Invocation.Action) throws {
    #expect(try Invocation(arguments: arguments).action == action)
  }

  @Test(arguments: [
    ["--nope"], ["serve"], ["--config"], ["--server.port"], ["-x"], ["--"],
    ["prefetch"], ["prefetch", "a", "b"], ["prefetch", "-x"], ["prefetch", "a", "--preset"],
    ["purge"], ["purge", "-x"], ["purge", "--tag"], ["purge", "--preset", "x"], ["--all"],
    ["--tag", "x"], ["--preset", "x"], ["healthcheck", "a"], ["a", "prefetch"],
  ])
  func `what is not understood is refused in one line`(arguments: [String]) {
    #expect(throws: ConfigurationError.self) { try Invocation(arguments: arguments) }
  }

  @Test func `a configuration file that is not there is an error that names it`() throws {
    let invocation = try Invocation(arguments: ["--config", "/nonexistent/pictor.json5"])
    #expect {
      try Configuration.load(invocation, environment: [:])
    } throws: {
      "\($0)" == "/nonexistent/pictor.json5: cannot be read: No such file or directory"
    }
  }
}
