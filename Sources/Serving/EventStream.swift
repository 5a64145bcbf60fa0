// EventStream: server-sent events (WHATWG HTML, section 9.2), and which progress is worth one.

import Model
import Platform

/// A body of `text/event-stream`. Whoever has news appends it; a reader that is slower than the news is told the latest
/// of each thing, and every end.
final class EventStream: StreamedBody {
  private struct Waiting {
    let key: String
    let isFinal: Bool
    var bytes: [UInt8]
  }

  private struct State {
    /// Events not begun to be sent.
    var waiting: [Waiting] = []
    /// Where in `waiting` the latest event of a key is that a later one may take the place of.
    var replaceable: [String: Int] = [:]
    /// Bytes being sent, from `start` on, and the position of its first one.
    var outgoing: [UInt8] = []
    var start = 0
    var isEnded = false
    var isAbandoned = false
    var wake: (@Sendable () -> Void)?
    var onAbandoned: (@Sendable () -> Void)?
  }

  /// Events that may wait for a reader; beyond it, it is cut off.
  static let longestQueue = 8_192

  private let state = Lock(State())

  let endsWithServer = true

  /// Appends an event.
  ///
  /// - Parameters:
  ///   - name: the event's type.
  ///   - key: what it is about: it takes the place of an event with the same key that still waits and is not final.
  ///   - data: one line of JSON.
  func send(_ name: String, about key: String, _ data: [UInt8], isFinal: Bool) {
    let bytes = Array("event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
    let wake = state.withLock { state in
      guard !state.isEnded, !state.isAbandoned else { return nil as (@Sendable () -> Void)? }
      if let index = state.replaceable[key] {
        state.waiting[index] = Waiting(key: key, isFinal: isFinal, bytes: bytes)
        if isFinal { state.replaceable[key] = nil }
      } else {
        if !isFinal { state.replaceable[key] = state.waiting.count }
        state.waiting.append(Waiting(key: key, isFinal: isFinal, bytes: bytes))
      }
      return state.wake
    }
    wake?()
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
      state.onAbandoned = action
      return state.isAbandoned
    }
    if isAbandoned { action() }
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    state.withLock { state in
      if position - state.start >= state.outgoing.count {
        guard state.waiting.count <= Self.longestQueue else { return .failed }
        guard !state.waiting.isEmpty else { return state.isEnded ? .end : .notYet }
        state.start = position
        state.outgoing = state.waiting.flatMap(\.bytes)
        (state.waiting, state.replaceable) = ([], [:])
      }
      let rest = state.outgoing[(position - state.start)...].prefix(buffer.count)
      buffer.copyBytes(from: rest)
      return .bytes(rest.count)
    }
  }

  func whenReadable(_ wake: @escaping @Sendable () -> Void) {
    state.withLock { $0.wake = wake }
  }

  /// A comment now and then shows whether anybody is there, and keeps proxies from closing what is silent.
  func mayWaitOn() -> Bool {
    state.withLock { state in
      guard state.waiting.isEmpty else { return }
      state.waiting.append(
        Waiting(key: "", isFinal: true, bytes: Array(": nothing new\n\n".utf8)))
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
