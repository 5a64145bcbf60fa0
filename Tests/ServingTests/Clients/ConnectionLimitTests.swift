// ConnectionLimitTests: clients that hold connections: who yields, is refused, is served.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ConnectionLimitTests {
  private func isServed(_ client: HTTPClient) -> Bool {
    (try? client.get("/stats"))?.status == 200
  }

  @Test func `quiet clients on all connections do not keep others out`() async throws {
    try await withServer {
      $0.connectionLimit = 16
      $0.headerTimeout = .seconds(3_600)
      $0.idleTimeout = .seconds(3_600)
    } body: { server in
      // Given more quiet clients than there are connections
      let crowd = try (0..<48).map { _ in try HTTPClient(port: server.port) }
      // Then each new client is served
      for _ in 0..<20 { #expect(isServed(try HTTPClient(port: server.port))) }
      try await eventually { server.figures.connections <= 16 }
      #expect(server.figures.connectionsYielded >= 32)
      withExtendedLifetime(crowd) {}
    }
  }

  @Test func `the connection that has been idle longest yields, and busy ones do not`()
    async throws
  {
    let gate = Gate()
    let provider = TestProvider { request throws(ImageError) in
      await gate.pass()
      return makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
    }
    try await withServer(provider) {
      $0.connectionLimit = 4
      $0.headerTimeout = .seconds(3_600)
      $0.idleTimeout = .seconds(3_600)
    } body: { server in
      // Given a request that waits, a body that does not arrive, and two idle connections
      let waiting = try server.ask()
      try await eventually { provider.asked.value == 1 }
      let sending = try HTTPClient(port: server.port)
      try sending.occupy()
      let older = try HTTPClient(port: server.port)
      #expect(isServed(older))
      try await eventually("only the first request is in progress") { server.figures.active == 1 }
      // The clock that orders connections ticks every few milliseconds.
      let tick = Clock.coarseMilliseconds()
      try await eventually { Clock.coarseMilliseconds() > tick }
      let newer = try HTTPClient(port: server.port)
      #expect(isServed(newer))
      // When
      let more = try HTTPClient(port: server.port)
      #expect(isServed(more))
      // Then
      try older.waitForClose()
      #expect(isServed(newer))
      try await eventually { server.figures.connections == 4 }
      #expect(server.figures.connectionsYielded == 1)
      try sending.send("123456789")
      #expect(try sending.readAnswer().status == 405)
      gate.open()
      #expect(try waiting.readAnswer().body == [1, 2, 3])
    }
  }

  @Test func `a header that does not end yields, too`() async throws {
    try await withServer {
      $0.connectionLimit = 4
      $0.headerTimeout = .seconds(3_600)
    } body: { server in
      let slow = try (0..<4).map { _ in
        let client = try HTTPClient(port: server.port, timeout: 1)
        try client.send("GET /stats HTTP/1.1\r\nHo")
        return client
      }
      // When clients connect and stay, then the slow ones are closed. A connection with unread
      // bytes is skipped, so a busy server may need more than four.
      var others: [HTTPClient] = []
      for client in slow {
        try await eventually("a slow one is closed") {
          let other = try HTTPClient(port: server.port)
          others.append(other)
          #expect(isServed(other))
          return (try? client.waitForClose()) != nil
        }
      }
    }
  }

  @Test func `a client with its share closes its own idle connections, and no other client's`()
    async throws
  {
    try await withServer {
      $0.connectionLimit = 16
      $0.connectionsPerClient = 3
      $0.countsLoopback = true
      $0.headerTimeout = .seconds(3_600)
      $0.idleTimeout = .seconds(3_600)
    } body: { server in
      // Given another client's connection, which is idle longest
      let other = try HTTPClient(port: server.port, source: 2)
      #expect(isServed(other))
      // When one client opens many
      let crowd = try (0..<30).map { _ in
        let client = try HTTPClient(port: server.port, source: 3)
        #expect(isServed(client))
        return client
      }
      // Then it has three
      try await eventually { server.figures.connections == 4 }
      #expect(server.figures.connectionsYielded == 27)
      #expect(isServed(other))
      // The latest three, as far as the clock tells them apart.
      #expect(crowd.count(where: isServed) == 3 && crowd.last.map(isServed) == true)
    }
  }

  @Test func `a client that uses its whole share gets no further connection until it uses less`()
    async throws
  {
    try await withServer {
      $0.connectionLimit = 16
      $0.connectionsPerClient = 2
      $0.countsLoopback = true
      $0.headerTimeout = .seconds(3_600)
    } body: { server in
      // Given
      let busy = try (0..<2).map { _ in
        let client = try HTTPClient(port: server.port, source: 2)
        try client.occupy()
        return client
      }
      // When
      let more = try HTTPClient(port: server.port, source: 2)
      // Then it is told why and closed, and another client is served
      let refused = try more.readAnswer()
      #expect(refused.status == 429 && refused.text.contains("\"code\":\"rate_limited\""))
      #expect(refused.text.contains("\"request_id\":\"\(refused["X-Request-ID"] ?? "")\""))
      #expect(refused["Retry-After"] == "1" && refused["Connection"] == "close")
      #expect(refused["Cache-Control"] == "no-store")
      try more.waitForClose()
      #expect(server.figures.connectionsRefused == 1)
      #expect(server.figures.byStatus["429"] == 1)
      #expect(isServed(try HTTPClient(port: server.port, source: 3)))
      // When a connection is free again
      busy[0].close()
      try await eventually {
        isServed(try HTTPClient(port: server.port, source: 2))
      }
    }
  }

  @Test func `a flood of refused connections is closed, and others are served meanwhile`()
    async throws
  {
    try await withServer {
      $0.connectionLimit = 16
      $0.connectionsPerClient = 1
      $0.countsLoopback = true
      $0.headerTimeout = .seconds(3_600)
    } body: { server in
      let busy = try HTTPClient(port: server.port, source: 2)
      try busy.occupy()
      // When more connections are refused than get a response, and none reads it
      let start = Clock.coarseMilliseconds()
      let flood = try (0..<600).map { _ in try HTTPClient(port: server.port, source: 2) }
      // Then
      #expect(isServed(try HTTPClient(port: server.port, source: 3)))
      try await eventually { server.figures.connectionsRefused == 600 }
      #expect(server.figures.connections <= 2)
      for client in flood { try client.waitForClose() }
      let answered = server.figures.byStatus["429"].whole
      let seconds = Double(Clock.coarseMilliseconds() - start) / 1_000
      let rule = ConnectionRefusal.rule
      #expect(answered >= Int(rule.burst), "\(answered)")
      #expect(Double(answered) <= rule.burst + seconds * rule.rate + 1, "\(answered)")
    }
  }

  @Test(arguments: [("127.0.0.0/8", true), ("10.0.0.0/8", false)])
  func `a trusted proxy has no share`(network: String, isTrusted: Bool) async throws {
    let proxy = try #require(CIDR(network))
    try await withServer {
      $0.connectionsPerClient = 2
      $0.countsLoopback = true
      $0.trustedProxies.networks = [proxy]
    } body: { server in
      let clients = try (0..<10).map { _ in try HTTPClient(port: server.port) }
      for client in clients { #expect(isServed(client) || !isTrusted) }
      #expect(clients.count(where: isServed) == (isTrusted ? 10 : 2))
    }
  }

  @Test func `no share without a key is a quarter of all, and operators have none`() {
    var configuration = ServerConfiguration()
    #expect(configuration.connectionLimits(for: .everyone).perClient == 1_024)
    configuration.connectionLimit = 100
    #expect(configuration.connectionLimits(for: .clients).perClient == 25)
    configuration.connectionsPerClient = 7
    #expect(configuration.connectionLimits(for: .clients).perClient == 7)
    #expect(configuration.connectionLimits(for: .operators).perClient == .max)
  }

  @Test func `clients that left are not remembered`() async throws {
    let table = ConnectionTable(limits: ConnectionLimits(total: 8, perClient: 2))
    for number in 0..<100 {
      let address = IPAddress.v4(0xc633_6400 + UInt32(number))
      #expect(table.admit(address) == .admitted)
      if number % 2 == 0 {
        table.cancel(address)
      } else {
        table.remove(table.open(descriptor: -1, address: address, at: number, deadline: .max))
      }
    }
    #expect(table.clientCount == 0)
    // And every place is free
    for number in 0..<8 { #expect(table.admit(.v4(UInt32(number))) == .admitted) }
    #expect(table.admit(.v4(9)) == .full)
  }

  @Test func `who has a share may change while connections are open`() throws {
    let network = try #require(CIDR("198.51.100.0/24"))
    let address = IPAddress.v4(0xc633_6401)
    var proxies = TrustedProxies()
    proxies.networks = [network]
    let table = ConnectionTable(
      limits: ConnectionLimits(total: 8, perClient: 2), clients: CountedClients(proxies: proxies))
    func trust(_ proxies: TrustedProxies) {
      table.set(
        ConnectionLimits(total: 8, perClient: 2), leastPace: nil,
        clients: CountedClients(proxies: proxies))
    }
    for _ in 0..<3 { #expect(table.admit(address) == .admitted) }
    let open = table.open(descriptor: -1, address: address, at: 0, deadline: .max)
    open.begin()
    trust(TrustedProxies())
    #expect(table.admit(address) == .refused)
    #expect(table.assign(open, to: .v4(9)))
    table.cancel(address)
    #expect(table.admit(address) == .admitted)
    trust(proxies)
    #expect(table.admit(address) == .admitted)
    for _ in 0..<3 { table.cancel(address) }
    table.remove(open)
    #expect(table.clientCount == 0)
  }

  @Test func `a later request's header has its time-out from its first byte`() async throws {
    try await withServer {
      $0.headerTimeout = .milliseconds(500)
      $0.idleTimeout = .seconds(3_600)
    } body: { server in
      // Given a connection that has had a response, which may take several attempts.
      var served: HTTPClient?
      try await eventually {
        served = try HTTPClient(port: server.port, timeout: 30)
        return served.map(isServed) == true
      }
      let client = try #require(served)
      // When the next request's head does not end
      try client.send("GET /stats HTTP/1.1\r\nHost: t\r\n")
      // Then it is closed, long before the idle time-out
      try client.waitForClose()
    }
  }

  @Test func `every late connection is found in pieces, whichever are closed before`() {
    var random = SeededGenerator(seed: 35)
    let table = ConnectionTable()
    let all = (0..<5 * ConnectionTable.lookedAtOnce).map { number in
      table.open(descriptor: -1, address: nil, at: 0, deadline: number % 3 == 0 ? 1_000 : 10)
    }
    let closed = Set((0..<150).map { _ in Int.random(in: all.indices, using: &random) })
    for place in closed { table.remove(all[place]) }
    table.closeLate(20)
    for (place, connection) in all.enumerated() where !closed.contains(place) {
      #expect(connection.deadline == (place % 3 == 0 ? 1_000 : .max), "\(place)")
    }
  }
}
