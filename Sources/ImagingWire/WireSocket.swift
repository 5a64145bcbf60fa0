// WireSocket: one end of the connection between the server and a worker, for messages with
// descriptors.

import CLinux
import Glibc

/// A received message, not decoded yet.
public struct WireMessage: ~Copyable, Sendable {
  /// The bytes for `JobMessage` or `AnswerMessage`.
  public let bytes: [UInt8]
  /// The passed descriptors in order.
  private var first: OwnedDescriptor?
  private var second: OwnedDescriptor?

  init(
    bytes: [UInt8], first: consuming OwnedDescriptor?, second: consuming OwnedDescriptor?
  ) {
    self.bytes = bytes
    self.first = first
    self.second = second
  }

  /// Returns the next passed descriptor; `nil` if there is no other.
  public mutating func takeDescriptor() -> OwnedDescriptor? {
    // `??` cannot take a noncopyable value.
    if let descriptor = first.take() { return descriptor }
    return second.take()
  }
}

/// One end of a `SOCK_SEQPACKET` pair (unix(7)). It preserves message boundaries and detects when
/// the peer closes.
public struct WireSocket: ~Copyable, Sendable {
  /// The descriptor of a worker's end.
  public static let workerDescriptor: CInt = 3
  /// A worker's descriptor of the memory file for its results, the only one that it has. The server
  /// made it, reads each result from it and empties it.
  public static let resultDescriptor: CInt = 4

  private let owned: OwnedDescriptor

  /// Takes ownership of a connected socket.
  public init(owning descriptor: consuming OwnedDescriptor) { owned = descriptor }

  /// The descriptor, for polling.
  public var descriptor: CInt { owned.value }

  /// Makes `receive` and `send` throw `wouldBlock` instead of blocking.
  public func setNonBlocking() throws(WireError) {
    guard pictor_linux_set_status_flags(owned.value, O_NONBLOCK) == 0 else {
      throw .system(call: "fcntl", code: errno)
    }
  }

  /// Sends one message with up to two descriptors, which the caller keeps.
  public func send(
    _ bytes: [UInt8], passing first: CInt? = nil, and second: CInt? = nil
  ) throws(WireError) {
    let passed = [first, second].compactMap(\.self)
    precondition(passed.allSatisfy { $0 >= 0 }, "a descriptor is not negative")
    while pictor_linux_send(owned.value, bytes, bytes.count, passed, CInt(passed.count)) < 0 {
      switch errno {
      case EINTR: continue
      case EAGAIN: throw .wouldBlock
      case EPIPE, ECONNRESET: throw .closed
      case let code: throw .system(call: "sendmsg", code: code)
      }
    }
  }

  /// Waits up to `milliseconds` for a message or the end of the connection. Returns whether there
  /// is one.
  public func hasMessage(within milliseconds: CInt) -> Bool {
    var waiting = Poll([owned.value])
    return waiting.wait(milliseconds: milliseconds)
  }

  /// Receives one message. The descriptors of a refused message are closed.
  ///
  /// - Parameter maximum: the maximum number of descriptors, at most 2.
  public func receive(passed maximum: Int = 0) throws(WireError) -> WireMessage {
    var received = pictor_linux_received()
    var status = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: WireKind.longestMessage) { buffer, count in
      repeat {
        status = pictor_linux_receive(owned.value, buffer.baseAddress, buffer.count, &received)
      } while status < 0 && errno == EINTR
      if status < 0 { status = -Int(errno) }
      count = max(status, 0)
    }
    // Owned from here on, so that every exit closes them.
    let (first, second, third, fourth) = received.descriptors
    let count = received.descriptor_count
    var firstOwned = count > 0 ? OwnedDescriptor(owning: first) : nil
    var secondOwned = count > 1 ? OwnedDescriptor(owning: second) : nil
    if count > 2 { _ = OwnedDescriptor(owning: third) }
    if count > 3 { _ = OwnedDescriptor(owning: fourth) }

    guard status >= 0 else {
      switch -status {
      case Int(EAGAIN): throw .wouldBlock
      case Int(ECONNRESET): throw .closed
      case let code: throw .system(call: "recvmsg", code: CInt(code))
      }
    }
    guard received.was_cut == 0 else { throw .malformed("it is too long, or has descriptors") }
    guard count <= maximum else {
      throw .malformed("it has \(count) descriptors")
    }
    // An empty message looks like the end of the connection; no peer sends one.
    guard status > 0 else { throw .closed }
    return WireMessage(bytes: bytes, first: firstOwned.take(), second: secondOwned.take())
  }
}

/// Both ends of a new connection, close-on-exec.
public struct WirePair: ~Copyable, Sendable {
  /// The end that the server keeps.
  public var server: OwnedDescriptor?
  /// The end that a worker is started with.
  public var worker: OwnedDescriptor?

  /// Connects two ends.
  public init() throws(WireError) {
    var ends: [CInt] = [-1, -1]
    guard pictor_linux_message_pair(&ends) == 0 else {
      throw .system(call: "socketpair", code: errno)
    }
    server = OwnedDescriptor(owning: ends[0])
    worker = OwnedDescriptor(owning: ends[1])
  }
}

/// A failure to send or receive a message. The receiver of this error closes the connection.
public enum WireError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The peer has closed the connection.
  case closed
  /// Nothing to receive, or no room to send, on a non-blocking socket.
  case wouldBlock
  /// An invalid message: of another version, truncated, too long, or with a value out of range.
  case malformed(String)
  /// A system call failed.
  case system(call: String, code: CInt)

  /// The error as one line for the log.
  public var description: String {
    switch self {
    case .closed: "the connection is closed"
    case .wouldBlock: "the other end is not reading"
    case .malformed(let what): "malformed message: \(what)"
    case .system(let call, let code): "\(call): \(errnoText(code))"
    }
  }
}
