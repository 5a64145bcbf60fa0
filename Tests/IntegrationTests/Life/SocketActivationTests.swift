// SocketActivationTests: the program on sockets of a service manager, with the test in its place.

import Core
import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

/// A listening socket of the service manager.
private struct ManagedSocket: ~Copyable {
  let descriptor: OwnedDescriptor
  /// The port; 0 for a unix socket.
  let port: Int

  /// Listens on 127.0.0.1.
  init() throws {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = OwnedDescriptor(owning: socket(AF_INET, kind, 0))
    let number = descriptor.value
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(number, address, length) == 0 && listen(number, 4_096) == 0
          ? getsockname(number, address, &length) : -1
      }
    }
    try #require(status == 0)
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  /// Listens at a path.
  init(path: String) throws {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = OwnedDescriptor(owning: socket(AF_UNIX, kind, 0))
    let number = descriptor.value
    let address = try #require(UnixAddress(path))
    try #require(address.withSocketAddress { bind(number, $0, $1) } == 0)
    try #require(listen(number, 4_096) == 0)
    port = 0
  }
}

@Suite(.onOwnThreads) struct SocketActivationTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 64, height: 48))
  }

  /// What clients saw.
  private struct Seen {
    var answers = 0
    /// Connections that the server closed before it sent anything of a response, after an earlier
    /// one. HTTP allows that (RFC 9112, section 9.3.1).
    var closedBetween = 0
    var faults: [String] = []
  }

  /// Sends requests over a connection each, or one while the server keeps it, until `isOver`.
  private func hammer(
    port: Int, number: Int, isKept: Bool, seen: Lock<Seen>,
    isOver: borrowing Atomic<Bool>
  ) {
    var kept: HTTPClient?
    var round = 0
    while !isOver.load(ordering: .relaxed) {
      round += 1
      // Each fourth is an image that no tier has.
      let width = round % 4 == 0 ? 1 + (round / 4 * 8 + number) % 4_000 : 20
      let target = origin.target("/a.jpg", adding: "&w=\(width)")
      let isReused = kept != nil
      var client: HTTPClient?
      var before = 0
      do throws(HTTPClientError) {
        let current: HTTPClient
        if let kept { current = kept } else { current = try HTTPClient(port: port, timeout: 60) }
        client = current
        before = current.received
        let answer = try current.get(target)
        seen.withLock { seen in
          seen.answers += 1
          if answer.status != 200 { seen.faults.append("\(answer.status) \(answer.text)") }
        }
        kept = isKept && answer["Connection"]?.lowercased() != "close" ? current : nil
      } catch {
        kept = nil
        seen.withLock { seen in
          if isReused, error == .closed, client?.received == before {
            seen.closedBetween += 1
          } else {
            seen.faults.append("\(error), reused \(isReused)")
          }
        }
      }
    }
  }

  @Test func `restarts under load refuse and lose no request`() throws {
    // Given
    let socket = try ManagedSocket()
    let sockets = [(descriptor: socket.descriptor.value, name: "pictor")]
    let port = socket.port
    let start = {
      // The delay for load balancers is not needed, and would end the test's patience.
      try PictorProcess(in: folder, ["--server.shutdown_delay", "1h"], sockets: sockets)
    }
    var pictor = try start()
    #expect(pictor.port == port)
    let shared = Shared()
    let threads = try (0..<8).map { number in
      try OwnThread(name: "client-\(number)", rank: .foreground) {
        hammer(
          port: port, number: number, isKept: number % 2 == 0, seen: shared.seen,
          isOver: shared.isOver)
      }
    }
    // When
    for _ in 0..<5 {
      let count = shared.seen.withLock { $0.answers }
      try blockUntil("the clients are served") {
        shared.seen.withLock { $0.answers >= count + 100 || !$0.faults.isEmpty }
      }
      #expect(try pictor.end() == 0)
      #expect(throws: Never.self) { try HTTPClient(port: port) }
      pictor = try start()
    }
    let count = shared.seen.withLock { $0.answers }
    try blockUntil("the last server serves") {
      shared.seen.withLock { $0.answers >= count + 100 || !$0.faults.isEmpty }
    }
    shared.isOver.store(true, ordering: .relaxed)
    for thread in threads { thread.join() }
    // Then
    #expect(shared.seen.withLock { $0.faults } == [])
    #expect(shared.seen.withLock { $0.answers } >= 600)
    #expect(try pictor.end() == 0)
  }

  private final class Shared: Sendable {
    let seen = Lock(Seen())
    let isOver = Atomic<Bool>(false)
  }

  @Test func `sockets replace the addresses by their names, and workers have neither`() throws {
    // Given
    let clients = try ManagedSocket()
    let path = folder.path + "/clients.sock"
    let others = try ManagedSocket(path: path)
    let operators = try ManagedSocket()
    let (taken, other) = (try Origin(), try Origin())
    // When the configured addresses could not be used
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.port", "\(taken.port)", "--server.operator_address", "127.0.0.1:\(other.port)",
      ],
      sockets: [
        (clients.descriptor.value, "pictor.socket"), (others.descriptor.value, "web"),
        (operators.descriptor.value, "operator"),
      ])
    // Then
    #expect(pictor.port == clients.port && pictor.operatorPort == operators.port)
    #expect(try HTTPClient(unix: path).get(origin.target("/a.jpg")).status == 200)
    #expect(try HTTPClient(port: clients.port).get("/metrics").status == 404)
    #expect(try HTTPClient(port: operators.port).get("/metrics").status == 200)
    let worker = try #require(pictor.workers().first)
    #expect(!contents(of: "/proc/\(worker)/environ").contains("LISTEN_"))
    // And the files of the manager stay
    #expect(try pictor.end() == 0)
    #expect(access(path, F_OK) == 0)
  }

  @Test func `what is no listening stream socket is an error that names it`() throws {
    let good = try ManagedSocket()
    let datagrams = OwnedDescriptor(
      owning: socket(AF_INET, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    let silent = OwnedDescriptor(
      owning: socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    let pictor = try PictorProcess(
      in: folder, ["--server.port", "0", "--disk.limit", "0"],
      sockets: [
        (datagrams.value, "a"), (good.descriptor.value, "b"), (silent.value, "c"),
      ], isServer: false)
    #expect(try pictor.end(0) == 1)
    let text = "is not a stream socket that listens on IPv4, IPv6 or a path"
    #expect(
      pictor.complaints == [
        "pictor: LISTEN_FDS: descriptor 3, 'a', \(text)",
        "pictor: LISTEN_FDS: descriptor 5, 'c', \(text)",
      ])
  }

  @Test func `the sockets of another process are left alone`() throws {
    let pictor = try PictorProcess(
      in: folder, environment: ["LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "pictor"])
    #expect(try pictor.get("/readyz").status == 200)
    #expect(try pictor.end() == 0)
  }

  @Test func `a server on a path is found by its health check, and replaces what a crash left`()
    throws
  {
    // Given a server that is killed
    let path = folder.path + "/p.sock"
    let address = ["--server.address", "unix:\(path)"]
    var pictor = try PictorProcess(in: folder, address)
    #expect(try HTTPClient(unix: path).get("/readyz").status == 200)
    #expect(try check(address) == 0)
    #expect(try pictor.end(SIGKILL) == -SIGKILL)
    #expect(access(path, F_OK) == 0)
    #expect(try check(address) == 1)
    // When
    pictor = try PictorProcess(in: folder, address)
    // Then
    #expect(try check(address) == 0)
    let second = try PictorProcess(
      in: folder, ["--check-config", "--disk.limit", "0"] + address, isServer: false)
    #expect(try second.end(0) == 0)
    #expect(
      second.complaints.contains {
        $0.hasPrefix("pictor: warning: cannot listen on unix:\(path): Address already in use")
      })
    #expect(try pictor.end() == 0)
    #expect(access(path, F_OK) != 0)
  }

  private func check(_ options: [String]) throws -> CInt {
    try PictorProcess(in: folder, ["healthcheck"] + options, isServer: false).end(0)
  }
}
