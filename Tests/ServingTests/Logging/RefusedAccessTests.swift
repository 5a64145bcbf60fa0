// RefusedAccessTests: bytes that are no valid request have an access log line.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RefusedAccessTests {
  /// Sends bytes to a server with an access log, and returns the lines of both logs.
  private func lines(
    _ format: AccessFormat, hasFile: Bool = true, sending bytes: [UInt8]
  ) async throws -> (log: [String], access: [String]) {
    let folder = try TemporaryFolder()
    let descriptor = open(folder.path + "/log", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    let main = try LogQueue(format: .text, descriptor: descriptor)
    var settings = LogSettings()
    settings.access.format = format
    settings.access.path = hasFile ? folder.path + "/access" : ""
    let plain = Log(level: .info, queue: main)
    let access = try AccessLog(settings, main: main, log: plain)
    let log = Log(level: .info, queue: main, access: access)
    try await withClient(log: log) { client in
      try client.send(bytes: bytes)
      let answer = try client.readAnswer()
      #expect(answer.status >= 400 && answer.body.count > 50)
    }
    access.stop(within: .seconds(10))
    main.stop(within: .seconds(10))
    func found(_ name: String) -> [String] {
      let text = try? String(contentsOf: URL(filePath: folder.path + "/" + name), encoding: .utf8)
      return (text ?? "").split(separator: "\n").map(String.init)
    }
    return (found("log").filter { $0.contains("refused") || $0.contains("\" 4") }, found("access"))
  }

  private static let smuggled = Array(
    "POST /a?sig=secret HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n".utf8)

  @Test func `a malformed request is a line of JSON`() async throws {
    let found = try await lines(.json, sending: Self.smuggled)
    #expect(found.access.count == 1 && found.log.count == 1)
    struct Line: Decodable {
      let message, method, target, error, client: String
      let status, bytes: Int
    }
    let line = try JSONDecoder().decode(Line.self, from: Data((found.access.first ?? "").utf8))
    #expect(line.message == "request refused" && line.method == "POST")
    #expect(line.target == "/a?sig=***" && line.status == 400 && line.client == "127.0.0.1")
    // The body, without the header.
    #expect(line.error == "malformed_request" && (50..<400).contains(line.bytes))
  }

  @Test func `a malformed request is a line of logfmt`() async throws {
    let found = try await lines(.logfmt, sending: Self.smuggled)
    #expect(found.access.count == 1 && found.log.count == 1)
    let line = try #require(found.access.first)
    #expect(line.contains(" message=\"request refused\" method=POST target="))
    #expect(line.contains(" status=400 bytes=") && line.contains(" error=malformed_request "))
  }

  @Test(arguments: [
    (smuggled, "\"POST /a?sig=*** HTTP/1.1\" 400 "),
    (Array("GET /a b HTTP/1.1\r\n\r\n".utf8), "\"GET /a -\" 400 "),
    (Array("GET /a HTTP/9.9\r\nHost: t\r\n\r\n".utf8), "\"GET /a HTTP/9.9\" 505 "),
    ([0x16, 3, 1, 2, 0, 1, 0x22, 0x20, 0x0a, 0xff], "\"- \\\\u{16}"),
    (Array("\" 200 5 \"x\r\n\r\n".utf8), "\"- \\\"\\x20200\\x205\\x20\\\"x -\" 400 "),
  ])
  func `a malformed request is a combined line`(bytes: [UInt8], part: String) async throws {
    let found = try await lines(.combined, sending: bytes)
    #expect(found.access.count == 1 && found.log.count == 1)
    let line = try #require(found.access.first)
    #expect(line.hasPrefix("127.0.0.1 - - [") && line.hasSuffix(" \"-\" \"-\""), "\(line)")
    #expect(line.contains("] " + part), "\(line)")
    #expect(!line.contains("secret"))
  }

  @Test func `without a file of its own, the code of the error is in the same stream once`()
    async throws
  {
    let json = try await lines(.json, hasFile: false, sending: Self.smuggled)
    #expect(json.log.count == 1 && json.log.first?.hasPrefix("{") == true, "\(json.log)")
    let combined = try await lines(.combined, hasFile: false, sending: Self.smuggled)
    #expect(combined.log.count == 2, "\(combined.log)")
    #expect(combined.log.count { $0.contains("error=malformed_request") } == 1)
  }
}
