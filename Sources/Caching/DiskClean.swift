// DiskClean: what is removed when the disk tier is full, or entries are too old; SDWebImage's clean in two phases.

import Model

/// Which entries go so that so many bytes are freed: all that were last used before a moment, and of those used at that
/// very second so many bytes as are still missing.
struct CleanPlan: Equatable {
  /// Entries last used before it go.
  var cutoff: UnixTime
  /// Bytes to be freed among those last used at `cutoff`.
  var bytesAtCutoff: Int

  /// The plan that frees at least `bytes`, least recently used first; `nil` where there is nothing to be done.
  init?(freeing bytes: Int, of entries: [(access: UnixTime, bytes: Int)]) {
    guard bytes > 0, !entries.isEmpty else { return nil }
    var missing = bytes
    var (second, sum) = (UnixTime(seconds: 0), 0)
    for entry in entries.sorted(by: { $0.access < $1.access }) {
      if entry.access != second {
        missing -= sum
        (second, sum) = (entry.access, 0)
      }
      sum += entry.bytes
      if sum >= missing { break }
    }
    (cutoff, bytesAtCutoff) = (second, missing)
  }
}

extension DiskStore {
  /// What a clean did.
  struct CleanResult {
    var expired = 0
    var evicted = 0
  }

  /// First what is older than the maximum age; then, if the tier is (nearly) full, the least recently used until it
  /// takes no more than `fraction` of the limit. No lock is held for longer than one file or one part of the index needs.
  func clean(maximumAge: Int, fraction: Double, until isStopped: () -> Bool) -> CleanResult {
    var result = CleanResult()
    let now = clock()
    forEachRecord(until: isStopped) { digest, record in
      if record.isDead {
        removeFile(digest, record.kind) { $0?.isDead == true }
      } else if maximumAge >= 0, now.seconds - record.stored.seconds > maximumAge,
        removeFile(digest, record.kind, where: { $0?.stored == record.stored })
      {
        result.expired += 1
        counts.expirations.add()
      }
    }
    guard space.bytes > space.highWater || isShort.exchange(false, ordering: .relaxed) else {
      return result
    }
    // Below the high-water mark in any case, or the next write would ask for the next clean.
    let target = Int(Double(space.limit) * min(max(fraction, 0), 0.9))
    var entries: [(access: UnixTime, bytes: Int)] = []
    forEachRecord(until: isStopped) { _, record in entries.append((record.access, record.bytes)) }
    guard var plan = CleanPlan(freeing: space.bytes - target, of: entries) else { return result }
    forEachRecord(until: isStopped) { digest, record in
      let isAtCutoff = record.access == plan.cutoff
      guard record.access < plan.cutoff || (isAtCutoff && plan.bytesAtCutoff > 0) else { return }
      // What was used since the plan was made stays.
      guard removeFile(digest, record.kind, where: { $0?.access == record.access }) else { return }
      if isAtCutoff { plan.bytesAtCutoff -= record.bytes }
      result.evicted += 1
      counts.evictions.add()
    }
    return result
  }

  /// Goes over a copy of each part of the index in turn.
  private func forEachRecord(
    until isStopped: () -> Bool, _ body: (EntryDigest, EntryRecord) -> Void
  ) {
    for shard in index.shards {
      let records = shard.table.withLock { $0.records }
      for (digest, record) in records {
        if isStopped() { return }
        body(digest, record)
      }
    }
  }
}
