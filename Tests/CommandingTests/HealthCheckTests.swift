// HealthCheckTests: the health check against a test server.

@testable import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct HealthCheckTests {
  private let printed = Printed()

  /// Returns the exit status of `pictor healthcheck`.
  private func check(
    _ server: Origin, address: String = "127.0.0.1", seconds: Int = 60
  ) async -> CInt {
    var configuration = Configuration().server
    configuration.addresses = [.host(address)]
    configuration.port = server.port
    return await check(configuration, seconds: seconds)
  }

  private func check(_ configuration: ServerSettings, seconds: Int = 60) async -> CInt {
    var check = HealthCheck(configuration)
    check.deadlineSeconds = seconds
    check.console = printed.console()
    return await exitStatus { check.run() }
  }

  private var errors: String { printed.errors }

  @Test(arguments: [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("::", "::1")])
  func `a server that listens on all addresses is checked on loopback`(
    address: String, loopback: String
  ) async throws {
    let server = try Origin(on: loopback)
    server.route("/stats", to: .ok(Array("{}".utf8)))
    #expect(await check(server, address: address) == 0)
    #expect(errors.isEmpty)
  }

  @Test(arguments: [204, 302, 404, 500, 503])
  func `any status but 200 fails the health check`(status: Int) async throws {
    let server = try Origin()
    server.route("/stats", to: .status(status))
    #expect(await check(server) == 1)
    #expect(
      errors == "pictor: the server at 127.0.0.1 port \(server.port) responded with \(status)\n")
  }

  @Test func `a response that arrives byte by byte ends at the deadline`()
    async throws
  {
    let server = try Origin()
    server.route("/stats", to: .trickle([UInt8](repeating: 0x20, count: 40), milliseconds: 100))
    #expect(await check(server, seconds: 1) == 1)
    #expect(errors == "pictor: no response from 127.0.0.1 port \(server.port) within 1 s\n")
  }

  @Test func `a refused connection fails the health check`() async throws {
    let server = try Origin()
    server.stop()
    #expect(await check(server) == 1)
    #expect(errors.hasPrefix("pictor: cannot connect to 127.0.0.1 port \(server.port): "))
  }

  @Test func `of several addresses the first that accepts is checked`() async throws {
    // Given
    let server = try Origin()
    server.route("/stats", to: .ok(Array("{}".utf8)))
    let closed = try ClosedPort()
    let folder = try TemporaryFolder()
    var configuration = Configuration().server
    let refusing: [ListenItem] = [
      .address(.unix(path: folder.path + "/none")),
      .address(.network(host: "127.0.0.1", port: closed.port)),
    ]
    // Then
    configuration.addresses = refusing + [.address(.network(host: "127.0.0.1", port: server.port))]
    #expect(await check(configuration) == 0)
    #expect(errors.isEmpty)
    // And without such an address, all reasons are named
    configuration.addresses = refusing
    #expect(await check(configuration) == 1)
    #expect(errors.contains("unix:\(folder.path)/none: No such file"))
    #expect(errors.contains("; cannot connect to 127.0.0.1 port \(closed.port)"))
  }
}
