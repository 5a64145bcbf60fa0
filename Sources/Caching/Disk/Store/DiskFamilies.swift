// DiskFamilies: how the disk tier forgets all entries of a URL, or all variants of a source, without reading a file.

import Model
import Platform

extension DiskEngine {
  /// What a removal came to.
  struct Removal {
    /// Entries that were found.
    var count = 0
    /// Whether none of them has a file any more, for certain.
    var isComplete = true
  }

  /// Files removed in one go: look-ups wait behind it.
  private static let removalsAtOnce = 32

  /// Makes every entry of a family unreadable and has their files removed; `done` is called once.
  ///
  /// - Parameter isMeant: Asked of what is waiting to be written, with a lock held.
  func remove(
    _ family: EntryGroup, where isMeant: (DiskEntry) -> Bool = { _ in true },
    then done: @escaping @Sendable (Removal) -> Void
  ) {
    // In this order: whoever writes one of them at this moment either finds its word revoked, and gives up, or is in
    // the index already; or else has found it valid just before, and is followed by the removal.
    let removals = store.pending.revoke { ticket, entry in
      family.contains(ticket.digest, EntryKind(of: ticket.key)) && isMeant(entry)
    }
    let known = store.index.hide(family)
    if removals.isEmpty, let known, known.hidden.isEmpty, known.before.isEmpty {
      return done(Removal(isComplete: !store.isScanDue.load(ordering: .relaxed)))
    }
    let isQueued = workers.remove { [self] in
      for removal in removals {
        if let ticket = store.pending.claim(removal.key, onlyRemoval: true) { store.write(ticket) }
      }
      let found = known?.hidden ?? store.folder.names(of: family)
      let all = Set(found).union(
        removals.map { EntryName(digest: $0.digest, kind: EntryKind(of: $0.key)) })
      // What was stored under such a name since then is not hidden, and stays.
      remove(
        (found + (known?.before ?? []))[...], where: { known == nil || $0?.isTombstone == true }
      ) {
        // A folder that cannot be listed looks like an empty one, so only a complete index is sure.
        let isComplete =
          known != nil && !store.isScanDue.load(ordering: .relaxed) && !store.index.hasDead(family)
        done(Removal(count: all.count, isComplete: isComplete))
      }
    }
    if !isQueued {
      for removal in removals { store.pending.finish(removal) }
      done(Removal(count: 0, isComplete: false))
    }
  }

  /// Carries out the purge of a URL; tells how many entries there were.
  ///
  /// - Throws: `internal` where it could not be carried out, nor be written down for the next run.
  func purge(_ purge: Purge, of url: SourceURL) async throws(ImageError) -> Int {
    let family = EntryGroup.all(of: url)
    let result = Lock(Removal())
    await withCheckedContinuation { continuation in
      remove(
        family,
        where: { $0.generation < purge.number && purge.scope.matches($0.key, CacheKeyFilter()) }
      ) { [store] removal in
        var removal = removal
        if removal.count > 0, !store.sync(family) { removal.isComplete = false }
        result.withLock { $0 = removal }
        continuation.resume()
      }
    }
    let removal = result.withLock { $0 }
    store.counts.purged.add(removal.count)
    if removal.isComplete {
      store.purges.finish(purge)
      // For its number alone, which is to be less than the next one's.
      sweeper.note()
    } else {
      _ = try await sweeper.perform(.writeDown).written()
    }
    return removal.count
  }

  /// Removes files on the tier's threads, some at a time, so that a URL with very many entries keeps nobody waiting.
  private func remove(
    _ names: ArraySlice<EntryName>, where isWanted: @escaping @Sendable (EntryRecord?) -> Bool,
    then done: @escaping @Sendable () -> Void
  ) {
    var rest = names
    while !rest.isEmpty {
      for name in rest.prefix(Self.removalsAtOnce) {
        store.removeFile(name.digest, name.kind, where: isWanted)
      }
      rest = rest.dropFirst(Self.removalsAtOnce)
      let later = rest
      // A tier that is shutting down takes no new jobs, and no look-up waits there: what is left goes now, or the next
      // run would find it.
      if !later.isEmpty, workers.remove({ [self] in remove(later, where: isWanted, then: done) }) {
        return
      }
    }
    done()
  }
}

extension DiskStore {
  /// Has it on the medium that files of a family are gone; tells whether it is. A power failure is not to bring back what
  /// was purged.
  fileprivate func sync(_ family: EntryGroup) -> Bool {
    do {
      for kind in family.kinds { try folder.sync(kind, family.place.folder) }
      return true
    } catch {
      fail(removing, error)
      return false
    }
  }
}

extension DiskFolder {
  /// The entries of a family, by the names of their files.
  fileprivate func names(of family: EntryGroup) -> [EntryName] {
    family.kinds.flatMap { kind in
      Self.names(in: folder(kind, family.place.folder)).compactMap { name in
        EntryDigest(hexadecimal: name).flatMap { digest in
          family.contains(digest, kind) ? EntryName(digest: digest, kind: kind) : nil
        }
      }
    }
  }
}
