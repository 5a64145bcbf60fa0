// TLSTests: requests, handshakes and new certificates over TLS.

import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Serving

extension CertificateFiles {
  func load() throws -> TLSCertificates {
    try TLSCertificates(certificate: certificate, key: key)
  }
}

@Suite(.onOwnThreads) struct TLSTests {
  private let log = Log(level: .error)
  private let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }

  private func withTLS(
    _ provider: any ImageProvider, headerTimeout: Duration = .seconds(10),
    body: (Server, TLSCertificates, CertificateFiles) async throws -> Void
  ) async throws {
    let files = try CertificateFiles(TestCertificate("one"))
    let certificates = try files.load()
    try await withServer(
      provider,
      configure: {
        $0.certificates = certificates
        $0.headerTimeout = headerTimeout
      }
    ) { try await body($0, certificates, files) }
  }

  @Test(arguments: ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"])
  func `hits, misses, errors and 304 are those of plain HTTP`(priorities: String) async throws {
    // Given
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withTLS(provider) { server, _, _ in
      let client = try HTTPClient.encrypted(port: server.port, priorities: priorities)
      for _ in 0..<3 {
        // Then
        let hit = try client.get(imageTarget)
        #expect(hit.status == 200 && hit.body == Array(repeating: 7, count: 18_000))
        let head = try client.head(imageTarget)
        #expect(head["Content-Length"] == "18000" && head.body.isEmpty)
        let etag = try #require(hit["ETag"])
        #expect(try client.get(imageTarget, headers: ["If-None-Match": etag]).status == 304)
      }
      #expect(try client.get(imageTarget + "&w=3").status == 404)
      #expect(try client.get("/nowhere").status == 404)
      // Two requests in one record
      let two = HTTPClient.text("GET", target: imageTarget)
      try client.send(two + two)
      #expect(try client.readAnswer().status == 200)
      #expect(try client.readAnswer().status == 200)
      try client.send("GET /nowhere HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
      #expect(try client.readAnswer().status == 404)
      #expect(try client.readToEnd().isEmpty)
    }
  }

  @Test func `large bodies in memory and in files arrive whole at slow readers`() async throws {
    // Given
    let folder = try TemporaryFolder()
    try folder.write("large", bytes: large)
    let path = folder.path + "/large"
    let count = large.count
    let provider = TestProvider { request throws(ImageError) in
      let region = FileRegion(owning: open(path, O_RDONLY | O_CLOEXEC), offset: 0, count: count)
      return ImageDelivery(
        variant: Variant(key: request.key, info: makeInfo(), body: .file(region)),
        cacheStatus: .hit(.disk), timings: Timings())
    }
    provider.keep(makeVariant(try makeRequest().key, body: large))
    try await withTLS(provider) { server, _, _ in
      let client = try HTTPClient.encrypted(port: server.port, receiveBuffer: 8_192)
      // Then
      #expect(try client.get(imageTarget).body == large)
      #expect(try client.get(imageTarget + "&w=9").body == large)
      #expect(try client.get(imageTarget).body == large)
    }
  }

  @Test func `a new certificate is served while requests run, and a broken one is not`()
    async throws
  {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withTLS(provider) { server, certificates, files in
      let old = try HTTPClient.encrypted(port: server.port)
      #expect(old.serverName == "CN=one")
      let port = server.port
      try await withThrowingTaskGroup(of: Void.self) { group in
        // When
        for _ in 0..<2 {
          group.addTask {
            for _ in 0..<30 {
              let client = try HTTPClient.encrypted(port: port)
              #expect(try client.get(imageTarget).status == 200)
            }
          }
        }
        for number in 0..<20 {
          try files.write(TestCertificate("new\(number)"))
          certificates.reload(log: log)
        }
        try await group.waitForAll()
      }
      // Then
      #expect(try HTTPClient.encrypted(port: port).serverName == "CN=new19")
      #expect(try old.get(imageTarget).status == 200)
      // When
      try files.folder.write("key.pem", bytes: Array(TestCertificate("x").key.utf8))
      certificates.reload(log: log)
      certificates.reload(always: true, log: log)
      // Then
      #expect(try HTTPClient.encrypted(port: port).serverName == "CN=new19")
      try files.write(TestCertificate("last"))
      certificates.reload(log: log)
      #expect(try HTTPClient.encrypted(port: port).serverName == "CN=last")
    }
  }

  @Test func `50 clients at once have their images, and later ones resume their sessions`()
    async throws
  {
    // Given
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key, body: Array(large.prefix(200_000))))
    let wanted = Array(large.prefix(200_000))
    try await withTLS(provider) { server, certificates, _ in
      // When
      let clients = try (0..<50).map { _ in try HTTPClient.encrypted(port: server.port) }
      for client in clients { try client.send(HTTPClient.text("GET", target: imageTarget)) }
      // Then
      for client in clients { #expect(try client.readAnswer().body == wanted) }
      #expect(server.tlsFigures?.handshakes == .init(full: 50, resumed: 0, failed: 0))
      // When
      for priorities in ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"] {
        let first = try HTTPClient.encrypted(port: server.port, priorities: priorities)
        #expect(try first.get(imageTarget).status == 200 && !first.isResumed)
        let second = try HTTPClient.encrypted(
          port: server.port, priorities: priorities, resuming: first.sessionData)
        // Then
        #expect(try second.get(imageTarget).body == wanted && second.isResumed)
      }
      #expect(server.tlsFigures?.handshakes == .init(full: 52, resumed: 2, failed: 0))
      // When
      let last = try HTTPClient.encrypted(port: server.port)
      #expect(try last.get(imageTarget).status == 200)
      certificates.reload(always: true, log: log)
      // Then
      let next = try HTTPClient.encrypted(port: server.port, resuming: last.sessionData)
      #expect(try next.get(imageTarget).body == wanted && !next.isResumed)
    }
  }

  @Test func `an image is streamed while it is received`() async throws {
    // Given
    let provider = ComingProvider()
    provider.body.add([1, 2, 3])
    try await withTLS(provider) { server, _, _ in
      let client = try HTTPClient.encrypted(port: server.port)
      // When
      try client.send(
        HTTPClient.text("GET", target: imageTarget + "&format=jpeg&progressive=1"))
      var begin: [UInt8] = []
      while !begin.suffix(5).elementsEqual("\r\n3\r\n".utf8) { begin += try client.read(1) }
      #expect(try client.read(5) == [1, 2, 3] + Array("\r\n".utf8))
      provider.body.add(large)
      provider.body.end(isWhole: true)
      // Then
      var received: [UInt8] = []
      while received.count < large.count { received += try client.read(1_000) }
      try await eventually { server.figures.bytesSent == large.count + 3 }
    }
  }

  @Test func `a request in one segment with an update of keys is answered`() async throws {
    try await withTLS(TestProvider()) { server, _, _ in
      // Given
      let socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
      defer { close(socket) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(UInt16(server.port).bigEndian)
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      let isConnected = withUnsafeBytes(of: &address) {
        $0.withMemoryRebound(to: sockaddr.self) {
          connect(socket, $0.baseAddress, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      try #require(isConnected)
      var wait = timeval(tv_sec: 20, tv_usec: 0)
      setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
      let client = try TLSClient(on: socket, priorities: "NORMAL:-VERS-ALL:+VERS-TLS1.3")
      // When
      var cork: CInt = 1
      setsockopt(socket, CInt(IPPROTO_TCP), TCP_CORK, &cork, socklen_t(MemoryLayout<CInt>.size))
      client.updateKey()
      let request = Array(HTTPClient.text("GET", target: "/nowhere").utf8)
      #expect(client.send(request, request.count) == request.count)
      cork = 0
      setsockopt(socket, CInt(IPPROTO_TCP), TCP_CORK, &cork, socklen_t(MemoryLayout<CInt>.size))
      // Then
      var answer = [UInt8](repeating: 0, count: 4_096)
      #expect(client.receive(&answer) > 12)
      #expect(answer.starts(with: "HTTP/1.1 404".utf8))
    }
  }

  @Test func `a handshake that stops is ended by the header's deadline`() async throws {
    try await withTLS(TestProvider(), headerTimeout: .milliseconds(200)) { server, _, _ in
      let silent = try HTTPClient(port: server.port)
      let slow = try HTTPClient(port: server.port)
      try slow.send(bytes: [0x16, 0x03, 0x01, 0x02, 0x00, 0x01])
      #expect(try slow.readToEnd().isEmpty)
      #expect(try silent.readToEnd().isEmpty)
      // The deadline is short for a handshake of a loaded machine, too.
      try await eventually("another client is served") {
        (try? HTTPClient.encrypted(port: server.port).get("/nowhere").status) == 404
      }
    }
  }

  @Test func `plain HTTP, garbage, old versions and h2 alone end, and are counted`() async throws {
    try await withTLS(TestProvider()) { server, _, _ in
      // When
      for bytes in [
        Array(HTTPClient.text("GET", target: "/stats").utf8), [UInt8](repeating: 0, count: 5_000),
        [0x16, 0x03, 0x01, 0xff, 0xff] + [UInt8](repeating: 7, count: 65_535),
        [0x16, 0x03, 0x01, 0x00, 0x04, 0x01, 0xff, 0xff, 0xff],
        [0x16], [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00],
        [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28], Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8),
      ] {
        let client = try HTTPClient(port: server.port)
        // The server may have ended the connection before it has all bytes.
        try? client.send(bytes: bytes)
        client.finishSending()
        try client.waitForClose()
      }
      for priorities in [
        "NORMAL:-VERS-ALL:+VERS-TLS1.1:%COMPAT",
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-FFDHE2048:+GROUP-FFDHE8192",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+DHE-RSA:+RSA",
      ] {
        #expect(throws: HTTPClientError.self) {
          _ = try HTTPClient.encrypted(port: server.port, priorities: priorities)
        }
      }
      let http2 = try HTTPClient(port: server.port)
      #expect(throws: HTTPClientError.self) { try http2.beginTLS(protocols: "h2") }
      // Then
      try await eventually { server.tlsFigures?.handshakes.failed == 12 }
      #expect(server.figures.total == 0)
      let client = try HTTPClient(port: server.port)
      try client.beginTLS(protocols: "http/1.1")
      #expect(try client.get("/nowhere").status == 404)
    }
  }

  @Test func `a wrong request is refused as without TLS, and nothing behind it is read`()
    async throws
  {
    let provider = TestProvider()
    try await withTLS(provider) { server, _, _ in
      for wrong in WrongRequest.all {
        let bytes = Array(wrong.text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
        for isSplit in [false, true] {
          // When
          let client = try HTTPClient.encrypted(port: server.port)
          let first = Array(HTTPClient.text("GET", target: "/nowhere").utf8)
          if isSplit {
            try client.send(bytes: first + bytes.prefix(bytes.count / 2))
            try? client.send(bytes: Array(bytes.dropFirst(bytes.count / 2)))
          } else {
            try client.send(bytes: first + bytes)
          }
          // Then
          #expect(try client.readAnswer().status == 404, "\(wrong.name)")
          let answer = try client.readAnswer()
          #expect(answer.status == wrong.status, "\(wrong.name)")
          #expect(answer["Connection"] == "close", "\(wrong.name)")
          #expect(try client.readToEnd().isEmpty, "\(wrong.name)")
        }
      }
    }
  }

  @Test func `unix sockets and the operators' listener stay plain`() async throws {
    let files = try CertificateFiles(TestCertificate("one"))
    let certificates = try files.load()
    let path = files.folder.path + "/socket"
    try await withServer(
      TestProvider(),
      configure: {
        $0.certificates = certificates
        $0.settings.addresses = [.host("127.0.0.1"), .address(.unix(path: path))]
        $0.operatorAddress = .network(host: "127.0.0.1", port: 0)
      }
    ) { server in
      #expect(try HTTPClient(unix: path).get("/livez").status == 200)
      let port = try #require(server.operatorPort)
      let stats = try HTTPClient(port: port).get("/stats")
      #expect(
        stats.text.contains("\"certificate_expiry\" : \(certificates.current.expiry)"))
      #expect(try HTTPClient.encrypted(port: server.port).get("/livez").status == 200)
    }
  }
}
