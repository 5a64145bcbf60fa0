// HostileRedis: a server that a test writes the replies of.

import Core
import Glibc
import Synchronization

/// A server on a unix socket that answers `PING`, and all else as told.
public final class HostileRedis: Sendable {
  /// What it does with a command after the greeting.
  public enum Reply: Sendable {
    /// Sends these bytes.
    case bytes(String)
    /// Sends these bytes one at a time.
    case slowly(String)
    /// Sends these bytes and closes the connection.
    case closing(String)
    /// Nothing.
    case silence
  }

  /// A listening socket that its thread keeps open: no other test may get its number meanwhile.
  private final class Listener: Sendable {
    let descriptor: OwnedDescriptor
    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
  }

  private let folder: TemporaryFolder
  private let listener: Listener
  private let reply: Lock<Reply>
  private let commandCount = Atomic<Int>(0)

  /// Starts the server.
  public init(_ reply: Reply) throws {
    folder = try TemporaryFolder()
    self.reply = Lock(reply)
    let listener = Listener(
      OwnedDescriptor(
        owning: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)))
    self.listener = listener
    let descriptor = listener.descriptor.value
    guard let address = UnixAddress(folder.path + "/redis"),
      address.withSocketAddress({ bind(descriptor, $0, $1) }) == 0, listen(descriptor, 16) == 0
    else { throw ChildProcess.Failure("hostile redis: errno \(errno)") }
    try OwnThread.start(name: "hostile", rank: .work) { [weak self, listener] in
      while true {
        let connection = accept(listener.descriptor.value, nil, nil)
        guard connection >= 0, let server = self else { return }
        try? OwnThread.start(name: "hostile", rank: .work) { [weak server] in
          Self.serve(connection) { server?.answer(to: $0) }
          close(connection)
        }
      }
    }
  }

  deinit { shutdown(listener.descriptor.value, CInt(SHUT_RDWR)) }

  /// The address, as the setting `fleet.redis`.
  public var address: String { "unix:\(folder.path)/redis" }

  /// The commands it received after greetings.
  public var commands: Int { commandCount.load(ordering: .sequentiallyConsistent) }

  /// Changes what it does.
  public func set(_ reply: Reply) { self.reply.withLock { $0 = reply } }

  private func answer(to command: String) -> Reply {
    if command.contains("\r\nPING\r\n") { return .bytes("+PONG\r\n") }
    commandCount.add(1, ordering: .sequentiallyConsistent)
    return reply.withLock { $0 }
  }

  private static func serve(_ connection: CInt, _ answer: (String) -> Reply?) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0, let reply = answer(String(decoding: buffer[..<count], as: UTF8.self)) else {
        return
      }
      switch reply {
      case .bytes(let text): put(Array(text.utf8), connection)
      case .slowly(let text): for byte in text.utf8 { put([byte], connection) }
      case .closing(let text):
        put(Array(text.utf8), connection)
        return
      case .silence: break
      }
    }
  }

  private static func put(_ bytes: [UInt8], _ connection: CInt) {
    _ = send(connection, bytes, bytes.count, CInt(MSG_NOSIGNAL))
  }
}
