// DownloaderTLSTests: tests of TLS and HTTP/2, with nginx and a test certificate.

import Downloading
import Glibc
import Model
import Platform
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderTLSTests {
  private let image = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }

  @Test(arguments: [false, true])
  func `concurrent loads from a trusted origin share one HTTP/2 connection, also those of one rule`(
    hasRule: Bool
  ) async throws {
    // Given
    let nginx = try await Nginx(files: ["a.jpg": image])
    let rules = hasRule ? [HostRule(host: try #require(HostPattern("localhost")))] : []
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.hostRules = rules
      $0.limitPerHost = 20
    }
    // When: twenty concurrent loads, without an open connection for the first one
    let loads = try await withThrowingTaskGroup(of: Download.self) { group in
      for number in 0..<20 {
        group.addTask { try await downloader.load(nginx.url("/a.jpg?\(number)")) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // Then
    for load in loads { #expect(load.file.bytes == image) }
    #expect(loads.count { $0.timings.tls != nil } == 1)
    #expect(loads.contains { $0.origin.contentType == "image/jpeg" && $0.origin.etag != nil })
    let answers = try await nginx.accessLog(of: 20)
    // Each line is the connection's number and the protocol.
    #expect(Set(answers).count == 1)
    #expect(answers.allSatisfy { $0.hasSuffix(" HTTP/2.0") })
  }

  @Test func `with little memory left HTTP/1.1 is used, and a body over HTTP/2 does not wait`()
    async throws
  {
    // Given memory for a body and a third
    let nginx = try await Nginx(files: ["a.jpg": image])
    let memory = ByteBudget(limit: 400_000)
    var configuration = DownloaderConfiguration()
    configuration.allowedNetworks = [try #require(CIDR("127.0.0.0/8"))]
    configuration.caFile = nginx.certificate
    configuration.timeout = .seconds(60)
    let downloader = try Downloader(configuration: configuration, bodies: memory, log: .silent)
    // When less than half of it is in use
    var held = memory.lease(190_000)
    let failure = await downloader.failure(of: nginx.url("/a.jpg?1"))
    // Then HTTP/2 is used, and the body does not wait
    #expect(failure?.decidingKey == "download.maximum_bytes_in_flight")
    withExtendedLifetime(held) {}
    // When more of it is in use
    held = nil
    held = memory.lease(210_000)
    let load = Task { try await downloader.load(nginx.url("/a.jpg?2")) }
    try await eventually("it waits") { downloader.figures.waitingForMemory == 1 }
    withExtendedLifetime(held) {}
    held = nil
    // Then it waits, and HTTP/1.1 was used
    #expect(try await load.value.file.bytes == image)
    #expect(try await nginx.accessLog(of: 2).last?.hasSuffix(" HTTP/1.1") == true)
  }

  @Test func `a connection that was opened without verification serves no other rule`() async throws
  {
    // Given an unverified connection of one rule, and a verified one of another, to one TLS server
    let nginx = try await Nginx(files: ["a.jpg": image])
    var unverified = HostRule(host: try #require(HostPattern("127.0.0.1")))
    unverified.allowsInvalidCertificates = true
    var secret = HostRule(host: try #require(HostPattern("localhost")))
    secret.secretHeaders = [try #require(HeaderField(bearer: "s3cret"))]
    secret.credentialOrigins = [
      try #require(HostRule.CredentialOrigin("https:\(nginx.port)"))
    ]
    let rules = [unverified, secret]
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.hostRules = rules
    }
    // When both load, in turn
    for number in 0..<2 {
      for host in ["127.0.0.1", "localhost", "a.localhost"]
      where number == 0 || host != "a.localhost" {
        let url = nginx.url("/a.jpg?\(number)", host: host)
        guard host != "a.localhost" else {
          // No rule: the certificate is for another name.
          #expect(await downloader.failure(of: url)?.code == "source_tls")
          continue
        }
        #expect(try await downloader.load(url).file.bytes == image)
      }
    }
    // Then each rule has one connection
    let connections = try await nginx.accessLog(of: 4).map { $0.prefix { $0 != " " } }
    #expect(connections[0] == connections[2] && connections[1] == connections[3])
    #expect(connections[0] != connections[1])
  }

  @Test func `an untrusted certificate is refused`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let failure = try await makeDownloader().failure(of: nginx.url("/a.jpg"))
    #expect(failure?.code == "source_tls", "\(String(describing: failure))")
    #expect(failure?.logDetail?.isEmpty == false)
  }

  @Test func `a certificate for another name is refused`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader { $0.caFile = nginx.certificate }
    let failure = await downloader.failure(of: nginx.url("/a.jpg", host: "127.0.0.1"))
    #expect(failure?.code == "source_tls", "\(String(describing: failure))")
  }

  @Test func `an origin that does not speak TLS is reported as source_tls`() async throws {
    let origin = try Origin()
    origin.serve("/a", bytes: image)
    let url = "https://127.0.0.1:\(origin.port)/a"
    #expect(try await makeDownloader().failure(of: url)?.code == "source_tls")
  }

  @Test func `a missing CA file trusts no certificate`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader { $0.caFile = "/nowhere/ca.pem" }
    #expect(await downloader.failure(of: nginx.url("/a.jpg"))?.code == "source_tls")
  }

  @Test func `TLS loads are limited and refused like others`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.maximumBytes = 1_000
    }
    let failure = await downloader.failure(of: nginx.url("/a.jpg"))
    #expect(failure == .sourceTooLarge(limit: 1_000))
    let missing = await downloader.failure(of: nginx.url("/none"))
    #expect(missing == .sourceNotFound(status: 404))
    let closed = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.allowedNetworks = []
    }
    #expect(await closed.failure(of: nginx.url("/a.jpg"))?.code == "forbidden_source")
  }
}

/// nginx on a loopback port, with HTTP/2 and a certificate for `localhost` that is its own
/// authority.
final class Nginx: Sendable {
  let port: Int
  private let folder: TemporaryFolder
  private let process: ChildProcess

  var certificate: String { folder.path + "/certificate.pem" }

  init(files: [String: [UInt8]]) async throws {
    let folder = try TemporaryFolder()
    try ChildProcess.run(
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
      "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
      "-keyout", folder.path + "/key.pem", "-out", folder.path + "/certificate.pem")
    for (name, bytes) in files { try folder.write(name, bytes: bytes) }
    // A port that was just free. If it is in use now, another one is tried.
    for _ in 0..<10 {
      let port = try freePort()
      try folder.write(
        "nginx.conf", bytes: Array(Self.configuration(port: port, folder: folder.path).utf8))
      let process = try ChildProcess([
        "/usr/sbin/nginx", "-p", folder.path, "-e", folder.path + "/error.log", "-c",
        folder.path + "/nginx.conf",
      ])
      if await Self.isListening(on: port, process: process) {
        self.port = port
        self.folder = folder
        self.process = process
        return
      }
    }
    throw ChildProcess.Failure("nginx does not start")
  }

  deinit {
    // Not SIGTERM: a process started from one of Swift's threads inherits its blocked signals.
    process.kill()
  }

  func url(_ path: String, host: String = "localhost") -> String {
    "https://\(host):\(port)\(path)"
  }

  /// Returns the log of this many requests, once nginx has written it: it does so after each response.
  func accessLog(of count: Int) async throws -> [String] {
    try await eventually("nginx logs \(count) requests") { try accessLog().count >= count }
    let lines = try accessLog()
    try #require(lines.count == count)
    return lines
  }

  private func accessLog() throws -> [String] {
    let descriptor = open(folder.path + "/access.log", O_RDONLY)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    var text = [UInt8](repeating: 0, count: 1 << 16)
    let count = try #require(Optional(read(descriptor, &text, text.count)).flatMap { max($0, 0) })
    return String(decoding: text[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private static func configuration(port: Int, folder: String) -> String {
    """
    daemon off; master_process off; pid \(folder)/nginx.pid; error_log \(folder)/error.log;
    events { worker_connections 256; }
    http {
      types { image/jpeg jpg; }
      log_format short '$connection $server_protocol';
      access_log \(folder)/access.log short;
      client_body_temp_path \(folder)/t1; proxy_temp_path \(folder)/t2;
      fastcgi_temp_path \(folder)/t3; uwsgi_temp_path \(folder)/t4; scgi_temp_path \(folder)/t5;
      server {
        listen 127.0.0.1:\(port) ssl http2;
        listen [::1]:\(port) ssl http2;
        ssl_certificate \(folder)/certificate.pem;
        ssl_certificate_key \(folder)/key.pem;
        root \(folder);
      }
    }

    """
  }

  /// Whether nginx answers before it ends or ten seconds pass.
  private static func isListening(on port: Int, process: ChildProcess) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < deadline {
      if canConnect(port) { return waitpid(process.id, nil, WNOHANG) == 0 }
      guard waitpid(process.id, nil, WNOHANG) == 0 else { return false }
      try? await Task.sleep(for: .milliseconds(5))
    }
    process.kill()
    return false
  }

  private static func canConnect(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}

/// A free loopback port.
private func freePort() throws -> Int {
  let origin = try Origin(answers: false)
  defer { origin.stop() }
  return origin.port
}
