// DiskVariants: how the disk tier forgets every variant of a source, without reading a file.

import Model

extension DiskParts {
  /// Files removed in one go: look-ups wait behind it.
  private static let removalsAtOnce = 32

  /// Makes every variant of a source unreadable and has their files removed; `done` is called once.
  func removeVariants(of source: CacheKey, then done: @escaping @Sendable () -> Void) {
    let digest = EntryDigest(of: source)
    // In this order: whoever writes one of them at this moment either finds its word revoked, and gives up, or is in
    // the index already; or else has found it valid just before, and is followed by the removal.
    let removals = store.pending.revokeVariants(digest.high)
    let hidden = store.index.hideVariants(digest.high)
    if removals.isEmpty, let hidden, hidden.isEmpty { return done() }
    let isQueued = workers.remove { [self] in
      for removal in removals {
        if let ticket = store.pending.claim(removal.key, onlyRemoval: true) { store.write(ticket) }
      }
      if let hidden {
        // What was stored under such a name since then is not hidden, and stays.
        remove(hidden[...], where: { $0?.isDead == true }, then: done)
      } else {
        remove(store.folder.variants(of: digest)[...], where: { _ in true }, then: done)
      }
    }
    if !isQueued {
      for removal in removals { store.pending.finish(removal) }
      done()
    }
  }

  /// Removes files on the tier's threads, some at a time, so that a source with very many variants keeps nobody waiting.
  private func remove(
    _ digests: ArraySlice<EntryDigest>, where isWanted: @escaping @Sendable (EntryRecord?) -> Bool,
    then done: @escaping @Sendable () -> Void
  ) {
    var rest = digests
    while !rest.isEmpty {
      for digest in rest.prefix(Self.removalsAtOnce) {
        store.removeFile(digest, .variant, where: isWanted)
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

extension DiskFolder {
  /// The digests of a source's variants, by the names of their files.
  fileprivate func variants(of source: EntryDigest) -> [EntryDigest] {
    Self.names(in: folder(.variant, source.folder)).compactMap { name in
      EntryDigest(hexadecimal: name).flatMap { $0.high == source.high ? $0 : nil }
    }
  }
}
