// ListenerTests: servers on several addresses, on unix sockets, and on sockets that they inherit.

import Core
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ListenerTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path + "/p.sock" }

  init() throws { folder = try TemporaryFolder() }

  private func port(_ address: ListenAddress) throws -> Int { try #require(address.port) }

  /// Runs a server whose log is a file, and returns the log.
  private func logged(
    configure: (inout ServerConfiguration) -> Void, body: (Server) throws -> Void
  ) async throws -> String {
    let file = try LogFile()
    try await withServer(TestProvider(), log: file.log(), configure: configure) { try body($0) }
    return try file.lines().joined(separator: "\n")
  }

  @Test func `one server listens on several addresses and paths, and lists them`() async throws {
    let log = try await logged(configure: {
      $0.addresses = [
        .host("127.0.0.1"), .address(.unix(path: path)), .address(.network(host: "::1", port: 0)),
        .address(.network(host: "127.0.0.2", port: 0)),
      ]
    }) { server in
      // Then
      #expect(server.addresses.count == 4 && server.port == server.addresses[0].port)
      var status = stat()
      #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o660)
      let clients = [
        try HTTPClient(port: server.port), try HTTPClient(unix: path),
        try HTTPClient(port: try port(server.addresses[3]), host: 2),
      ]
      for client in clients {
        let stats = try client.get("/stats")
        #expect(stats.status == 200)
        for address in server.addresses { #expect(stats.text.contains("\"\(address)\"")) }
      }
    }
    #expect(log.contains("\"address\":\"127.0.0.1:"))
    #expect(log.contains(" unix:\(path) [::1]:"))
    #expect(access(path, F_OK) != 0)
  }

  @Test func `all IPv4 and all IPv6 addresses share a port`() async throws {
    // Given a port that is free for both, and on 127.0.0.1 for no other test
    let place = try Origin()
    defer { withExtendedLifetime(place) {} }
    place.stop()
    let free = place.port
    try await withServer {
      $0.addresses = [.host("0.0.0.0"), .host("::")]
      $0.port = free
    } body: { server in
      #expect(server.addresses.map(\.port) == [free, free] as [Int?])
      let answer = try HTTPClient(port: free).get("/livez")
      #expect(answer.status == 200)
    }
  }

  @Test func `a server listens on all of its addresses or on none`() throws {
    // Given
    let other = try ListeningSocket(on: .network(host: "127.0.0.1", port: 0))
    defer { other.close() }
    var configuration = ServerConfiguration()
    configuration.addresses = [.address(.unix(path: path)), .address(other.address)]
    let server = Server(
      configuration: configuration, provider: TestProvider(),
      services: AdminServices(TestServices()), stats: makeStats, log: Log(level: .error))
    // Then
    #expect(throws: ServerError.addressInUse(endpoint: "\(other.address)")) { try server.start() }
    #expect(server.addresses.isEmpty && access(path, F_OK) != 0)
  }

  @Test func `operators have a unix socket of their own`() async throws {
    try await withServer {
      $0.operatorAddress = .unix(path: path)
      $0.operatorTokens = ["0123456789abcdef"]
    } body: { server in
      let operators = try HTTPClient(unix: path)
      let token: KeyValuePairs = ["Authorization": "Bearer 0123456789abcdef"]
      #expect(try operators.get("/admin/failed", headers: token).status == 200)
      #expect(try HTTPClient(port: server.port).get("/admin/failed", headers: token).status == 404)
      #expect(server.operatorPort == 0)
    }
  }

  @Test(arguments: [(false, "unix:"), (true, "203.0.113.5")])
  func `peers of a unix socket name their clients only if they are trusted`(
    isTrusted: Bool, client: String
  ) async throws {
    let log = try await logged(configure: {
      $0.addresses = [.address(.unix(path: path))]
      $0.trustedProxies.includesUnixSockets = isTrusted
    }) { server in
      let peer = try HTTPClient(unix: path)
      #expect(
        try peer.get(imageTarget, headers: ["X-Forwarded-For": "203.0.113.5"]).status == 404)
      // And a request that the framing refuses
      try peer.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n")
      #expect(try peer.readAnswer().status == 400)
      try peer.waitForClose()
    }
    let lines = log.split(separator: "\n")
    #expect(
      lines.contains { $0.contains("\"request\"") && $0.contains("\"client\":\"\(client)\"") })
    #expect(lines.contains { $0.contains("refused") && $0.contains("\"client\":\"unix:\"") })
  }

  @Test func `a trusted peer of a unix socket sends a PROXY header`() async throws {
    let log = try await logged(configure: {
      $0.addresses = [.address(.unix(path: path))]
      $0.trustedProxies.includesUnixSockets = true
      $0.proxyProtocol = true
    }) { server in
      let peer = try HTTPClient(unix: path)
      try peer.send("PROXY TCP4 198.51.100.9 10.0.0.1 1 2\r\n")
      #expect(try peer.get(imageTarget).status == 404)
    }
    #expect(log.contains("\"client\":\"198.51.100.9\""))
  }

  @Test func `large bodies, HEAD, and a client that leaves work over a unix socket`() async throws {
    let body = [UInt8](repeating: 9, count: 3 << 20)
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key, body: body))
    try await withServer(
      provider, configure: { $0.addresses = [.address(.unix(path: path))] }
    ) { server in
      let client = try HTTPClient(unix: path)
      #expect(try client.get(imageTarget).body == body)
      #expect(try client.head(imageTarget)["Content-Length"] == "\(body.count)")
      #expect(try client.get(imageTarget, headers: ["If-None-Match": "\"0123abcd\""]).status == 304)
      let leaving = try HTTPClient(unix: path)
      try leaving.send(HTTPClient.text("GET", target: imageTarget))
      leaving.close()
      #expect(try client.get("/livez").status == 200)
      try await eventually { server.figures.active == 0 }
    }
  }
}
