// FiguresCache: the JSON of `/stats`, computed at most once per lifetime.

import Model
import Platform
import Telemetry

/// Reuses the figures of `/stats` for a while, so that requests for them cost little however many there are.
///
/// One thread at a time computes. Meanwhile the others get the previous figures, and do not wait.
final class FiguresCache: Sendable {
  private struct State {
    var json: [UInt8]?
    var isDraining = false
    /// Monotonic milliseconds.
    var computedAt = 0
    var isComputing = false
  }

  private let lifetime: Int
  private let compute: @Sendable (Bool) -> Stats
  private let clock: @Sendable () -> Int
  private let state = Lock(State())

  /// Creates a cache without figures.
  ///
  /// - Parameters:
  ///   - lifetime: how long figures are reused; 0: not at all.
  ///   - clock: monotonic milliseconds.
  ///   - compute: the figures, by whether the server stops. Must not block.
  init(
    lifetime: Duration, clock: @escaping @Sendable () -> Int = Clock.coarseMilliseconds,
    compute: @escaping @Sendable (_ isDraining: Bool) -> Stats
  ) {
    self.lifetime = lifetime.wholeMilliseconds
    self.clock = clock
    self.compute = compute
  }

  /// Returns the figures as JSON. Those from before a change of `isDraining` are not reused.
  ///
  /// - Throws: `internal` if they cannot be encoded.
  func json(isDraining: Bool) throws(ImageError) -> [UInt8] {
    let now = clock()
    let known = state.withLock { state -> [UInt8]? in
      if lifetime > 0, let json = state.json, state.isDraining == isDraining,
        state.isComputing || now - state.computedAt < lifetime
      {
        return json
      }
      state.isComputing = true
      return nil
    }
    if let known { return known }
    // Outside of the lock, because it asks all parts.
    let computed: Result<[UInt8], ImageError> = Result { () throws(ImageError) in
      try JSONResponse(compute(isDraining)).bytes
    }
    state.withLock { state in
      state.isComputing = false
      guard case .success(let json) = computed else { return }
      state.json = json
      state.isDraining = isDraining
      state.computedAt = now
    }
    return try computed.get()
  }
}
