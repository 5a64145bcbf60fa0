// DiskEngine: the parts of an enabled disk tier and the operations that combine them.

import Core

/// The parts of an enabled disk tier.
struct DiskEngine {
  let store: DiskStore
  /// The disk threads. Reads and removals go before writes, and one thread is always free for them.
  let threads: BlockingThreads
  let maintenance: DiskMaintenance
  let sweeper: DiskSweeper

  /// Starts disk threads, at least 2. Writes wait until `release`.
  static func threads(
    _ configuration: DiskTierConfiguration
  ) throws(DiskTierError) -> BlockingThreads {
    let count = max(configuration.threads, 2)
    let threads = BlockingThreads(
      name: "pictor-disk-", threads: count, background: count - 1, isHeld: true,
      queueLimit: configuration.readQueueLimit, deadline: configuration.readTimeout)
    do throws(SystemError) {
      try threads.start()
    } catch {
      throw .noThread(reason: error.description)
    }
    return threads
  }

  /// Looks up an entry in the pending writes, then in the index, then on disk.
  func find(_ key: CacheKey) async -> DiskEntry? {
    if let ticket = store.pending.ticket(for: key) { return unlessPurged(ticket.entry) }
    let digest = EntryDigest(of: key)
    if case .absent = store.index.lookUp(digest) { return nil }
    do throws(BlockingFailure) {
      return try await threads.value { [store] in store.read(key, digest: digest) }
    } catch {
      if error == .full { store.counts.failures.add() }
      return nil
    }
  }

  /// Looks up a variant without blocking: in the pending writes, then in the kernel's caches.
  ///
  /// - Parameter isWanted: Called before the body is read. If it returns `false`, the result is
  ///   `nil`.
  func findAtOnce(_ key: CacheKey, where isWanted: (VariantInfo) -> Bool) -> Variant? {
    guard !store.isEnded.load(ordering: .relaxed) else { return nil }
    if let ticket = store.pending.ticket(for: key) {
      guard case .variant(let variant)? = unlessPurged(ticket.entry), isWanted(variant.info) else {
        return nil
      }
      return variant
    }
    let digest = EntryDigest(of: key)
    guard case .present(let record) = store.index.lookUp(digest),
      record.bytes <= min(EntryFile.longestAtOnce, store.promotionThreshold)
    else { return nil }
    // A purged entry is a miss here; the normal read path removes its file.
    func accepts(_ info: VariantInfo) -> Bool {
      !store.purges.covers(key, generation: info.generation) && isWanted(info)
    }
    let known = store.openEntries.entry(of: digest)
    if let open = known?.entry, open.key == key {
      switch EntryFile.readAtOnce(open, memory: store.memory, where: accepts) {
      case .found(let variant):
        noteUse(digest, record: record, verified: open.fingerprint)
        return variant
      case .unavailable: return nil
      case .changed: store.openEntries.drop(digest)
      }
    }
    guard let place = store.folder.place,
      let found = EntryFile.readAtOnce(
        DiskFolder.relativePath(.variant, of: digest), in: place.descriptor, key: key,
        limit: record.bytes, verified: record.verified,
        memory: store.memory, where: accepts)
    else { return nil }
    if let visit = known?.visit { store.openEntries.keep(digest, since: visit, found.file) }
    noteUse(digest, record: record, verified: found.file.fingerprint)
    return found.variant
  }

  /// Records a use. Updating the access time may block, so a disk thread does it.
  private func noteUse(_ digest: EntryDigest, record: EntryRecord, verified: UInt32) {
    if store.noteUse(digest, record: record, verified: verified) {
      _ = threads.add(.background) { [store] in store.touch(digest, kind: .variant) }
    }
  }

  private func unlessPurged(_ entry: DiskEntry?) -> DiskEntry? {
    entry.flatMap { store.purges.covers($0.key, generation: $0.generation) ? nil : $0 }
  }

  /// Returns the metadata of the entry of `key`, without its body. Changes no state and no
  /// counters.
  func look(_ key: CacheKey) async -> CacheEntryInfo? {
    if let ticket = store.pending.ticket(for: key) {
      return unlessPurged(ticket.entry).map {
        switch $0 {
        case .variant(let variant): CacheEntryInfo(variant)
        case .source(let source): CacheEntryInfo(source)
        }
      }
    }
    let digest = EntryDigest(of: key)
    if case .absent = store.index.lookUp(digest) { return nil }
    return (try? await threads.value { [store] in store.look(key, digest: digest) }) ?? nil
  }

