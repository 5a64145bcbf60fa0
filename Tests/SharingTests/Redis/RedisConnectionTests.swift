// RedisConnectionTests: how a connection finds its server, without the client's thread.

import Core
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) struct RedisConnectionTests {
  private let resolutions = Counter()

  private func connection(_ address: String) throws -> RedisConnection {
    var configuration = RedisConfiguration(address: try #require(RedisAddress(address)))
    configuration.patience = .seconds(2)
    configuration.retryInterval = .seconds(1)
    return RedisConnection(
      configuration, line: RedisLine(name: "test", isCounted: true, limit: 1 << 20),
      counters: RedisCounters(), log: .silent
    ) { [resolutions] _ throws(SystemError) in resolutions.add() }
  }

  /// Moves a connection to its next attempt.
  private func retry(_ connection: RedisConnection, _ now: inout ContinuousClock.Instant) {
    for _ in 0..<2 {
      now += .seconds(60)
      connection.advance(now: now)
    }
  }

  @Test func `a slow resolver has one thread, and its late answer is used`() throws {
    let server = try HostileRedis(.silence)
    let connection = try connection("redis://redis.internal")
    var now = ContinuousClock.now
    connection.advance(now: now)
    #expect(resolutions.value == 1)
    for _ in 0..<5 { retry(connection, &now) }
    #expect(resolutions.value == 1 && connection.interest.descriptor < 0)
    // It answers while the connection pauses.
    now += .seconds(60)
    connection.advance(now: now)
    let place = try #require(RedisAddress(server.address)).place
    connection.resolved(.success(try RedisSocket.all(of: place, numeric: true)))
    #expect(connection.interest.descriptor < 0)
    now += .seconds(60)
    connection.advance(now: now)
    #expect(resolutions.value == 1 && connection.interest.descriptor >= 0)
    // The answer serves one attempt: the name may move.
    connection.stop()
  }

  @Test func `a failed resolution is tried again`() throws {
    let connection = try connection("redis://redis.internal")
    var now = ContinuousClock.now
    connection.advance(now: now)
    connection.resolved(.failure(RedisError("no such name".utf8)))
    now += .seconds(60)
    connection.advance(now: now)
    #expect(resolutions.value == 2)
  }

  @Test func `a silent first address does not hide the others`() throws {
    // A full backlog is silent; each attempt begins with another address.
    let servers = try (0..<2).map { _ in try HostileRedis(.silence) }
    let sockets = try servers.map { server in
      try RedisSocket.all(of: try #require(RedisAddress(server.address)).place, numeric: true)[0]
    }
    let connection = try connection("redis://redis.internal")
    var now = ContinuousClock.now
    connection.advance(now: now)
    connection.resolved(.success(sockets))
    try blockUntil("the first is connected to") { servers[0].connections == 1 }
    retry(connection, &now)
    connection.resolved(.success(sockets))
    try blockUntil("the second is connected to") { servers[1].connections == 1 }
    #expect(servers[0].connections == 1)
  }

  @Test func `a reply that is there when its time is over is taken`() throws {
    // Given a request whose reply has come while this machine was busy
    let server = try HostileRedis(.bytes("$2\r\nok\r\n"))
    let connection = try connection(server.address)
    let start = ContinuousClock.now
    connection.advance(now: start)
    func wait(for condition: @autoclosure () -> Bool) throws {
      try blockUntil("the server answers") {
        if condition() { return true }
        let (descriptor, events) = connection.interest
        var poll = Poll([(descriptor, events)])
        poll.wait(milliseconds: 10)
        if !poll.events(of: 0).isEmpty { connection.handle(poll.events(of: 0)) }
        return condition()
      }
    }
    try wait(for: connection.life.isReady)
    let outcome = Lock<RedisRequest.Outcome?>(nil)
    var bytes: [UInt8] = []
    RedisCommand("GET", "k").append(to: &bytes)
    connection.send(
      RedisRequest(bytes: bytes, count: 1, time: .seconds(1)) { value in
        outcome.withLock { $0 = value }
      })
    var poll = Poll([(connection.interest.descriptor, .readable)])
    poll.wait(milliseconds: 10_000)
    // When its time is over before the socket is read
    connection.advance(now: start + .seconds(60))
    // Then
    #expect(outcome.withLock { $0 } == .success([.bytes([111, 107])]))
    #expect(connection.life.isReady)
  }
}
