// ReadingPace: whether a client reads a response fast enough, and how long it may take.

import Glibc

/// What a client has received of a response, beside what it should have. Pure.
///
/// Received bytes are paid in, and time is charged at the minimum rate; a client whose account is
/// overdrawn reads too slowly. The account carries over, so a client below the rate is found
/// however its bytes are spread, and one above it may receive them in steps (decision 027).
struct ReadingPace: Hashable {
  /// How fast clients have to read.
  struct Rule: Hashable, Sendable {
    /// Milliseconds over which the rate is averaged: what a new account is worth.
    let window: Int
    /// Bytes per second, at least 1.
    let rate: Int

    /// Windows that an account is worth at most.
    static let maximumWindows = 4
    /// Looks at an account in each window.
    private static let looks = 6

    /// Creates a rule; `nil` without a rate.
    ///
    /// - Parameters:
    ///   - window: milliseconds, at least 1.
    ///   - rate: bytes per second. A rate above 1 TiB/s counts as that.
    init?(window: Int, rate: Int) {
      guard rate > 0 else { return nil }
      self.window = window
      self.rate = min(rate, 1 << 40)
    }

    /// Milliseconds between two looks at an account.
    var interval: Int { max(window / Self.looks, 1) }
    /// The most milliseconds that an account is worth.
    var longest: Int { window * Self.maximumWindows }

    /// Returns the bytes that a client receives in a time at least; `longest` bounds the time.
    func bytes(in milliseconds: Int) -> Int { rate * min(max(milliseconds, 0), longest) / 1_000 }
  }

  /// Identifies the response: its deadline.
  let response: Int
  private var balance: Int
  private var seenAt: Int
  private var seen: SocketProgress

  /// Opens an account with one window and what the connection has received: an account is opened up
  /// to a second after its response begins, when a fast client may have filled its receive buffer.
  ///
  /// - Parameter now: monotonic milliseconds.
  init(response: Int, _ rule: Rule, at now: Int, _ progress: SocketProgress) {
    self.response = response
    balance = min(
      rule.bytes(in: rule.window) + (progress.received ?? 0), rule.bytes(in: rule.longest))
    seenAt = now
    seen = progress
  }

  /// Whether it is time for the next look.
  func isDue(_ rule: Rule, at now: Int) -> Bool { now - seenAt >= rule.interval }

  /// Pays in the bytes since the last look, charges the time. Returns whether it is overdrawn.
  ///
  /// Time is charged if the client kept bytes back at both looks: else the server sent them all.
  mutating func look(_ rule: Rule, at now: Int, _ progress: SocketProgress) -> Bool {
    let (before, passed) = (seen, now - seenAt)
    seen = progress
    seenAt = now
    guard let earlier = before.received, let received = progress.received else { return false }
    let isCharged = before.isPending && progress.isPending
    balance += max(received - earlier, 0) - (isCharged ? rule.bytes(in: passed) : 0)
    balance = min(balance, rule.bytes(in: rule.longest))
    return isCharged && balance < 0
  }
}

/// What the kernel knows of a socket's output.
struct SocketProgress: Hashable {
  /// Bytes that the peer has acknowledged on the connection; `nil` if the kernel does not tell.
  let received: Int?
  /// Whether the peer's window keeps bytes back. Bytes on their way are no sign of a slow peer.
  let isPending: Bool
}

extension SocketProgress {
  /// Asks the kernel. Does not block.
  init(of descriptor: CInt) {
    var unsent: CInt = 0
    // SIOCOUTQNSD (include/uapi/linux/sockios.h): unsent bytes, without unacknowledged ones.
    let status = ioctl(descriptor, 0x894b, &unsent)
    self.init(received: Self.received(descriptor), isPending: status == 0 && unsent > 0)
  }

  /// Returns the bytes that the peer has acknowledged; `nil` if the kernel does not tell.
  private static func received(_ descriptor: CInt) -> Int? {
    // glibc's `tcp_info` ends before `tcpi_bytes_acked` of Linux 4.1 (include/uapi/linux/tcp.h).
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

/// The time limit for a body by its length. A value, so that a hit reads no setting twice.
struct TransferTime: Hashable, Sendable {
  /// Milliseconds that every client has.
  let least: Int
  /// Milliseconds over which the rate is averaged.
  let window: Int
  /// Bytes per second, at least; 0 for no rate.
  let rate: Int

  /// Returns the time for a body in milliseconds: `least`, or the length at the minimum rate.
  func milliseconds(for bytes: Int) -> Int {
    rate > 0 ? max(least, window + bytes * 1_000 / rate) : least
  }
}
