// EventStream: reports progress as server-sent events (WHATWG HTML, section 9.2).

import Core

/// A body of `text/event-stream`. A slow reader gets the latest event of each key, and every final
/// event.
///
/// Events are encoded when they are about to be sent, so an event that is replaced before costs no
/// encoding.
final class EventStream: StreamedBody {
  private struct Waiting {
    let key: String
    let isFinal: Bool
    /// Returns the encoded event; `nil` for none.
    let bytes: @Sendable () -> [UInt8]?
  }

  private struct State {
    /// Events that are not being sent yet.
    var waiting: [Waiting] = []
    /// The number of events that were sent or are being sent; also the number of the first event in
    /// `waiting`.
    var begun = 0
    /// The number of the latest replaceable event of each key.
    var replaceable: [String: Int] = [:]
    /// Bytes being sent, and the position of their first byte.
    var outgoing: [UInt8] = []
    var start = 0
    var isEnded = false
    var isOverrun = false
    var isReadingEnded = false
    var wake: (@Sendable () -> Void)?
    var onEnd: (@Sendable () -> Void)?

    mutating func discard() {
      waiting = []
      outgoing = []
      replaceable = [:]
    }
  }

  /// Maximum number of queued events. One more empties the queue and fails the stream.
  static let longestQueue = 8_192
  /// Maximum number of events encoded at once, because the sending thread serves other connections
  /// too.
  private static let longestPiece = 64

  private let state = Lock(State())

  let endsWithServer = true
  let failure = ImageError.overloaded(queue: "events", retryAfter: 1)

  /// Appends an event. Returns what wakes the reader, which the caller calls outside its own locks.
  ///
  /// - Parameters:
  ///   - key: the event's subject. The event replaces a queued event with the same key that is not
  ///     final.
  ///   - data: encodes one line of JSON, on the sending thread and at most once; `nil` for no
  ///     event.
  func append(
    _ name: String, about key: String, isFinal: Bool, data: @escaping @Sendable () -> [UInt8]?
  ) -> (@Sendable () -> Void)? {
    let event = Waiting(key: key, isFinal: isFinal) {
      data().map { Array("event: \(name)\ndata: ".utf8) + $0 + Array("\n\n".utf8) }
    }
    return state.withLock { state in
      guard !state.isEnded, !state.isOverrun, !state.isReadingEnded else { return nil }
      if let number = state.replaceable[key] {
        state.waiting[number - state.begun] = event
        if isFinal { state.replaceable[key] = nil }
      } else if state.waiting.count < Self.longestQueue {
        if !isFinal { state.replaceable[key] = state.begun + state.waiting.count }
        state.waiting.append(event)
      } else {
        state.isOverrun = true
        state.discard()
      }
      return state.wake
    }
  }

  /// Ends the stream after the queued events.
  func end() {
    let wake = state.withLock { state in
      state.isEnded = true
      return state.wake
    }
    wake?()
  }

  /// Calls `action` when reading ends, or at once if it has ended.
  func whenEnded(_ action: @escaping @Sendable () -> Void) {
    let isReadingEnded = state.withLock { state in
      // Stored after the end, `action` would never be released.
      if !state.isReadingEnded { state.onEnd = action }
      return state.isReadingEnded
    }
    if isReadingEnded { action() }
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    while true {
      let (result, events) = state.withLock { Self.read(&$0, at: position, into: buffer) }
      if let result { return result }
      // Encodes outside the lock, so that writers do not wait. There is only one reader.
      let bytes = events.flatMap { $0.bytes() ?? [] }
      state.withLock {
        if !$0.isOverrun {
          $0.outgoing = bytes
          $0.start = position
        }
      }
    }
  }

  /// Copies available bytes. If all are read, returns the events to encode next.
  private static func read(
    _ state: inout State, at position: Int, into buffer: UnsafeMutableRawBufferPointer
  ) -> (PartialRead?, [Waiting]) {
    guard !state.isOverrun else { return (.failed, []) }
    let rest = state.outgoing.dropFirst(position - state.start).prefix(buffer.count)
    guard rest.isEmpty else {
      buffer.copyBytes(from: rest)
      return (.bytes(rest.count), [])
    }
    guard !state.waiting.isEmpty else { return (state.isEnded ? .end : .notYet, []) }
    let events = Array(state.waiting.prefix(longestPiece))
    for (index, event) in events.enumerated()
    where state.replaceable[event.key] == state.begun + index {
      state.replaceable[event.key] = nil
    }
    state.waiting.removeFirst(events.count)
    state.begun += events.count
    return (nil, events)
  }

