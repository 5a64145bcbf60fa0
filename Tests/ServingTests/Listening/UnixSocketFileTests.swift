// UnixSocketFileTests: which file system entries a unix socket replaces, and what remains.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct UnixSocketFileTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path + "/p.sock" }

  init() throws { folder = try TemporaryFolder() }

  private func mode() -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode : nil
  }

  private func listen() throws -> ListeningSocket {
    try ListeningSocket(on: .unix(path: path), mode: 0o600)
  }

  @Test(arguments: [0o660, 0o600, 0o666])
  func `a socket has its permissions, and is removed when it is closed`(wanted: Int) throws {
    // When
    let socket = try ListeningSocket(on: .unix(path: path), mode: wanted)
    // Then
    #expect(mode() == S_IFSOCK | mode_t(wanted))
    #expect("\(socket.address)" == "unix:\(path)")
    socket.close()
    #expect(mode() == nil)
  }

  @Test func `the socket of a server that crashed is replaced`() throws {
    // Given a socket whose last descriptor is closed
    let left = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let address = try #require(UnixAddress(path))
    #expect(address.withSocketAddress { bind(left, $0, $1) } == 0)
    #expect(Glibc.listen(left, 1) == 0)
    Glibc.close(left)
    // When
    try UnixSocketFile.check(path)
    let own = try listen()
    // Then
    #expect(throws: Never.self) { try HTTPClient(unix: path) }
    own.close()
  }

  @Test func `the socket of a running server stays`() throws {
    let first = try listen()
    defer { first.close() }
    #expect(throws: ServerError.addressInUse(endpoint: "unix:\(path)")) { try listen() }
    #expect(throws: UnixSocketFile.Failure.inUse) { try UnixSocketFile.check(path) }
    #expect(throws: Never.self) { try HTTPClient(unix: path) }
  }

  @Test func `a server whose backlog is full counts as running`() throws {
    // Given a listener that accepts nothing
    let busy = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { Glibc.close(busy) }
    let address = try #require(UnixAddress(path))
    #expect(address.withSocketAddress { bind(busy, $0, $1) } == 0)
    #expect(Glibc.listen(busy, 0) == 0)
    let waiting = try HTTPClient(unix: path)
    // Then
    #expect(throws: UnixSocketFile.Failure.inUse) { try UnixSocketFile.check(path) }
    waiting.close()
  }

  @Test func `what is no socket stays`() throws {
    try folder.write("p.sock", bytes: [1, 2])
    let reason = "there is a file that is no socket"
    #expect(throws: ServerError.cannotListen(endpoint: "unix:\(path)", reason: reason)) {
      try listen()
    }
    #expect(mode().map { $0 & S_IFMT } == S_IFREG)
    // And a link is not followed
    unlink(path)
    symlink(folder.path + "/other", path)
    #expect(throws: UnixSocketFile.Failure.notASocket) { try UnixSocketFile.check(path) }
  }

  @Test func `a missing folder is named by the address and the reason`() throws {
    let missing = folder.path + "/none/p.sock"
    #expect(
      throws: ServerError.cannotListen(
        endpoint: "unix:\(missing)", reason: "No such file or directory (2)")
    ) { try ListeningSocket(on: .unix(path: missing)) }
  }

  @Test func `the socket of a later server is not removed`() throws {
    // Given
    let first = try listen()
    unlink(path)
    let second = try listen()
    // When
    first.close()
    // Then
    #expect(throws: Never.self) { try HTTPClient(unix: path) }
    second.close()
    #expect(mode() == nil)
  }

  @Test func `of servers that find the same unused socket, one replaces it`() throws {
    for _ in 0..<20 {
      // Given
      let left = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      let address = try #require(UnixAddress(path))
      #expect(address.withSocketAddress { bind(left, $0, $1) } == 0)
      Glibc.close(left)
      // When
      let made = Lock<[ListeningSocket]>([])
      let threads = try (0..<4).map { number in
        try OwnThread(name: "start-\(number)", rank: .foreground) { [path] in
          if let socket = try? ListeningSocket(on: .unix(path: path)) {
            made.withLock { $0.append(socket) }
          }
        }
      }
      for thread in threads { thread.join() }
      // Then
      #expect(made.withLock { $0.count } == 1)
      for socket in made.withLock({ $0 }) { socket.close() }
    }
  }
}
