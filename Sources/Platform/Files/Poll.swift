// Poll: waits for several descriptors at once, with a deadline.

import Glibc

/// A set of descriptors to wait for (poll(2)). Negative descriptors are ignored.
public struct Poll {
  /// What a descriptor is ready for. Errors and closed connections (`POLLERR`, `POLLHUP`) are
  /// reported unasked.
  public struct Events: OptionSet, Sendable {
    /// The bits of poll(2).
    public let rawValue: Int16

    /// Creates events from the bits of poll(2).
    public init(rawValue: Int16) { self.rawValue = rawValue }

    /// Bytes, a connection or the end of file can be read.
    public static let readable = Events(rawValue: Int16(POLLIN))
    /// Bytes can be written.
    public static let writable = Events(rawValue: Int16(POLLOUT))
  }

  private var entries: [pollfd]

  /// Creates a set of descriptors that are read from.
  public init(_ descriptors: [CInt]) {
    self.init(descriptors.map { ($0, .readable) })
  }

  /// Creates a set of descriptors, each with its events.
  public init(_ descriptors: [(descriptor: CInt, events: Events)]) {
    entries = descriptors.map { pollfd(fd: $0.descriptor, events: $0.events.rawValue, revents: 0) }
  }

  /// Returns the events of the last wait.
  ///
  /// - Parameter index: the position of the descriptor in the set.
  public func events(of index: Int) -> Events { Events(rawValue: entries[index].revents) }

  /// Waits until a descriptor is ready. Returns `false` if the time is over or a signal arrived.
  ///
  /// - Parameter milliseconds: the maximum time; -1 for no limit.
  @discardableResult public mutating func wait(milliseconds: CInt) -> Bool {
    guard poll(&entries, nfds_t(entries.count), milliseconds) <= 0 else { return true }
    // poll(2) leaves the events of an earlier wait when it fails.
    for index in entries.indices { entries[index].revents = 0 }
    return false
  }

  /// Waits until a descriptor is ready. Returns `false` at the deadline, or if a signal arrived:
  /// the caller checks the time and waits again.
  ///
  /// - Parameter deadline: `nil` for no limit. A wait ends after an hour, even before its deadline.
  @discardableResult public mutating func wait(until deadline: ContinuousClock.Instant?) -> Bool {
    guard let deadline else { return wait(milliseconds: -1) }
    let left = ContinuousClock.now.duration(to: deadline)
    // Rounded up, so that the deadline has passed when poll(2) times out.
    let milliseconds = (left / .milliseconds(1)).rounded(.up)
    return wait(milliseconds: left <= .zero ? 0 : CInt(min(milliseconds, 3_600_000)))
  }

  /// Waits until one of `descriptors` is readable or closed, or until the deadline.
  ///
  /// - Returns: for each descriptor, whether it is ready.
  public static func wait(
    for descriptors: [CInt], until deadline: ContinuousClock.Instant?
  ) -> [Bool] {
    var set = Poll(descriptors)
    set.wait(until: deadline)
    return descriptors.indices.map { !set.events(of: $0).isEmpty }
  }
}
