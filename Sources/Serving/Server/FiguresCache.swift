// FiguresCache: the text of `/stats` or of `/metrics`, computed at most once per lifetime.

import Core

/// Reuses the text of the figures for a while, so that many requests for them cost little.
///
/// One thread at a time computes. Meanwhile the others get the previous figures, and do not wait.
final class FiguresCache: Sendable {
  private struct State {
    /// Milliseconds.
    var lifetime: Int
    var text: [UInt8]?
    var isDraining = false
    /// Monotonic milliseconds.
    var computedAt = 0
    var isComputing = false
  }

  private let compute: @Sendable (Bool) -> Figures
  private let encode: @Sendable (Figures) throws(ImageError) -> [UInt8]
  private let clock: @Sendable () -> Int
  private let state: Lock<State>

  /// Creates a cache without figures.
  ///
  /// - Parameters:
  ///   - lifetime: how long figures are reused; 0: not at all.
  ///   - clock: monotonic milliseconds.
  ///   - encode: returns the text of the figures, by default JSON.
  ///   - compute: the figures, by whether the server stops. Must not block.
  init(
    lifetime: Duration, clock: @escaping @Sendable () -> Int = Clock.coarseMilliseconds,
    encode: @escaping @Sendable (Figures) throws(ImageError) -> [UInt8] = json,
    compute: @escaping @Sendable (_ isDraining: Bool) -> Figures
  ) {
    state = Lock(State(lifetime: lifetime.wholeMilliseconds))
    self.clock = clock
    self.encode = encode
    self.compute = compute
  }

  /// Changes how long figures are reused.
  func set(lifetime: Duration) { state.withLock { $0.lifetime = lifetime.wholeMilliseconds } }

  static func json(_ figures: Figures) throws(ImageError) -> [UInt8] {
    try JSONResponse(figures).bytes
  }

  /// Returns the text of the figures. Those from before a change of `isDraining` are not reused.
  ///
  /// - Throws: `internal` if they cannot be encoded.
  func bytes(isDraining: Bool) throws(ImageError) -> [UInt8] {
    let now = clock()
    let known = state.withLock { state -> [UInt8]? in
      if state.lifetime > 0, let text = state.text, state.isDraining == isDraining,
        state.isComputing || now - state.computedAt < state.lifetime
      {
        return text
      }
      state.isComputing = true
      return nil
    }
    if let known { return known }
    // Outside of the lock, because it asks all parts.
    let computed: Result<[UInt8], ImageError> = Result { () throws(ImageError) in
      try encode(compute(isDraining))
    }
    state.withLock { state in
      state.isComputing = false
      guard case .success(let text) = computed else { return }
      state.text = text
      state.isDraining = isDraining
      state.computedAt = now
    }
    return try computed.get()
  }
}
