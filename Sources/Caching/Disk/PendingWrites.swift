// PendingWrites: what is on its way to disk and can be read back already.

import Model
import Platform

/// Something the disk tier keeps.
enum DiskEntry: Sendable {
  case variant(Variant)
  case source(Source)

  var key: CacheKey {
    switch self {
    case .variant(let variant): variant.key
    case .source(let source): source.key
    }
  }

  /// Whether its body goes to clients without passing through this process.
  var isSentFromFile: Bool {
    if case .variant(let variant) = self, case .file = variant.body { true } else { false }
  }

  var bodyLength: Int {
    switch self {
    case .variant(let variant): variant.body.count
    case .source(let source): source.file.count
    }
  }

  /// The generation of its loading; see `PurgeList`.
  var generation: Int {
    switch self {
    case .variant(let variant): variant.info.generation
    case .source(let source): source.generation
    }
  }

  var freshness: Freshness {
    switch self {
    case .variant(let variant): variant.info.freshness
    case .source(let source): source.freshness
    }
  }
}

/// The last word on each key that has not reached the disk yet: something stored, or a removal. A later word replaces
/// an earlier one, whose work then finds that it is no longer wanted.
final class PendingWrites: Sendable {
  /// One word on one key; its identity tells it from later ones.
  final class Ticket: Sendable {
    let key: CacheKey
    let digest: EntryDigest
    /// What is to be written; `nil`: what there is, is to be removed.
    let entry: DiskEntry?
    /// Bytes held while it waits.
    let cost: Int

    init(storing entry: DiskEntry) {
      (key, digest, self.entry) = (entry.key, EntryDigest(of: entry.key), entry)
      cost = entry.bodyLength + entry.key.text.utf8.count + 512
    }

    init(removing key: CacheKey) {
      (self.key, digest, entry) = (key, EntryDigest(of: key), nil)
      cost = key.text.utf8.count + 512
    }

    /// A removal of what another ticket would store.
    fileprivate init(revoking other: Ticket) {
      (key, digest, entry) = (other.key, other.digest, nil)
      cost = key.text.utf8.count + 512
    }
  }

  /// What adding a ticket came to.
  enum Admission {
    /// Somebody has to be sent for it.
    case queue
    /// Whoever was sent for the one it replaces will find it.
    case replaced
    /// Too much is waiting.
    case refused
  }

  private struct State {
    var tickets: [CacheKey: (ticket: Ticket, isClaimed: Bool)] = [:]
    var bytes = 0

    func tickets(storing isMeant: (Ticket, DiskEntry) -> Bool) -> [Ticket] {
      tickets.values.compactMap { word in
        word.ticket.entry.map { isMeant(word.ticket, $0) } ?? false ? word.ticket : nil
      }
    }
  }

  private let limit: Int
  private let state = Lock(State())

  init(limit: Int) { self.limit = limit }

  /// Bytes waiting.
  var bytes: Int { state.withLock { $0.bytes } }
  /// Whether there is much room again.
  var isHalfEmpty: Bool { bytes <= limit / 2 }
  var isEmpty: Bool { state.withLock { $0.tickets.isEmpty } }

  /// The last word on `key`.
  func ticket(for key: CacheKey) -> Ticket? {
    state.withLock { $0.tickets[key]?.ticket }
  }

  /// Makes `ticket` the last word; a removal is never refused.
  func add(_ ticket: Ticket) -> Admission {
    // What is replaced is released after the lock: it may hold a large body.
    let (admission, replaced) = state.withLock { state -> (Admission, Ticket?) in
      let old = state.tickets[ticket.key]
      let bytes = state.bytes - (old?.ticket.cost ?? 0) + ticket.cost
      guard ticket.entry == nil || bytes <= limit else { return (.refused, nil) }
      state.tickets[ticket.key] = (ticket, false)
      state.bytes = bytes
      guard let old, !old.isClaimed, ticket.entry != nil, old.ticket.entry != nil else {
        return (.queue, old?.ticket)
      }
      return (.replaced, old.ticket)
    }
    return withExtendedLifetime(replaced) { admission }
  }

  /// Makes removals the last words on what is to be stored and `isMeant` says so of; what is to be removed already stays
  /// as it is.
  ///
  /// - Returns: the removals, for which somebody has to be sent.
  func revoke(where isMeant: (Ticket, DiskEntry) -> Bool) -> [Ticket] {
    // What is revoked is released after the lock: it may hold large bodies.
    let (revoked, removals) = state.withLock { state -> ([Ticket], [Ticket]) in
      let revoked = state.tickets(storing: isMeant)
      let removals = revoked.map(Ticket.init(revoking:))
      for (old, new) in zip(revoked, removals) {
        state.tickets[new.key] = (new, false)
        state.bytes += new.cost - old.cost
      }
      return (revoked, removals)
    }
    return withExtendedLifetime(revoked) { removals }
  }

  /// Gives up what is to be stored and `isMeant` says so of; whatever of it is being written then finds that it is not
  /// wanted any more.
  ///
  /// - Returns: what was given up.
  func drop(where isMeant: (DiskEntry) -> Bool) -> [Ticket] {
    state.withLock { state in
      let dropped = state.tickets(storing: { _, entry in isMeant(entry) })
      for ticket in dropped {
        state.tickets[ticket.key] = nil
        state.bytes -= ticket.cost
      }
      return dropped
    }
  }

  /// Gives the last word on `key` to whoever was sent for it, once.
  func claim(_ key: CacheKey, onlyRemoval: Bool) -> Ticket? {
    state.withLock { state in
      guard let waiting = state.tickets[key], !waiting.isClaimed,
        !onlyRemoval || waiting.ticket.entry == nil
      else { return nil }
      state.tickets[key] = (waiting.ticket, true)
      return waiting.ticket
    }
  }

  /// Whether `ticket` is still the last word.
  func isCurrent(_ ticket: Ticket) -> Bool {
    state.withLock { $0.tickets[ticket.key]?.ticket === ticket }
  }

  /// Notes that `ticket` is done with; a later word stays.
  func finish(_ ticket: Ticket) {
    state.withLock { state in
      guard state.tickets[ticket.key]?.ticket === ticket else { return }
      state.tickets[ticket.key] = nil
      state.bytes -= ticket.cost
    }
  }

  /// Gives up everything that waits.
  func removeAll() {
    let left = state.withLock { state in
      state.bytes = 0
      defer { state.tickets = [:] }
      return state.tickets
    }
    withExtendedLifetime(left) {}
  }
}
