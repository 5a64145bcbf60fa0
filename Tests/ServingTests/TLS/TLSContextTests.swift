// TLSContextTests: what sessions share: algorithms, the key of tickets, the version of libmicrohttpd.

import Glibc
import Platform
import TestSupport
import Testing

@testable import Serving

@Suite struct TLSContextTests {
  @Test func `a session that cannot begin has no bytes, takes none, and is not plain`() throws {
    // Given
    let files = try CertificateFiles(TestCertificate("one"))
    let certificates = try files.load()
    // A key of tickets that no session can use
    let context = try TLSContext(
      certificates, ticketKey: TicketKey([1], for: certificates.current, at: .now))
    var pair: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0)
    defer { for descriptor in pair { close(descriptor) } }
    let request = Array(HTTPClient.text("GET", target: "/stats").utf8)
    #expect(write(pair[0], request, request.count) == request.count)
    // When
    let session = TLSSession(context, descriptor: pair[1])
    // Then
    var buffer = [UInt8](repeating: 0, count: 100)
    #expect(buffer.withUnsafeMutableBytes { session.receive($0) } == -1)
    #expect(errno == ECONNRESET)
    #expect(request.withUnsafeBytes { session.send($0) } == -1)
    #expect(errno == ECONNRESET)
    session.end()
    #expect(recv(pair[0], &buffer, buffer.count, CInt(MSG_DONTWAIT)) == -1)
  }

  @Test func `the key of tickets changes with the certificate and each day`() throws {
    // Given
    let files = try CertificateFiles(TestCertificate("one"))
    let one = try files.load().current
    let two = try files.load().current
    let start = ContinuousClock.now
    var key = try #require(TicketKey(for: one, at: start))
    // Then
    let first = key.bytes
    #expect(first.count >= 32 && Set(first).count > 8)
    key.renew(for: one, at: start + TicketKey.lifetime - .seconds(1))
    #expect(key.bytes == first)
    key.renew(for: one, at: start + TicketKey.lifetime)
    let second = key.bytes
    #expect(second != first)
    // The day begins again.
    key.renew(for: one, at: start + TicketKey.lifetime * 2 - .seconds(1))
    #expect(key.bytes == second)
    key.renew(for: two, at: start + TicketKey.lifetime * 2 - .seconds(1))
    #expect(key.bytes != second)
  }

  @Test(arguments: ["", "0.9.74", "0.9.76", "0.9.750", "1.0.2", "0.9"])
  func `another libmicrohttpd than the tested one is refused`(version: String) throws {
    let reason = try #require(TLSContext.reasonAgainst(libmicrohttpd: version))
    #expect(reason.contains("'\(version)'"))
    #expect(TLSContext.reasonAgainst(libmicrohttpd: TLSContext.testedLibmicrohttpd) == nil)
    // The program's own is checked by each context.
    _ = try TLSContext(CertificateFiles(TestCertificate("one")).load())
  }
}
