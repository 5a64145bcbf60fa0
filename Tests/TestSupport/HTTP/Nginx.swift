// Nginx: an nginx with TLS, which serves files or passes requests on.

import Glibc
import Testing

/// nginx on a loopback port, with HTTP/2 and a certificate for `localhost` that is its own
/// authority.
public final class Nginx: Sendable {
  /// The port, for IPv4 and IPv6.
  public let port: Int
  private let folder: TemporaryFolder
  private let process: ChildProcess

  /// The path of the certificate.
  public var certificate: String { folder.path + "/certificate.pem" }

  /// Starts nginx with files by name.
  ///
  /// - Parameter targets: the loopback ports that get requests, by the beginning of the path;
  ///   without any, files are served.
  public init(
    files: [String: [UInt8]] = [:], passing targets: [String: Int] = [:]
  ) async throws {
    let folder = try TemporaryFolder()
    try ChildProcess.run(
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
      "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
      "-keyout", folder.path + "/key.pem", "-out", folder.path + "/certificate.pem")
    for (name, bytes) in files { try folder.write(name, bytes: bytes) }
    // Its port is kept for nginx until it listens there. The one of [::1] may be another test's.
    for _ in 0..<10 {
      let place = try Origin(answers: false)
      defer { withExtendedLifetime(place) {} }
      place.stop()
      let port = place.port
      try folder.write(
        "nginx.conf",
        bytes: Array(Self.configuration(port: port, folder: folder.path, targets: targets).utf8))
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

  /// Returns the URL of a path.
  public func url(_ path: String, host: String = "localhost") -> String {
    "https://\(host):\(port)\(path)"
  }

  /// Returns the log of this many requests, once nginx has written it, after each response.
  public func accessLog(of count: Int) async throws -> [String] {
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

  private static func configuration(port: Int, folder: String, targets: [String: Int]) -> String {
    let content = targets.sorted { $0.key < $1.key }.map {
      "location \($0) { proxy_pass http://127.0.0.1:\($1); proxy_set_header Host $http_host; }"
    }.joined(separator: "\n")
    return """
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
          \(content.isEmpty ? "root \(folder);" : content)
        }
      }

      """
  }

  /// Whether nginx answers before it ends or ten seconds pass.
  private static func isListening(on port: Int, process: ChildProcess) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < deadline {
      if (try? HTTPClient(port: port)) != nil { return waitpid(process.id, nil, WNOHANG) == 0 }
      guard waitpid(process.id, nil, WNOHANG) == 0 else { return false }
      try? await Task.sleep(for: .milliseconds(5))
    }
    process.kill()
    return false
  }
}
