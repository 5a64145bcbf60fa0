// TLSEndTests: connections with TLS that end, in order or not.

import CGnuTLS
import Glibc
import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct TLSEndTests {
  private func withTLS(_ body: (Server) async throws -> Void) async throws {
    let certificates = try CertificateFiles(TestCertificate("one")).load()
    try await withServer(TestProvider(), configure: { $0.certificates = certificates }) {
      try await body($0)
    }
  }

  @Test(arguments: [1, 2, 40])
  func `requests in front of an end without close_notify have their answers`(
    count: Int
  ) async throws {
    try await withTLS { server in
      let client = try HTTPClient.encrypted(port: server.port)
      // When
      try client.inOneSegment {
        try client.send(String(repeating: HTTPClient.text("GET", target: "/x"), count: count))
        client.finishSending()
      }
      // Then
      for _ in 0..<count { #expect(try client.readAnswer().status == 404) }
      #expect(try client.readToEnd().isEmpty)
    }
  }

  @Test func `half a request in front of such an end has no answer`() async throws {
    try await withTLS { server in
      let client = try HTTPClient.encrypted(port: server.port)
      try client.inOneSegment {
        try client.send("GET /livez HTTP/1.1\r\nHost: t\r\n")
        client.finishSending()
      }
      #expect(try client.readToEnd().isEmpty)
      #expect(server.figures.total == 0)
    }
  }

  @Test(arguments: ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"])
  func `a damaged record ends the connection with an alert`(priorities: String) async throws {
    try await withTLS { server in
      let client = try HTTPClient.encrypted(port: server.port, priorities: priorities)
      #expect(try client.get("/livez").status == 200)
      // When
      let length: [UInt8] = [0x17, 0x03, 0x03, 0x00, 0x40]
      try client.sendPlain(length + [UInt8](repeating: 7, count: 64))
      // Then
      try client.waitForClose()
      #expect(client.tls?.alert == Int(GNUTLS_A_BAD_RECORD_MAC.rawValue))
      #expect(try HTTPClient.encrypted(port: server.port).get("/livez").status == 200)
    }
  }
}
