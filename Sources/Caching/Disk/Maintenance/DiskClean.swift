// DiskClean: expires entries by age, then evicts from full shares, as SDWebImage does.

import Model

/// A plan that frees a given amount of space. It evicts all entries last used before `cutoff`, and
/// some of those last used in that very second.
struct CleanPlan: Equatable {
  /// Entries last used before this time are evicted.
  var cutoff: UnixTime
  /// What to free among the entries last used at `cutoff`.
  var missing: DiskUse

  /// Creates the plan that frees at least `goal`, least recently used first. Returns `nil` if there
  /// is nothing to free.
  init?(freeing goal: DiskUse, of entries: [(access: UnixTime, bytes: Int)]) {
    guard goal.isOpen, !entries.isEmpty else { return nil }
    cutoff = UnixTime(seconds: 0)
    missing = goal
    var atCutoff = DiskUse(bytes: 0, files: 0)
    for entry in entries.sorted(by: { $0.access < $1.access }) {
      if entry.access != cutoff {
        missing = missing - atCutoff
        cutoff = entry.access
        atCutoff = DiskUse(bytes: 0, files: 0)
      }
      atCutoff = DiskUse(bytes: atCutoff.bytes + entry.bytes, files: atCutoff.files + 1)
      if !(missing - atCutoff).isOpen { break }
    }
  }

  /// Returns whether the plan evicts an entry last used at this time.
  func takes(_ access: UnixTime) -> Bool {
    access < cutoff || (access == cutoff && missing.isOpen)
  }

  /// Records that an entry selected by `takes` was removed.
  mutating func note(_ access: UnixTime, bytes: Int) {
    if access == cutoff { missing = missing - DiskUse(bytes: bytes, files: 1) }
  }
}

extension DiskUse {
  fileprivate static func - (left: DiskUse, right: DiskUse) -> DiskUse {
    DiskUse(bytes: left.bytes - right.bytes, files: left.files - right.files)
  }

  /// Whether something is still to be freed.
  fileprivate var isOpen: Bool { bytes > 0 || files > 0 }
}

extension EntryRecord {
  /// Returns the time from which the entry's age counts. If this run has not used the entry, its
  /// last use may be later than its file says. The latest possible time then counts, so that an
  /// entry in use does not expire.
  fileprivate func time(_ type: DiskSettings.ExpireType) -> UnixTime {
    switch type {
    case .access: isUsed ? times.access : times.latestAccess
    case .modification: times.stored
    case .creation: times.created
    }
  }
}

extension DiskStore {
  /// Cleans in two phases. The first removes expired entries of both kinds. The second evicts the
  /// least recently used entries of each nearly full share of a kind, until the share is at its
  /// target. No lock is held longer than one file or one shard of the index needs.
  func clean(_ configuration: DiskTierConfiguration, until isStopped: () -> Bool) -> CleanReport {
    var report = CleanReport()
    report.expired = removeOld(configuration, until: isStopped)
    for kind in EntryKind.allCases {
      report.evicted += makeRoom(kind, fraction: fractionLeft, until: isStopped)
    }
    return report
  }

  /// The first phase: removes expired entries. Also retries failed removals and corrects times in
  /// the future.
  ///
  /// - Returns: the number of expired entries.
  private func removeOld(
    _ configuration: DiskTierConfiguration, until isStopped: () -> Bool
  ) -> Int {
    let now = clock()
    let maximumAge = configuration.maximumAge
    var expired = 0
    var redated = 0
    func isOld(_ record: EntryRecord) -> Bool {
      maximumAge >= 0 && now.seconds - record.time(configuration.expireBy).seconds > maximumAge
    }
    forEachRecord(until: isStopped) { digest, record in
      if record.isTombstone {
        removeFile(digest, kind: record.kind) { $0?.isTombstone == true }
      } else if isOld(record) {
        // The condition is checked again under the lock: the entry may have been used or written
        // meanwhile.
        guard removeFile(digest, kind: record.kind, where: { $0.map(isOld) ?? false }) else {
          return
        }
        expired += 1
        counts.expirations.add()
      } else if record.times.areAhead(of: now), redate(digest, kind: record.kind, to: now) {
        redated += 1
        counts.redated.add()
      }
    }
    clockEpisode.note(redated)
    return expired
  }

  /// Replaces times in the future by `now`, in the index and in the file. Such times were set
  /// before the clock went back; the entry would not age until they have passed.
  private func redate(_ digest: EntryDigest, kind: EntryKind, to now: UnixTime) -> Bool {
    let shard = index.shard(of: digest)
    // Under this lock no other file can take the name.
    return shard.folders.withLock { _ in
      let times = shard.table.withLock { table -> EntryTimes? in
        guard let record = table.records[digest], !record.isTombstone,
          record.times.areAhead(of: now)
        else { return nil }
        let times = record.times.bounded(by: now)
        table.records[digest]?.times = times
        return times
      }
      times?.correct(folder.file(kind, of: digest))
      return times != nil
    }
  }

  /// The second phase for one kind. Returns the number of evicted entries.
  private func makeRoom(
    _ kind: EntryKind, fraction: Double, until isStopped: () -> Bool
  ) -> Int {
    let share = space[kind]
    let isShort = share.takeShortage()
    guard isShort || share.isNearlyFull else { return 0 }
    return evict(kind, freeing: share.use - share.limit * fraction, until: isStopped)
  }

  /// Evicts the least recently used entry of a share with too few files to be cleaned early.
  ///
  /// - Returns: whether there is room for a file now.
  func makeRoomForOne(_ kind: EntryKind) -> Bool {
    let share = space[kind]
    guard share.isOfFewFiles, share.use.files >= share.limit.files else { return false }
    let evicted = evict(kind, freeing: DiskUse(bytes: 0, files: 1), until: { false })
    // Otherwise the next clean would make room for the same file once more.
    if evicted > 0 { _ = share.takeShortage() }
    return evicted > 0
  }

  /// Evicts the least recently used entries of a kind. Returns their number.
  private func evict(_ kind: EntryKind, freeing goal: DiskUse, until isStopped: () -> Bool) -> Int {
    var entries: [(access: UnixTime, bytes: Int)] = []
    forEachRecord(until: isStopped) { _, record in
      if !record.isTombstone, record.kind == kind {
        entries.append((record.times.access, record.bytes))
      }
    }
    guard var plan = CleanPlan(freeing: goal, of: entries) else { return 0 }
    var evicted = 0
    forEachRecord(until: isStopped) { digest, record in
      let access = record.times.access
      guard !record.isTombstone, record.kind == kind, plan.takes(access) else { return }
      // An entry used since the plan was made stays.
      guard
        removeFile(
          digest, kind: record.kind,
          where: { $0?.times.access == access && $0?.isTombstone == false })
      else { return }
      plan.note(access, bytes: record.bytes)
      evicted += 1
      counts.evictions.add()
    }
    return evicted
  }

  /// Calls `body` for each record, on a copy of one shard at a time.
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