  /// Makes an entry readable at once and queues its write. Returns whether the queue had room.
  /// Drops an entry that was purged since its loading began or is too large for the tier.
  ///
  /// - Parameter isFreeForm: whether the entry's request was free-form; `nil`: as before.
  func storeEntry(_ entry: DiskEntry, isFreeForm: Bool? = false) -> Bool {
    guard !store.purges.covers(entry.key, generation: entry.generation) else { return false }
    guard entry.bodyLength <= store.space.maximumBytes(of: EntryKind(of: entry.key)) else {
      store.counts.failures.add()
      forget(entry.key)
      return false
    }
    let ticket = PendingWrites.Ticket(storing: entry, isFreeForm: isFreeForm)
    switch store.pending.add(ticket) {
    case .replaced:
      return true
    case .queue:
      if store.pending.isHalfEmpty { store.queueing.succeed() }
      let isQueued = threads.add(.background, isBounded: false) { [store] in
        if let ticket = store.pending.claim(entry.key, onlyRemoval: false) { store.write(ticket) }
      }
      if !isQueued { store.pending.finish(ticket) }
      return isQueued
    case .refused:
      store.counts.failures.add()
      store.queueing.fail("the write queue is full")
      forget(entry.key)
      return false
    }
  }

  /// Returns whether a variant may be stored now. Counts a deferred one.
  func admits(_ key: CacheKey, for demand: VariantDemand) -> Bool {
    let isAdmitted = store.admission.admits(
      key, for: demand, hasRoom: store.space[.variant].isBelow(store.fractionLeft),
      // A stored variant is replaced: an old one would outlive it.
      isStored: !isUnknown(key))
    if !isAdmitted { store.counts.deferred.add() }
    return isAdmitted
  }

  /// Whether the tier certainly has no entry of a key.
  private func isUnknown(_ key: CacheKey) -> Bool {
    guard store.pending.ticket(for: key) == nil else { return false }
    return if case .absent = store.index.lookUp(EntryDigest(of: key)) { true } else { false }
  }

  /// Removes the entry of a key, because it is not the one stored last.
  private func forget(_ key: CacheKey) {
    if !isUnknown(key) { removeEntry(key) {} }
  }

  /// Makes an entry unreadable at once and has its file removed; `done` is called once.
  func removeEntry(_ key: CacheKey, then done: @escaping @Sendable () -> Void) {
    let ticket = PendingWrites.Ticket(removing: key)
    _ = store.pending.add(ticket)
    let isQueued = threads.add(isBounded: false) { [store] in
      if let ticket = store.pending.claim(key, onlyRemoval: true) { store.write(ticket) }
      done()
    }
    if !isQueued {
      store.pending.finish(ticket)
      done()
    }
  }

  /// Blocks until all pending writes are done and all threads have ended, or until the time limit.
  ///
  /// - Returns: whether everything ended in time.
  func shutDown(_ limit: Duration) -> Bool {
    store.isEnded.store(true, ordering: .relaxed)
    let deadline = ContinuousClock.now + limit
    let isWritten = threads.finish(within: limit) && store.pending.isEmpty
    store.pending.removeAll()
    maintenance.stop()
    sweeper.stop()
    func rest() -> Duration { max(ContinuousClock.now.duration(to: deadline), .seconds(1)) }
    let isEnded = maintenance.waitForEnd(within: rest()) && sweeper.waitForEnd(within: rest())
    store.openEntries.dropAll()
    // A thread that is still running may still write, so the lock stays until the process ends.
    if isWritten && isEnded { store.folder.unlock() }
    return isWritten && isEnded
  }

  /// The result of a removal.
  struct Removal {
    /// The number of entries found.
    var count = 0
    /// Whether certainly none of them has a file any more.
    var isComplete = true
  }

  /// Files removed in one job, because queued look-ups wait for it.
  private static let removalsAtOnce = 32

