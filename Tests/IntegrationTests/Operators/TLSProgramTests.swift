// TLSProgramTests: the program with a certificate: commands, a new certificate, and mistakes in the configuration.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct TLSProgramTests {
  private let files: CertificateFiles
  private let folder: TemporaryFolder
  private var options: [String] {
    ["--server.tls_certificate", files.certificate, "--server.tls_key", files.key]
  }

  init() throws {
    files = try CertificateFiles(TestCertificate("one"))
    folder = try TemporaryFolder()
  }

  private func run(_ arguments: [String]) throws -> (status: CInt, log: String) {
    let process = try PictorProcess(in: folder, arguments, isServer: false)
    let status = try process.end(0)
    return (status, process.log)
  }

  @Test func `SIGHUP serves a new certificate, and commands speak TLS`() throws {
    let token = "a-token-of-sixteen"
    let pictor = try PictorProcess(in: folder, options + ["--admin.tokens", token])
    let old = try HTTPClient.encrypted(port: pictor.port)
    #expect(try old.get("/livez").status == 200)
    // When
    try files.write(TestCertificate("two"))
    kill(pictor.id, SIGHUP)
    // Then
    try blockUntil("the certificate is reloaded") {
      pictor.log.contains("the certificate was reloaded")
    }
    let new = try HTTPClient.encrypted(port: pictor.port)
    #expect(old.serverName == "CN=one" && new.serverName == "CN=two")
    #expect(try old.get("/livez").status == 200)
    let metrics = try new.get("/metrics").text
    #expect(metrics.contains("pictor_tls_handshakes_total{result=\"full\"} 2\n"))
    #expect(metrics.contains("\npictor_tls_certificate_expiry_timestamp_seconds 1"))
    // When
    let place = ["--server.port", "\(pictor.port)"] + options
    // Then
    #expect(try run(["healthcheck"] + place).status == 0)
    let purge = try run(
      ["purge"] + place + ["--admin.tokens", token, "http://example.com/a.jpg"])
    #expect(purge.status == 0, "\(purge.log)")
    let plain = try run(["healthcheck", "--server.port", "\(pictor.port)"])
    #expect(plain.status == 1)
    #expect(
      plain.log.contains("speaks TLS: give the command the server's configuration"), "\(plain.log)")
    // When
    try files.folder.write("key.pem", bytes: Array(TestCertificate("three").key.utf8))
    kill(pictor.id, SIGHUP)
    // Then
    try blockUntil("the mismatch is reported") {
      pictor.log.contains("the certificate was not reloaded; the previous one stays")
    }
    #expect(try HTTPClient.encrypted(port: pictor.port).serverName == "CN=two")
    #expect(try pictor.end() == 0)
  }

  @Test func `the check of the configuration names the wrong file`() throws {
    #expect(try run(["--check-config"] + options).status == 0)
    // A missing key
    let half = try run(["--check-config", "--server.tls_certificate", files.certificate])
    #expect(half.status == 1 && half.log.contains("server.tls_key: it is empty"))
    // The PROXY header, which is not read before TLS
    let proxied = try run(
      ["--check-config", "--server.proxy_protocol", "true"] + options
        + ["--server.trusted_proxies", "127.0.0.1"])
    #expect(proxied.status == 1)
    #expect(proxied.log.contains("server.proxy_protocol: it cannot be used"))
    // An expired certificate is served, with a warning.
    try files.write(TestCertificate("old", validFor: -60))
    let expired = try run(["--check-config"] + options)
    #expect(expired.status == 0 && expired.log.contains("has expired"))
    // Files of different pairs
    try files.folder.write("key.pem", bytes: Array(TestCertificate("two").key.utf8))
    let mixed = try run(["--check-config"] + options)
    #expect(mixed.status == 1 && mixed.log.contains("server.tls_key: the key in"))
    unlink(files.certificate)
    let missing = try run(["--check-config"] + options)
    #expect(missing.status == 1 && missing.log.contains("No such file"))
    #expect(missing.log.contains("server.tls_certificate: '\(files.certificate)'"))
  }
}
