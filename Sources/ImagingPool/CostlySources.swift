// CostlySources: remembers sources whose jobs took far longer than their estimate.

import Core

/// The sources that cost more than their headers tell. A pure state machine: the caller passes the
/// time.
///
/// - A job of such a source starts as an expensive one, so a kind of image whose cost no estimate
///   finds holds at most half of the workers.
/// - Two variants of a source that exceed the processor time, and ask for nothing that is expensive
///   itself, blame the source.
struct CostlySources {
  private struct Entry {
    var until: ContinuousClock.Instant
    /// The undemanding transform that exceeded the processor time first.
    var stopped: Transform?
  }

  /// How long a source is remembered after its last such job. Its images change seldom, and a
  /// mistake only makes its jobs wait for others.
  static let lifetime = Duration.seconds(600)
  /// The maximum number of sources. The one that was found first is forgotten first.
  static let limit = 1_024

  private var entries = BoundedTable<SourceIdentity, Entry>(limit: limit)

  /// The number of sources, including expired ones that are not removed yet.
  var count: Int { entries.count }

  /// Whether a job of this source took far longer than its estimate.
  func contains(_ source: SourceIdentity, now: ContinuousClock.Instant) -> Bool {
    entries[source].map { now < $0.until } ?? false
  }

  /// Records that a job took far longer than its estimate.
  mutating func add(_ source: SourceIdentity, now: ContinuousClock.Instant) {
    let isKnown = contains(source, now: now)
    let stopped = isKnown ? entries[source]?.stopped : nil
    entries[source] = Entry(until: now + Self.lifetime, stopped: stopped)
  }

  /// Records that a job exceeded the processor time.
  ///
  /// - Returns: whether the source is to blame: another variant exceeded it before, and neither
  ///   transform explains why.
  mutating func stopped(
    _ source: SourceIdentity, _ transform: Transform, now: ContinuousClock.Instant
  ) -> Bool {
    add(source, now: now)
    guard transform.isUndemanding else { return false }
    if let first = entries[source]?.stopped { return first != transform }
    entries[source]?.stopped = transform
    return false
  }
}
