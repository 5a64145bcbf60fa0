// EventStream: server-sent events (WHATWG HTML, section 9.2), and which progress is worth one.

import Model
import Platform

/// A body of `text/event-stream`. Whoever has news appends it; a reader that is slower than the news is told the latest
/// of each thing, and every end. An event's data is made when its turn to be sent has come: of what is replaced before,
/// and that is most where there is much, nothing is ever made.
final class EventStream: StreamedResponse {
  private struct Waiting {
    let key: String
    let isFinal: Bool
    /// The event as it is sent; `nil` for none.
    let bytes: @Sendable () -> [UInt8]?
  }

  private struct State {
    /// Events not begun to be sent.
    var waiting: [Waiting] = []
    /// Events begun to be sent, which is the number of the first one in `waiting`.
    var begun = 0
    /// The number of the latest event of a key that a later one may take the place of.
    var replaceable: [String: Int] = [:]
    /// Bytes being sent, and the position of the first of them.
    var outgoing: [UInt8] = []
    var start = 0
    var isEnded = false
    /// Too many events waited.
    var isOverrun = false
    var isAbandoned = false
    var wake: (@Sendable () -> Void)?
    var onAbandoned: (@Sendable () -> Void)?
  }

  /// Events that may wait for a reader; with one more nothing waits any longer, and the stream is cut.
  static let longestQueue = 8_192
  /// Events that are made at once; the thread that sends them has others to serve.
  private static let longestPiece = 64

  private let state = Lock(State())

  let endsWithServer = true
  let failure = ImageError.overloaded(queue: "events", retryAfter: 1)

  /// Appends an event, and wakes whoever reads.
  ///
  /// - Parameters:
  ///   - name: the event's type.
  ///   - key: what it is about: it takes the place of an event with the same key that still waits and is not final.
  ///   - data: makes one line of JSON, on a thread that sends and at most once; `nil`: there is no such event.
  func send(
    _ name: String, about key: String, isFinal: Bool, data: @escaping @Sendable () -> [UInt8]?
  ) {
    append(name, about: key, isFinal: isFinal, data: data)?()
  }

  /// The same, but leaves it to the caller to wake whoever reads, outside its own locks: by what is returned.
  func append(
    _ name: String, about key: String, isFinal: Bool, data: @escaping @Sendable () -> [UInt8]?
  ) -> (@Sendable () -> Void)? {
    let event = Waiting(key: key, isFinal: isFinal) {
      data().map { Array("event: \(name)\ndata: ".utf8) + $0 + Array("\n\n".utf8) }
    }
    return state.withLock { state in
      guard !state.isEnded, !state.isOverrun, !state.isAbandoned else { return nil }
      if let number = state.replaceable[key] {
        state.waiting[number - state.begun] = event
        if isFinal { state.replaceable[key] = nil }
      } else if state.waiting.count < Self.longestQueue {
        if !isFinal { state.replaceable[key] = state.begun + state.waiting.count }
        state.waiting.append(event)
      } else {
        state.isOverrun = true
        (state.waiting, state.outgoing, state.replaceable) = ([], [], [:])
      }
      return state.wake
    }
  }

  /// Nothing more will come: the answer ends behind what waits.
  func end() {
    let wake = state.withLock { state in
      state.isEnded = true
      return state.wake
    }
    wake?()
  }

  /// Has `action` called when nobody reads any more; at once, where that is so already.
  func whenAbandoned(_ action: @escaping @Sendable () -> Void) {
    let isAbandoned = state.withLock { state in
      // Kept, it would never be let go of.
      if !state.isAbandoned { state.onAbandoned = action }
      return state.isAbandoned
    }
    if isAbandoned { action() }
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    while true {
      let (result, events) = state.withLock { state in Self.read(&state, position, buffer) }
      if let result { return result }
      // Outside the lock, where whoever has news need not wait for it; there is one reader.
      let bytes = events.flatMap { $0.bytes() ?? [] }
      state.withLock { if !$0.isOverrun { ($0.outgoing, $0.start) = (bytes, position) } }
    }
  }

  /// What there is to read; where all that was made is read, the events to make next.
  private static func read(
    _ state: inout State, _ position: Int, _ buffer: UnsafeMutableRawBufferPointer
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

  /// A comment now and then shows whether anybody is there, and keeps proxies from closing what is silent.
  func mayWaitOn() -> Bool {
    state.withLock { state in
      guard state.waiting.isEmpty else { return }
      state.waiting.append(
        Waiting(key: "", isFinal: true) { Array(": nothing new\n\n".utf8) })
    }
    return true
  }

  func abandoned() {
    let action = state.withLock { state in
      state.isAbandoned = true
      defer { (state.wake, state.onAbandoned) = (nil, nil) }
      (state.waiting, state.outgoing, state.replaceable) = ([], [], [:])
      return state.onAbandoned
    }
    action?()
  }
}

/// Which steps of a progress are reported: SDWebImage's minimumProgressInterval, with the end always among them.
struct ProgressFilter {
  /// The least step, as a part of the whole, 0 to 1; 0 reports each.
  let minimumInterval: Double
  private var reported: [UInt64: Double] = [:]

  /// A filter that has let nothing pass.
  init(minimumInterval: Double) { self.minimumInterval = minimumInterval }

  /// Whether this step of `id` is to be reported.
  ///
  /// - Parameter fraction: what is done of the whole; `nil` where the whole is not known: then every step is.
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
