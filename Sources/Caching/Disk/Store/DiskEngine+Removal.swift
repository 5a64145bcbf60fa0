// DiskEngine+Removal: removes a URL's entries, or a source's variants, without opening files.

import Model
import Platform

extension DiskEngine {
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
