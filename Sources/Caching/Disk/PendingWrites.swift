// PendingWrites: writes and removals that wait for the disk.

import Core

/// A source or a variant on disk.
enum DiskEntry: Sendable {
  case variant(Variant)
  case source(Source)

  var key: CacheKey {
    switch self {
    case .variant(let variant): variant.key
    case .source(let source): source.key
    }
  }

  var body: Variant.Body {
    switch self {
    case .variant(let variant): variant.body
    case .source(let source): .file(source.file)
    }
  }

  var bodyLength: Int { body.count }

  /// What its file has besides key and body.
  var content: EntryMetadata.Content {
    switch self {
    case .variant(let variant): .variant(variant.info)
    case .source(let source):
      .source(
        source.origin, source.freshness, version: source.version, generation: source.generation)
    }
  }

  /// The purge generation at the start of its load; see `PurgeList`.
  var generation: Int {
    switch self {
    case .variant(let variant): variant.info.generation
    case .source(let source): source.generation
    }
  }
}

/// The latest pending operation of each key, a write or a removal. A later operation replaces an
/// earlier one, which is then skipped.
final class PendingWrites: Sendable {
  /// A pending operation of one key. Operations are compared by identity.
  final class Ticket: Sendable {
    let key: CacheKey
    let digest: EntryDigest
    /// The entry to write; `nil` for a removal.
    let entry: DiskEntry?
    /// Whether the entry is a variant of a free-form request (`VariantQuota`).
    let isFreeForm: Bool?
    /// Bytes held while the operation is pending.
    let cost: Int

    private init(
      _ key: CacheKey, _ digest: EntryDigest, storing entry: DiskEntry? = nil,
      isFreeForm: Bool? = false
    ) {
      self.key = key
      self.digest = digest
      self.entry = entry
      self.isFreeForm = isFreeForm
      cost = (entry?.bodyLength ?? 0) + key.text.utf8.count + 512
    }

    convenience init(storing entry: DiskEntry, isFreeForm: Bool? = false) {
      let digest = EntryDigest(of: entry.key)
      self.init(entry.key, digest, storing: entry, isFreeForm: isFreeForm)
    }

    convenience init(removing key: CacheKey) { self.init(key, EntryDigest(of: key)) }

    /// Creates a removal that replaces a pending write.
    fileprivate convenience init(revoking other: Ticket) { self.init(other.key, other.digest) }
  }

  /// The result of adding a ticket.
  enum Admission {
    /// The caller must queue a job for it.
    case queue
    /// The job of the replaced ticket will claim it.
    case replaced
    /// The limit is reached.
    case refused
  }

  private struct State {
    var tickets: [CacheKey: (ticket: Ticket, isClaimed: Bool)] = [:]
    var bytes = 0

    func tickets(storing isSelected: (Ticket, DiskEntry) -> Bool) -> [Ticket] {
      tickets.values.compactMap { write in
        write.ticket.entry.map { isSelected(write.ticket, $0) } ?? false ? write.ticket : nil
      }
    }
  }

  private let limit: Int
  private let state = Lock(State())

  init(limit: Int) { self.limit = limit }

  /// Bytes of all pending operations.
  var bytes: Int { state.withLock { $0.bytes } }
  /// Whether at most half of the limit is used.
  var isHalfEmpty: Bool { bytes <= limit / 2 }
  var isEmpty: Bool { state.withLock { $0.tickets.isEmpty } }

  /// Returns the pending operation of `key`.
  func ticket(for key: CacheKey) -> Ticket? {
    state.withLock { $0.tickets[key]?.ticket }
  }

  /// Makes `ticket` the pending operation of its key. Removals are never refused.
  func add(_ ticket: Ticket) -> Admission {
    // The replaced ticket may hold a large body, so it is released outside the lock.
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

  /// Replaces the pending writes that `isSelected` selects with removals. Pending removals stay.
  ///
  /// - Returns: the removals. The caller must queue a job for each.
  func revoke(where isSelected: (Ticket, DiskEntry) -> Bool) -> [Ticket] {
    // The replaced tickets may hold large bodies, so they are released outside the lock.
    let (revoked, removals) = state.withLock { state -> ([Ticket], [Ticket]) in
      let revoked = state.tickets(storing: isSelected)
      let removals = revoked.map(Ticket.init(revoking:))
      for (old, new) in zip(revoked, removals) {
        state.tickets[new.key] = (new, false)
        state.bytes += new.cost - old.cost
      }
      return (revoked, removals)
    }
    return withExtendedLifetime(revoked) { removals }
  }

  /// Drops the pending writes that `isSelected` selects. A write in progress is then discarded at
  /// its end.
  ///
  /// - Returns: the dropped tickets.
  func drop(where isSelected: (DiskEntry) -> Bool) -> [Ticket] {
    state.withLock { state in
      let dropped = state.tickets(storing: { _, entry in isSelected(entry) })
      for ticket in dropped {
        state.tickets[ticket.key] = nil
        state.bytes -= ticket.cost
      }
      return dropped
    }
  }

  /// Claims the pending operation of `key` for a disk thread, once.
  func claim(_ key: CacheKey, onlyRemoval: Bool) -> Ticket? {
    state.withLock { state in
      guard let waiting = state.tickets[key], !waiting.isClaimed,
        !onlyRemoval || waiting.ticket.entry == nil
      else { return nil }
      state.tickets[key] = (waiting.ticket, true)
      return waiting.ticket
    }
  }

  /// Returns whether `ticket` is still the pending operation of its key.
  func isCurrent(_ ticket: Ticket) -> Bool {
    state.withLock { $0.tickets[ticket.key]?.ticket === ticket }
  }

  /// Removes `ticket` when its work is done. A later operation of the key stays.
  func finish(_ ticket: Ticket) {
    state.withLock { state in
      guard state.tickets[ticket.key]?.ticket === ticket else { return }
      state.tickets[ticket.key] = nil
      state.bytes -= ticket.cost
    }
  }

  /// Drops all pending operations.
  func removeAll() {
    let left = state.withLock { state in
      state.bytes = 0
      defer { state.tickets = [:] }
      return state.tickets
    }
    withExtendedLifetime(left) {}
  }
}
