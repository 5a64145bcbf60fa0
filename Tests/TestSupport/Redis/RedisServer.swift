// RedisServer: a real redis-server of one test, which can be killed and started again.

import Core
import Glibc
import Testing

/// A `redis-server` on a unix socket with its own data. Its last reference kills it.
public final class RedisServer: Sendable {
  /// The path of its unix socket.
  public let socketPath: String
  private let folder: TemporaryFolder
  private let options: [String]
  private let process = Lock<ChildProcess?>(nil)

  /// Starts a server and waits until it answers.
  ///
  /// - Parameter options: more options of redis-server(1), such as `--appendonly`, `yes`.
  public init(_ options: [String] = []) throws {
    folder = try TemporaryFolder()
    socketPath = folder.path + "/redis"
    self.options = options
    try start()
  }

  deinit { process.withLock { $0.take() }?.kill() }

  /// The address of the unix socket, as the setting `fleet.redis`.
  public var address: String { "unix:" + socketPath }

  /// Starts the server again and waits until it answers.
  public func start() throws {
    let started = try ChildProcess(
      [
        "redis-server", "--port", "0", "--bind", "127.0.0.1", "--unixsocket", socketPath,
        "--dir", folder.path, "--save", "", "--loglevel", "warning",
        "--maxmemory-policy", "volatile-lfu",
      ] + options, output: .file(folder.path + "/log"))
    process.withLock { $0 = started }
    try blockUntil("redis-server answers") { (try? command("PING")) == "+PONG\r\n" }
  }

  /// Listens on 127.0.0.1, too, until the server ends. Returns the port.
  public func listen() throws -> Int {
    // Another test may take a free port first.
    for _ in 0..<100 {
      let port = try ClosedPort().port
      if try command("CONFIG", "SET", "port", "\(port)") == "+OK\r\n" { return port }
    }
    throw ChildProcess.Failure("redis: no free port")
  }

  /// Kills the server.
  ///
  /// - Parameter losingData: whether its files are removed, too.
  public func kill(losingData: Bool = false) {
    process.withLock { $0.take() }?.kill()
    unlink(socketPath)
    guard losingData else { return }
    for file in TemporaryFolder.files(below: folder.path) { unlink(file) }
    TemporaryFolder.remove(folder.path + "/appendonlydir")
  }

  /// Stops the server's threads, which keeps connections open and answers nothing.
  public func freeze() { process.withLock { _ = $0.map { Glibc.kill($0.id, SIGSTOP) } } }

  /// Ends `freeze`.
  public func thaw() { process.withLock { _ = $0.map { Glibc.kill($0.id, SIGCONT) } } }

  /// Sends a command over its own connection and returns the reply, up to 1 MiB, errors too.
  @discardableResult public func command(_ parts: String...) throws -> String { try command(parts) }

  /// As above.
  @discardableResult public func command(_ parts: [String]) throws -> String {
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    guard let address = UnixAddress(socketPath),
      address.withSocketAddress({ connect(descriptor, $0, $1) }) == 0
    else { throw ChildProcess.Failure("redis: errno \(errno)") }
    let text = [parts, ["QUIT"]].map { command in
      "*\(command.count)\r\n" + command.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    }.joined()
    let bytes = Array(text.utf8)
    guard send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count else {
      throw ChildProcess.Failure("redis: errno \(errno)")
    }
    var reply: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while reply.count < 1 << 20 {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      reply += buffer[..<count]
    }
    return String(decoding: reply.dropLast(5), as: UTF8.self)
  }

  /// The number of times that a command was called, by `INFO commandstats`.
  public func calls(of name: String) throws -> Int {
    let text = try command("INFO", "commandstats")
    guard let place = text.firstRange(of: "cmdstat_\(name):calls=") else { return 0 }
    return Int(text[place.upperBound...].prefix { $0.isNumber }) ?? 0
  }
}
