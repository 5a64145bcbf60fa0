// RedisConnectionTests: connecting and deadlines, without the client's thread.

import Core
import Glibc
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) struct RedisConnectionTests {
  private func connection(_ address: String) throws -> RedisConnection {
    var configuration = RedisConfiguration(address: try #require(RedisAddress(address)))
    configuration.patience = .seconds(1)
    return try RedisConnection(configuration, RedisCounters())
  }

  @Test func `a server that accepts nothing is given up in time`() throws {
    // Given a socket whose backlog is full
    let folder = try TemporaryFolder()
    let address = try #require(UnixAddress(folder.path + "/redis"))
    let sockets = (0..<4).map { number in
      let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      let descriptor = socket(AF_UNIX, kind, 0)
      _ = address.withSocketAddress { (number == 0 ? bind : connect)(descriptor, $0, $1) }
      if number == 0 { listen(descriptor, 0) }
      return descriptor
    }
    defer { for descriptor in sockets { close(descriptor) } }
    // Then
    #expect(throws: RedisError("no connection in time".utf8)) {
      try connection("unix:\(folder.path)/redis")
    }
  }

  @Test func `a reply that is there when its time is over is taken`() throws {
    // Given a request whose reply has come while this machine was busy
    let server = try HostileRedis(.bytes("$2\r\nok\r\n"))
    let connection = try connection(server.address)
    func events() -> Poll.Events {
      var poll = Poll([connection.interest])
      poll.wait(milliseconds: 10_000)
      return poll.events(of: 0)
    }
    while !connection.isReady { try connection.advance(events(), now: .now) }
    let outcome = Lock<RedisRequest.Outcome?>(nil)
    var bytes: [UInt8] = []
    RedisCommand("GET", "k").append(to: &bytes)
    connection.send(
      RedisRequest(bytes: bytes, count: 1, time: .seconds(1)) { value in
        outcome.withLock { $0 = value }
      })
    // When its time is over before the socket is read
    try connection.advance(events(), now: .now + .seconds(60))
    // Then
    #expect(outcome.withLock { $0 } == .success([.bytes([111, 107])]))
  }
}
