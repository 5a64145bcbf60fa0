// ServiceManagerTests: what systemd is told, with a socket in its place.

import Core
import Glibc
import TestSupport
import Testing

/// The socket of a service manager (sd_notify(3)).
private final class ManagerSocket {
  let path: String
  private let descriptor: CInt
  /// The messages so far.
  private(set) var messages: [String] = []

  init(in folder: TemporaryFolder) throws {
    path = folder.path + "/notify"
    descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(descriptor >= 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(status == 0)
  }

  deinit { close(descriptor) }

  /// Takes in what has arrived, and returns the messages so far.
  func receive() -> [String] {
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = recv(descriptor, &bytes, bytes.count, CInt(MSG_DONTWAIT))
      guard count >= 0 else { return messages }
      messages.append(String(decoding: bytes[..<count], as: UTF8.self))
    }
  }

  /// Waits for a further message that begins with `text`, and returns it.
  func wait(for text: String) throws -> String {
    let known = receive().count
    try blockUntil("a message \(text)") {
      receive().dropFirst(known).contains { $0.hasPrefix(text) }
    }
    return messages.dropFirst(known).first { $0.hasPrefix(text) } ?? ""
  }
}

@Suite(.onOwnThreads) struct ServiceManagerTests {
  @Test func `a service manager hears of the start, each reload, and the stop, in this order`()
    throws
  {
    // Given
    let folder = try TemporaryFolder()
    let manager = try ManagerSocket(in: folder)
    let pictor = try PictorProcess(
      in: folder, ["--server.shutdown_delay", "10s"], environment: ["NOTIFY_SOCKET": manager.path])
    #expect(try pictor.get("/readyz").status == 200)
    try blockUntil("it is ready") { manager.receive() == ["READY=1"] }
    // When
    kill(pictor.id, SIGHUP)
    // Then
    try blockUntil("it has reloaded") { manager.receive().count == 3 }
    let reload = try #require(manager.messages[1].split(separator: "\n") as [Substring]?)
    #expect(reload.first == "RELOADING=1")
    let time = try #require(reload.last?.split(separator: "=").last.flatMap { Int($0) })
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    #expect(time > 0 && time <= now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)
    #expect(manager.messages[2] == "READY=1")
    // When it is about to stop, and still serves
    kill(pictor.id, SIGTERM)
    try blockUntil("it stops") { manager.receive().count == 4 }
    #expect(manager.messages[3] == "STOPPING=1")
    #expect(try pictor.get("/livez").status == 200)
    kill(pictor.id, SIGTERM)
    #expect(try pictor.end(0) == 0)
    #expect(manager.receive().count == 4)
  }

  @Test func `a watched server reports regularly that it responds, a stopped one does not`()
    throws
  {
    // Given
    let folder = try TemporaryFolder()
    let manager = try ManagerSocket(in: folder)
    let pictor = try PictorProcess(
      in: folder, environment: ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "80000"])
    for _ in 0..<3 { #expect(try manager.wait(for: "WATCHDOG=1") == "WATCHDOG=1") }
    // When
    kill(pictor.id, SIGSTOP)
    // Then what was sent before is the last. A stopped process cannot send, however long the wait.
    try blockUntil("the process has stopped") {
      let count = manager.receive().count
      usleep(200_000)
      return manager.receive().count == count
    }
    kill(pictor.id, SIGCONT)
    _ = try manager.wait(for: "WATCHDOG=1")
    #expect(try pictor.end() == 0)
  }

  @Test func `without a service manager, or with a wrong one, the server serves`() throws {
    let folder = try TemporaryFolder()
    for environment in [
      ["NOTIFY_SOCKET": folder.path + "/absent", "WATCHDOG_USEC": "50000"],
      ["NOTIFY_SOCKET": "not a path"], ["WATCHDOG_USEC": "never"], ["WATCHDOG_USEC": "0"],
      // The watchdog of another process (sd_watchdog_enabled(3)).
      ["WATCHDOG_USEC": "50000", "WATCHDOG_PID": "1"],
    ] {
      let pictor = try PictorProcess(in: folder, environment: environment)
      #expect(try pictor.get("/readyz").status == 200, "\(environment)")
      #expect(try pictor.end() == 0, "\(environment)")
    }
  }
}