  func whenReadable(_ wake: @escaping @Sendable () -> Void) {
    state.withLock { $0.wake = wake }
  }

  /// Queues a comment. The comment detects disconnected clients, and keeps proxies from closing an
  /// idle connection.
  func mayKeepWaiting() -> Bool {
    state.withLock { state in
      guard state.waiting.isEmpty else { return }
      state.waiting.append(
        Waiting(key: "", isFinal: true) { Array(": nothing new\n\n".utf8) })
    }
    return true
  }

  func ended() {
    let action = state.withLock { state in
      state.isReadingEnded = true
      state.discard()
      state.wake = nil
      return state.onEnd.take()
    }
    action?()
  }
}

/// Selects the progress steps that are reported: SDWebImage's minimumProgressInterval. The last
/// step is always reported.
struct ProgressFilter {
  /// The smallest reported step, as a fraction from 0 to 1; 0 reports every step.
  let minimumInterval: Double
  private(set) var reported: [UInt64: Double] = [:]

  /// Returns whether this step of `id` is reported.
  ///
  /// - Parameter fraction: the completed fraction; `nil` if the total is unknown, and every step is
  ///   reported.
  mutating func passes(_ id: UInt64, fraction: Double?, isFinal: Bool) -> Bool {
    guard !isFinal else {
      reported[id] = nil
      return true
    }
    guard let fraction else { return true }
    if let last = reported[id], fraction - last < minimumInterval { return false }
    reported[id] = fraction
    return true
  }
}

/// Converts progress steps to server-sent events.
final class ProgressEvents: Sendable {
  let stream = EventStream()
  private struct State {
    var filter: ProgressFilter
    /// Downloads reported before the initial list was sent; `nil` afterwards.
    var known: Set<UInt64>? = []
  }

  private let state: Lock<State>

  /// Creates a converter.
  ///
  /// - Parameter minimumInterval: the smallest reported step, as a fraction from 0 to 1.
  init(minimumInterval: Double) {
    state = Lock(State(filter: ProgressFilter(minimumInterval: minimumInterval)))
  }

  func report(_ status: DownloadStatus) {
    send { state in
      state.known?.insert(status.id)
      return self.append(status, to: &state)
    }
  }

  /// Reports the initial downloads, except those already reported with a later step. Call once.
  func list(_ downloads: [DownloadStatus]) {
    for status in downloads {
      send { state in
        state.known?.contains(status.id) == true ? nil : self.append(status, to: &state)
      }
    }
    state.withLock { $0.known = nil }
  }

  /// Reports a step of a prefetch. Ends the stream with the prefetch's last step.
  func report(_ status: PrefetchStatus) {
    let isFinal = status.state != .running
    let fraction = status.total > 0 ? Double(status.done) / Double(status.total) : nil
    send { state in
      guard state.filter.passes(0, fraction: fraction, isFinal: isFinal) else { return nil }
      return self.stream.append("prefetch", about: status.id, isFinal: isFinal) {
        JSON.bytes(of: status)
      }
    }
    if isFinal { stream.end() }
  }

  /// Appends an event under the lock, so that the steps of one item stay in order. The stream's
  /// lock nests inside and is never held during callbacks.
  private func send(_ append: (inout State) -> (@Sendable () -> Void)?) {
    state.withLock(append)?()
  }

  private func append(
    _ status: DownloadStatus, to state: inout State
  ) -> (@Sendable () -> Void)? {
    let isFinal = status.state == .finished || status.state == .failed
    guard state.filter.passes(status.id, fraction: status.fraction, isFinal: isFinal) else {
      return nil
    }
    return stream.append("download", about: "\(status.id)", isFinal: isFinal) {
      JSON.bytes(of: status)
    }
  }
}
