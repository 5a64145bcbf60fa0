// ReadingPace: how fast a client reads a response, window by window.

import Glibc

/// The part of a response that a client has received since the window began. Without sockets and clocks.
struct ReadingPace: Hashable {
  /// How fast clients have to read.
  struct Rule: Hashable, Sendable {
    /// Milliseconds of a window.
    let window: Int
    /// Bytes that a client receives in a window, at least.
    let bytes: Int

    /// Creates a rule; `nil` without a rate.
    ///
    /// A window asks for half of what the rate allows in it: bytes are acknowledged in steps of the client's buffer, and
    /// a window may end just before a burst.
    ///
    /// - Parameter rate: bytes per second.
    init?(window: Int, rate: Int) {
      guard rate > 0 else { return nil }
      self.window = window
      bytes = window * min(rate, 1 << 40) / 2_000
    }
  }

  /// Identifies the response: its deadline.
  let response: Int
  private var since: Int
  private var before: Int?

  /// Begins the first window. `received` is what the client has received on the connection so far; `nil` if unknown.
  init(response: Int, at now: Int, received: Int?) {
    self.response = response
    since = now
    before = received
  }

  /// Whether the window is over.
  func isDue(_ rule: Rule, at now: Int) -> Bool { now - since >= rule.window }

  /// Ends a window and begins the next one. Returns whether the client received too little, though there was more.
  mutating func end(_ rule: Rule, at now: Int, _ progress: SocketProgress) -> Bool {
    defer {
      since = now
      before = progress.received
    }
    guard let before, let received = progress.received else { return false }
    return progress.isPending && received - before < rule.bytes
  }
}

/// What the kernel knows of a socket's output.
struct SocketProgress: Hashable {
  /// Bytes that the peer has acknowledged on the connection; `nil` if the kernel does not tell.
  let received: Int?
  /// Whether there are bytes that the peer's window keeps back. Bytes on their way are no sign of a slow peer.
  let isPending: Bool

  /// Creates a progress.
  init(received: Int?, isPending: Bool) {
    self.received = received
    self.isPending = isPending
  }

  /// Asks the kernel. Does not block.
  init(of descriptor: CInt) {
    var unsent: CInt = 0
    // SIOCOUTQNSD (include/uapi/linux/sockios.h): bytes that are not sent, without those that are not acknowledged.
    let status = ioctl(descriptor, 0x894b, &unsent)
    self.init(received: Self.received(descriptor), isPending: status == 0 && unsent > 0)
  }

  /// Returns the bytes that the peer has acknowledged; `nil` if the kernel does not tell.
  static func received(_ descriptor: CInt) -> Int? {
    // glibc's `tcp_info` ends before `tcpi_bytes_acked`, which Linux 4.1 added (include/uapi/linux/tcp.h).
    let offset = 120
    return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { info in
      var length = socklen_t(info.count)
      guard
        getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
        Int(length) >= offset + 8
      else { return nil }
      let count = Int(truncatingIfNeeded: info.load(fromByteOffset: offset, as: UInt64.self))
      return count > 0 ? count : nil
    }
  }
}
