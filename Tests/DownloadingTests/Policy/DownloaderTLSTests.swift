// DownloaderTLSTests: tests of TLS and HTTP/2, with nginx and a test certificate.

import Downloading
import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderTLSTests {
  private let image = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }

  @Test func `a trusted origin is fetched from over one HTTP/2 connection`() async throws {
    // Given
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.limitPerHost = 20
    }
    // When: twenty at once, the first of them with no connection there
    let loads = try await withThrowingTaskGroup(of: Download.self) { group in
      for number in 0..<20 {
        group.addTask { try await downloader.load(nginx.url("/a.jpg?\(number)")) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // Then
    for load in loads { #expect(try load.file.bytes == image) }
    #expect(loads.count { $0.timings.tls != nil } == 1)
    #expect(loads.contains { $0.origin.contentType == "image/jpeg" && $0.origin.etag != nil })
    let answers = try nginx.accessLog()
    #expect(answers.count == 20)
    // Each line is the connection's number and the protocol.
    #expect(Set(answers).count == 1)
    #expect(answers.allSatisfy { $0.hasSuffix(" HTTP/2.0") })
  }

  @Test func `an origin whose certificate nobody vouches for is not trusted`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let failure = try await makeDownloader().failure(of: nginx.url("/a.jpg"))
    #expect(failure?.code == "source_tls", "\(String(describing: failure))")
    #expect(failure?.logDetail?.isEmpty == false)
  }

  @Test func `a certificate for another name is not trusted`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader { $0.caFile = nginx.certificate }
    let failure = await downloader.failure(of: nginx.url("/a.jpg", host: "127.0.0.1"))
    #expect(failure?.code == "source_tls", "\(String(describing: failure))")
  }

  @Test func `a server that does not speak TLS fails as TLS`() async throws {
    let origin = try Origin()
    origin.serve("/a", image)
    let url = "https://127.0.0.1:\(origin.port)/a"
    #expect(try await makeDownloader().failure(of: url)?.code == "source_tls")
  }

  @Test func `a file of authorities that is not there trusts nobody`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader { $0.caFile = "/nowhere/ca.pem" }
    #expect(await downloader.failure(of: nginx.url("/a.jpg"))?.code == "source_tls")
  }

  @Test func `TLS loads are cancelled, bounded and refused like others`() async throws {
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
  private let process: pid_t

  var certificate: String { folder.path + "/certificate.pem" }

  init(files: [String: [UInt8]]) async throws {
    let folder = try TemporaryFolder()
    try run(
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
      "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
      "-keyout", folder.path + "/key.pem", "-out", folder.path + "/certificate.pem")
    for (name, bytes) in files { try folder.write(name, bytes) }
    // A port that was free a moment ago. If it is taken now, another one is tried.
    for _ in 0..<10 {
      let port = try freePort()
      try folder.write("nginx.conf", Array(Self.configuration(port, folder.path).utf8))
      let process = try spawn([
        "/usr/sbin/nginx", "-p", folder.path, "-e", folder.path + "/error.log", "-c",
        folder.path + "/nginx.conf",
      ])
      if await Self.isListening(port, process) {
        (self.port, self.folder, self.process) = (port, folder, process)
        return
      }
    }
    throw CommandFailed(command: "nginx", status: 1)
  }

  deinit {
    // Not SIGTERM: a process started from one of Swift's threads inherits its blocked signals.
    kill(process, SIGKILL)
    waitpid(process, nil, 0)
  }

  func url(_ path: String, host: String = "localhost") -> String {
    "https://\(host):\(port)\(path)"
  }

  func accessLog() throws -> [String] {
    let descriptor = open(folder.path + "/access.log", O_RDONLY)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    var text = [UInt8](repeating: 0, count: 1 << 16)
    let count = try #require(Optional(read(descriptor, &text, text.count)).flatMap { max($0, 0) })
    return String(decoding: text[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private static func configuration(_ port: Int, _ folder: String) -> String {
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
  private static func isListening(_ port: Int, _ process: pid_t) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < deadline {
      if canConnect(port) { return waitpid(process, nil, WNOHANG) == 0 }
      guard waitpid(process, nil, WNOHANG) == 0 else { return false }
      try? await Task.sleep(for: .milliseconds(5))
    }
    kill(process, SIGKILL)
    waitpid(process, nil, 0)
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
