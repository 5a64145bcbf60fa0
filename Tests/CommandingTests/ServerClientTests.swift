// ServerClientTests: requests to a test server, its answers, and what ends them early.

@testable import Core
import Glibc
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct ServerClientTests {
  private let server: Origin

  init() throws { server = try Origin() }

  private func client(token: String? = nil, port: Int? = nil) -> ServerClient {
    var settings = Configuration().server
    settings.addresses = [.host("127.0.0.1")]
    settings.port = port ?? server.port
    return ServerClient(settings, as: token.map { Operator(name: "token1", token: $0) })
  }

  @Test func `a request is sent unchanged`() throws {
    server.route("/a/../b", to: .ok([]))
    _ = try client(token: "0123456789abcdef").request(
      .delete, target: "/a/../b?x=%2F&y=a|b", seconds: 60)
    let request = try #require(server.received(at: "/a/../b").first)
    #expect(request.method == "DELETE" && request.target == "/a/../b?x=%2F&y=a|b")
    #expect(request.headers["host"] == "localhost")
    #expect(request.headers["authorization"] == "Bearer 0123456789abcdef")
    #expect(request.headers["expect"] == nil && request.headers["content-length"] == nil)
  }

  @Test(arguments: [0, 1, 500_000])
  func `a body is sent with its length and type`(count: Int) throws {
    server.route("/", to: .ok([1, 2]))
    let body = [UInt8](repeating: 0x61, count: count)
    let answer = try client().request(
      .post, target: "/", type: "application/jsonl", body: body, seconds: 60)
    #expect(answer.status == 200 && answer.body == [1, 2])
    let request = try #require(server.received(at: "/").first)
    #expect(request.headers["content-length"] == "\(count)" && request.headers["expect"] == nil)
    #expect(request.headers["content-type"] == "application/jsonl")
  }

  @Test func `a response longer than the limit is an error`() {
    server.route("/", to: .endlessBody)
    #expect(throws: ServerClient.Failure.self) {
      try client().request(.get, target: "/", seconds: 60)
    }
    server.route("/", to: .ok([UInt8](repeating: 0, count: 15 << 20)))
    #expect((try? client().request(.get, target: "/", seconds: 60))?.body.count == 15 << 20)
  }

  @Test func `a refusal sent before the body is read is returned`() throws {
    server.route("/", to: OriginReply(OriginReply.status(413, body: [7]).steps + [.close]))
    for _ in 0..<30 {
      let answer = try client().request(
        .post, target: "/", body: [UInt8](repeating: 0, count: 8 << 20), seconds: 60)
      #expect(answer.status == 413 && answer.body == [7])
    }
  }

  @Test func `a server that does not respond ends the request at the deadline`() throws {
    let deaf = try Origin(answers: false)
    #expect {
      try client(port: deaf.port).request(.get, target: "/", seconds: 1)
    } throws: {
      $0 as? ServerClient.Failure
        == .unanswered("no response from 127.0.0.1 port \(deaf.port) within 1 s")
    }
    #expect {
      try client(port: deaf.port).request(
        .post, target: "/", body: [UInt8](repeating: 0, count: 32 << 20), seconds: 1)
    } throws: {
      $0 as? ServerClient.Failure
        == .unsent("127.0.0.1 port \(deaf.port) did not accept the request within 1 s")
    }
  }

  @Test func `a connection reset after the request is reported`() throws {
    server.route("/", to: .resetBeforeHead)
    #expect {
      try client().request(.get, target: "/", seconds: 60)
    } throws: {
      $0 as? ServerClient.Failure
        == .unanswered("no response from 127.0.0.1 port \(server.port): \(errnoText(ECONNRESET))")
    }
  }

  @Test func `an interruption ends the wait at once, unless the request waits for its response`()
    async throws
  {
    let interruption = try Interruption()
    server.route("/") { request in
      if request.number == 1 { return .silence }
      return .ok([])
    }
    async let ended: Void = {
      #expect {
        try client().request(.get, target: "/", seconds: 60, until: interruption)
      } throws: {
        $0 as? ServerClient.Failure == .interrupted
      }
    }()
    while server.requests(to: "/") == 0 { try await Task.sleep(for: .milliseconds(1)) }
    interruption.note(SIGINT)
    await ended
    #expect(try client().request(.get, target: "/", seconds: 60).status == 200)
  }

  @Test func `a host name is refused as a server address`() {
    var settings = Configuration().server
    settings.addresses = [.host("localhost")]
    #expect {
      try ServerClient(settings).request(.get, target: "/", seconds: 60)
    } throws: {
      $0 as? ServerClient.Failure == .unsent("localhost is not an IP address")
    }
  }

  @Test(arguments: [
    "", "\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd",
  ])
  func `a response that is not HTTP, or breaks off, is an error`(text: String) {
    server.route("/", to: OriginReply([.send(Array(text.utf8)), .close]))
    #expect {
      try client().request(.get, target: "/", seconds: 60)
    } throws: {
      $0 as? ServerClient.Failure
        == .unanswered(
          "the response of 127.0.0.1 port \(server.port) is not HTTP or is incomplete")
    }
  }

  @Test func `interim responses are skipped, and a body may end with its connection`() throws {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\nabc"
    server.route("/", to: OriginReply([.send(Array(text.utf8)), .close]))
    let answer = try client().request(.get, target: "/", seconds: 60)
    #expect(answer.status == 200 && answer.body == Array("abc".utf8))
  }
}
