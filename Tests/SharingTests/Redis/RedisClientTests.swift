// RedisClientTests: the client against a real server, and against servers that misbehave.

import Core
import Glibc
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) struct RedisClientTests {
  private func client(
    _ address: String, timeout: Duration = .seconds(30), retry: Duration = .milliseconds(20),
    replyLimit: Int = 1 << 20
  ) throws -> RedisClient {
    var configuration = RedisConfiguration(address: try #require(RedisAddress(address)))
    configuration.timeout = timeout
    configuration.retryInterval = retry
    configuration.replyLimit = replyLimit
    configuration.patience = .seconds(30)
    return try RedisClient(configuration, log: .silent)
  }

  private func whenReady(_ client: RedisClient) async throws {
    try await eventually("the client is ready") { client.isReady }
  }

  @Test func `a server without AUTH does not bring the password into the log`() async throws {
    let server = try RedisServer(["--rename-command", "AUTH", ""])
    let port = try server.listen()
    let folder = try TemporaryFolder()
    let descriptor = open(folder.path + "/log", O_RDWR | O_CREAT | O_APPEND, 0o600)
    let address = try #require(RedisAddress("redis://us:hunter2@127.0.0.1:\(port)"))
    let client = try RedisClient(
      RedisConfiguration(address: address), log: Log(level: .debug, descriptor: descriptor))
    defer { client.stop() }
    func text() -> String {
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      return String(
        decoding: bytes[..<max(pread(descriptor, &bytes, bytes.count, 0), 0)], as: UTF8.self)
    }
    try await eventually("the failure is logged") { text().contains("AUTH: ERR") }
    #expect(!text().contains("hunter2"))
  }

  @Test func `commands in one pipeline have their replies in order`() async throws {
    let server = try RedisServer()
    let client = try client(server.address)
    defer { client.stop() }
    try await whenReady(client)
    let binary = RedisCommand([Array("SET".utf8), Array("k".utf8), [0, 13, 10, 255]])
    let replies = try await client.send([
      binary, RedisCommand("GET", "k"), RedisCommand("GET", "none"),
    ])
    #expect(replies == [.status("OK"), .bytes([0, 13, 10, 255]), .none])
  }

  @Test func `concurrent callers get their own replies`() async throws {
    let server = try RedisServer()
    let client = try client(server.address)
    defer { client.stop() }
    try await whenReady(client)
    await withTaskGroup { group in
      for number in 0..<300 {
        group.addTask {
          let replies = try? await client.send([RedisCommand("ECHO", "\(number)")])
          #expect(replies == [.bytes(Array("\(number)".utf8))])
        }
      }
    }
  }

  @Test func `a host, an ACL user and a database are used`() async throws {
    let server = try RedisServer()
    try server.command("ACL", "SETUSER", "pictor", "on", ">a p@ss", "~*", "+@all")
    let port = try server.listen()
    try server.command("ACL", "SETUSER", "default", "off")
    let client = try client("redis://pictor:a%20p%40ss@localhost:\(port)/3")
    defer { client.stop() }
    try await whenReady(client)
    let replies = try await client.send([
      RedisCommand("CLIENT", "LIST"), RedisCommand("ACL", "WHOAMI"),
    ])
    #expect(replies[1] == .bytes(Array("pictor".utf8)))
    #expect(replies[0].text?.contains(" db=3 ") == true)
  }

  @Test func `a wrong password keeps the breaker open, and heals by itself`() async throws {
    let server = try RedisServer()
    try server.command("ACL", "SETUSER", "pictor", "on", ">other", "~*", "+@all")
    let client = try client("redis://pictor:secret@127.0.0.1:\(try server.listen())")
    defer { client.stop() }
    try await eventually { client.counters.failures.value > 2 }
    await #expect(throws: RedisFailure.unavailable) {
      try await client.send([RedisCommand("GET", "k")])
    }
    #expect(client.counters.sent.value == 0)
    try server.command("ACL", "SETUSER", "pictor", ">secret")
    try await whenReady(client)
  }

  @Test func `a server that restarts is used again`() async throws {
    let server = try RedisServer()
    let client = try client(server.address)
    defer { client.stop() }
    try await whenReady(client)
    server.kill()
    try await eventually { !client.isReady }
    await #expect(throws: RedisFailure.unavailable) {
      try await client.send([RedisCommand("GET", "k")])
    }
    try server.start()
    try await whenReady(client)
    #expect(try await client.send([RedisCommand("GET", "k")]) == [.none])
  }

  @Test func `a silent server costs three time-outs, then commands fail without being sent`()
    async throws
  {
    let server = try HostileRedis(.silence)
    let client = try client(server.address, timeout: .milliseconds(50), retry: .seconds(3_600))
    defer { client.stop() }
    try await whenReady(client)
    for _ in 0..<3 {
      await #expect(throws: RedisFailure.timedOut) {
        try await client.send([RedisCommand("GET", "k")])
      }
    }
    for _ in 0..<100 {
      await #expect(throws: RedisFailure.unavailable) {
        try await client.send([RedisCommand("GET", "k")])
      }
    }
    // Its thread may be later than the time-out.
    try await eventually { server.commands == 3 }
    #expect(client.counters.sent.value == 3 && client.counters.timedOut.value == 3)
    #expect(client.counters.unavailable.value == 100)
  }

  @Test func `commands that time out together are one time-out, and late replies are dropped`()
    async throws
  {
    // Given a server that does not answer at first
    let server = try RedisServer()
    let client = try client(server.address, timeout: .milliseconds(500), retry: .seconds(3_600))
    defer { client.stop() }
    try await whenReady(client)
    server.freeze()
    let outcomes = await withTaskGroup { group in
      for number in 0..<20 {
        group.addTask { try? await client.send([RedisCommand("ECHO", "\(number)")]) }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.allSatisfy { $0 == nil })
    server.thaw()
    // Then it is not away, and each later command gets its own reply
    #expect(client.isReady && client.counters.failures.value == 0)
    try await eventually {
      (try? await client.send([RedisCommand("ECHO", "last")])) == [.bytes(Array("last".utf8))]
    }
    #expect(client.counters.failures.value == 0)
  }

  @Test(arguments: [
    HostileRedis.Reply.bytes("garbage\r\n"), .bytes("$99999999999999999999\r\n"),
    .bytes("*1000000000\r\n"), .closing("$5\r\nab"), .closing(""), .slowly("*65537\r\n"),
    .bytes("$1000000000\r\n" + String(repeating: "x", count: 3 << 20)),
    // Each element is within the bound, all together are not.
    .bytes(
      "*100\r\n"
        + String(repeating: "$99998\r\n\(String(repeating: "x", count: 99_998))\r\n", count: 30)),
  ]) func `bytes that are no reply close the connection`(reply: HostileRedis.Reply) async throws {
    let server = try HostileRedis(reply)
    let client = try client(server.address)
    defer { client.stop() }
    try await whenReady(client)
    await #expect(throws: RedisFailure.lost) { try await client.send([RedisCommand("GET", "k")]) }
    // And the client heals.
    server.set(.slowly("$2\r\nok\r\n"))
    try await eventually {
      (try? await client.send([RedisCommand("GET", "k")])) == [.bytes([111, 107])]
    }
  }

  @Test func `a reply without a command closes the connection`() async throws {
    let server = try HostileRedis(.bytes("+OK\r\n+OK\r\n+OK\r\n"))
    let client = try client(server.address)
    defer { client.stop() }
    try await whenReady(client)
    #expect(try await client.send([RedisCommand("GET", "k")]) == [.status("OK")])
    try await eventually { client.counters.failures.value > 0 }
  }

  @Test(arguments: [
    "-LOADING Redis is loading the dataset in memory", "-NOAUTH Authentication required.",
    "-READONLY You can't write against a read only replica.",
  ]) func `an error that lasts is a reply, and opens the breaker`(error: String) async throws {
    let server = try HostileRedis(.bytes(error + "\r\n"))
    let client = try client(server.address, retry: .seconds(3_600))
    defer { client.stop() }
    try await whenReady(client)
    let replies = try await client.send([RedisCommand("SET", "k", "v")])
    #expect(replies == [.error(RedisError(error.dropFirst().utf8))])
    try await eventually { !client.isReady }
    #expect(client.counters.errors.value == 1)
  }

  @Test func `a full server's error leaves the connection`() async throws {
    let server = try HostileRedis(
      .bytes("-OOM command not allowed when used memory > 'maxmemory'.\r\n"))
    let client = try client(server.address)
    defer { client.stop() }
    try await whenReady(client)
    for _ in 0..<3 {
      #expect(try await client.send([RedisCommand("SET", "k", "v")]).first?.error?.kind == "OOM")
    }
    #expect(client.isReady && client.counters.failures.value == 0)
  }

  @Test func `a name that cannot be resolved, and a closed port, are failures`() async throws {
    let closed = try ClosedPort()
    for address in [
      "redis://no-such-host.invalid", "redis://127.0.0.1:\(closed.port)", "unix:/nowhere",
    ] {
      let client = try client(address)
      try await eventually { client.counters.failures.value > 1 }
      #expect(!client.isReady)
      client.stop()
    }
  }

  @Test func `commands in progress fail when the client stops`() async throws {
    let server = try HostileRedis(.silence)
    let client = try client(server.address)
    try await whenReady(client)
    let task = Task { () -> RedisFailure? in
      do throws(RedisFailure) {
        _ = try await client.send([RedisCommand("GET", "k")])
        return nil
      } catch { return error }
    }
    try await eventually { server.commands == 1 }
    client.stop()
    #expect(await task.value == .unavailable)
    await #expect(throws: RedisFailure.unavailable) {
      try await client.send([RedisCommand("GET", "k")])
    }
  }
}
