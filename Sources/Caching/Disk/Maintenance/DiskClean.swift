// DiskClean: what is removed when entries are too old, or a share of the disk tier is full; SDWebImage's clean in two
// phases.

import Model

/// Which entries go so that so much is freed: all that were last used before a moment, and of those used at that very
/// second so many as are still missing.
struct CleanPlan: Equatable {
  /// Entries last used before it go.
  var cutoff: UnixTime
  /// What is to be freed among those last used at `cutoff`.
  var missing: DiskUse

  /// The plan that frees at least `goal`, least recently used first; `nil` where there is nothing to be done.
  init?(freeing goal: DiskUse, of entries: [(access: UnixTime, bytes: Int)]) {
    guard goal.isOpen, !entries.isEmpty else { return nil }
    (cutoff, missing) = (UnixTime(seconds: 0), goal)
    var atCutoff = DiskUse(bytes: 0, files: 0)
    for entry in entries.sorted(by: { $0.access < $1.access }) {
      if entry.access != cutoff {
        missing = missing - atCutoff
        (cutoff, atCutoff) = (entry.access, DiskUse(bytes: 0, files: 0))
      }
      atCutoff = DiskUse(bytes: atCutoff.bytes + entry.bytes, files: atCutoff.files + 1)
      if !(missing - atCutoff).isOpen { break }
    }
  }

  /// Whether an entry last used at this time goes.
  func takes(_ access: UnixTime) -> Bool {
    access < cutoff || (access == cutoff && missing.isOpen)
  }

  /// Notes that one of those that `takes` names is gone.
  mutating func note(_ access: UnixTime, bytes: Int) {
    if access == cutoff { missing = missing - DiskUse(bytes: bytes, files: 1) }
  }
}

extension DiskUse {
  fileprivate static func - (left: DiskUse, right: DiskUse) -> DiskUse {
    DiskUse(bytes: left.bytes - right.bytes, files: left.files - right.files)
  }

  /// Whether some of it is still to be freed.
  fileprivate var isOpen: Bool { bytes > 0 || files > 0 }
}

extension EntryRecord {
  /// What its age counts from. While this run has not used it, its last use may be later than its file says: the latest
  /// possible moment counts, so that nothing expires that was used in time.
  fileprivate func time(_ type: DiskTierConfiguration.ExpireType) -> UnixTime {
    switch type {
    case .access: isVerified ? times.access : times.latestAccess
    case .modification: times.stored
    case .creation: times.created
    }
  }
}

extension DiskStore {
  /// First what is too old, of both kinds; then, in each kind's share that is (nearly) full, the least recently used until
  /// no more than a part of the share is taken. No lock is held for longer than one file or one part of the index needs.
  func clean(_ configuration: DiskTierConfiguration, until isStopped: () -> Bool) -> CleanReport {
    var report = CleanReport()
    report.expired = removeOld(configuration, until: isStopped)
    // Below the high-water mark in any case, or the next write would ask for the next clean.
    let fraction = min(max(configuration.cleanFraction, 0), 0.9)
    for kind in EntryKind.allCases {
      report.evicted += makeRoom(kind, fraction, until: isStopped)
    }
    return report
  }

  /// The first phase, and what can only be seen by going over everything: removals to be tried again, and times that are
  /// still to come.
  private func removeOld(
    _ configuration: DiskTierConfiguration, until isStopped: () -> Bool
  ) -> Int {
    let (now, maximumAge) = (clock(), configuration.maximumAge)
    var (expired, redated) = (0, 0)
    func isOld(_ record: EntryRecord) -> Bool {
      maximumAge >= 0 && now.seconds - record.time(configuration.expireBy).seconds > maximumAge
    }
    forEachRecord(until: isStopped) { digest, record in
      if record.isTombstone {
        removeFile(digest, record.kind) { $0?.isTombstone == true }
      } else if isOld(record) {
        // What was used or written a moment ago is young again.
        guard removeFile(digest, record.kind, where: { $0.map(isOld) ?? false }) else { return }
        expired += 1
        counts.expirations.add()
      } else if record.times.areAhead(of: now), redate(digest, record.kind, now) {
        redated += 1
        counts.redated.add()
      }
    }
    clockEpisode.note(redated)
    return expired
  }

  /// Takes times that are still to come as now, in the index and in the file: they are from before the clock was set back,
  /// and would else keep their entry from growing old until they have come.
  private func redate(_ digest: EntryDigest, _ kind: EntryKind, _ now: UnixTime) -> Bool {
    let shard = index.shard(of: digest)
    // Under this lock no other file gets the name.
    return shard.folders.withLock { _ in
      let times = shard.table.withLock { table -> EntryTimes? in
        guard let record = table.records[digest], !record.isTombstone,
          record.times.areAhead(of: now)
        else { return nil }
        let times = record.times.bounded(by: now)
        table.records[digest]?.times = times
        return times
      }
      times?.write(to: folder.file(kind, digest))
      return times != nil
    }
  }

  /// The second phase, for one kind.
  private func makeRoom(
    _ kind: EntryKind, _ fraction: Double, until isStopped: () -> Bool
  ) -> Int {
    let share = space[kind]
    let isShort = share.takeShortage()
    guard isShort || share.isNearlyFull else { return 0 }
    var entries: [(access: UnixTime, bytes: Int)] = []
    forEachRecord(until: isStopped) { _, record in
      if record.kind == kind, !record.isTombstone {
        entries.append((record.times.access, record.bytes))
      }
    }
    let excess = share.use - share.limit * fraction
    guard var plan = CleanPlan(freeing: excess, of: entries) else { return 0 }
    var evicted = 0
    forEachRecord(until: isStopped) { digest, record in
      let access = record.times.access
      guard record.kind == kind, !record.isTombstone, plan.takes(access) else { return }
      // What was used since the plan was made stays.
      guard
        removeFile(digest, kind, where: { $0?.times.access == access && $0?.isTombstone == false })
      else { return }
      plan.note(access, bytes: record.bytes)
      evicted += 1
      counts.evictions.add()
    }
    return evicted
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