  /// Makes every entry of a group unreadable and removes the files. Calls `done` once.
  ///
  /// - Parameter isSelected: Selects among the pending writes. Called with a lock held.
  func remove(
    _ group: EntryGroup, where isSelected: (DiskEntry) -> Bool = { _ in true },
    then done: @escaping @Sendable (Removal) -> Void
  ) {
    // The order matters. A write in progress either finds its ticket revoked and gives up, or its
    // record is in the index already. A write that passed its check just before is followed by the
    // removal.
    let removals = store.pending.revoke { ticket, entry in
      group.contains(ticket.digest, kind: EntryKind(of: ticket.key)) && isSelected(entry)
    }
    let known = store.index.hide(group)
    if removals.isEmpty, let known, known.hidden.isEmpty, known.hiddenBefore.isEmpty {
      return done(Removal(isComplete: !store.isScanDue.load(ordering: .relaxed)))
    }
    let isQueued = threads.add(isBounded: false) { [self] in
      for removal in removals {
        if let ticket = store.pending.claim(removal.key, onlyRemoval: true) { store.write(ticket) }
      }
      let found = known?.hidden ?? store.folder.names(of: group)
      let all = Set(found).union(
        removals.map { EntryName(digest: $0.digest, kind: EntryKind(of: $0.key)) })
      // An entry stored later under such a name is no tombstone and stays.
      remove(
        (found + (known?.hiddenBefore ?? []))[...],
        where: { known == nil || $0?.isTombstone == true }
      ) {
        // An unreadable folder looks empty, so only a complete index is certain.
        let isComplete =
          known != nil && !store.isScanDue.load(ordering: .relaxed)
          && !store.index.hasTombstone(group)
        done(Removal(count: all.count, isComplete: isComplete))
      }
    }
    if !isQueued {
      for removal in removals { store.pending.finish(removal) }
      done(Removal(count: 0, isComplete: false))
    }
  }

  /// Carries out the purge of a URL. Returns the number of entries.
  ///
  /// - Throws: `internal` if the purge could neither be carried out nor be written to the journal.
  func purge(_ purge: Purge, of url: SourceURL) async throws(ImageError) -> Int {
    let group = EntryGroup.all(of: url)
    let result = Lock(Removal())
    await withCheckedContinuation { continuation in
      remove(
        group,
        where: {
          $0.generation < purge.number && purge.scope.matches($0.key, filter: CacheKeyFilter())
        }
      ) { [store] removal in
        var removal = removal
        if removal.count > 0, !store.sync(group) { removal.isComplete = false }
        result.withLock { $0 = removal }
        continuation.resume()
      }
    }
    let removal = result.withLock { $0 }
    store.counts.purged.add(removal.count)
    if removal.isComplete {
      store.purges.finish(purge)
      // The journal must hold the purge's number, so that later purges get greater ones.
      sweeper.note()
    } else {
      _ = try await sweeper.perform(.writeDown(purge)).written()
    }
    return removal.count
  }

  /// Removes files on the disk threads in batches, so that a URL with very many entries does not
  /// block other jobs.
  private func remove(
    _ names: ArraySlice<EntryName>, where isWanted: @escaping @Sendable (EntryRecord?) -> Bool,
    then done: @escaping @Sendable () -> Void
  ) {
    var rest = names
    while !rest.isEmpty {
      for name in rest.prefix(Self.removalsAtOnce) {
        store.removeFile(name.digest, kind: name.kind, where: isWanted)
      }
      rest = rest.dropFirst(Self.removalsAtOnce)
      let later = rest
      // A tier that is shutting down refuses new jobs. No look-up waits then, so the rest goes now;
      // otherwise the next run would find it.
      if !later.isEmpty,
        threads.add(isBounded: false, { [self] in remove(later, where: isWanted, then: done) })
      {
        return
      }
    }
    done()
  }
}

extension DiskStore {
  /// Syncs the folders of a group, so that a power failure does not bring back purged files.
  /// Returns whether it succeeded.
  fileprivate func sync(_ group: EntryGroup) -> Bool {
    do {
      for kind in group.kinds { try folder.sync(kind, number: group.place.folder) }
      return true
    } catch {
      fail(removing, with: error)
      return false
    }
  }
}

extension DiskFolder {
  /// Returns the entries of a group that are on disk, by file name.
  fileprivate func names(of group: EntryGroup) -> [EntryName] {
    group.kinds.flatMap { kind in
      Self.names(in: folder(kind, number: group.place.folder)).compactMap { name in
        EntryDigest(hexadecimal: name).flatMap { digest in
          group.contains(digest, kind: kind) ? EntryName(digest: digest, kind: kind) : nil
        }
      }
    }
  }
}
