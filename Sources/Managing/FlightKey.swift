// FlightKey: which requests can share one flight.

import Model

/// What a flight is for. Those who look at other things, or keep other things, are no company: a request that wants the
/// origin asked is not answered by a flight that may have found something kept.
struct FlightKey: Hashable, Sendable {
  /// What is wanted.
  let key: CacheKey
  /// How, other than the priority, which is raised by whoever joins, and the detachment, which is the flight's as soon
  /// as it is one waiter's.
  private let options: LoadOptions

  init(_ key: CacheKey, _ options: LoadOptions) {
    self.key = key
    var options = options
    options.priority = .normal
    options.isDetached = false
    self.options = options
  }
}

extension CacheUse {
  /// Whether what is kept may be the answer.
  var looks: Bool { self == .normal || self == .only }
}
