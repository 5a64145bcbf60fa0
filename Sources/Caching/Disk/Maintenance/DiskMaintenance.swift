// DiskMaintenance: indexes the files on disk, cleans, and repairs a deleted folder.

import Core
import Glibc
import Synchronization

/// A low-priority thread for maintenance of the disk tier. It can stop after each entry.
final class DiskMaintenance: Sendable {
  private struct State {
    var isCleanDue = false
    var isFolderNew = false
    var waiters: [CheckedContinuation<CleanReport, Never>] = []
    var isEnded = false
  }

  private let monitor = Monitor(State())
  private let isStopped = Atomic<Bool>(false)
  private let store: DiskStore
  private let configuration: DiskTierConfiguration

  init(store: DiskStore, configuration: DiskTierConfiguration) {
    self.store = store
    self.configuration = configuration
  }

  /// Starts the thread. The thread calls `onReady` when the index is complete and the first clean
  /// is done.
  func start(onReady: @escaping @Sendable () -> Void) throws(DiskTierError) {
    do throws(SystemError) {
      try OwnThread.start(name: "pictor-clean", rank: .background) { self.run(onReady) }
    } catch {
      throw .noThread(reason: error.description)
    }
  }

  /// Requests a clean in the background.
  func requestClean() { monitor.change { $0.isCleanDue = true } }

  /// Requests that the index is compared with the disk, after the folder was recreated.
  func requestVerification() { monitor.change { $0.isFolderNew = true } }

  /// Cleans and returns a report. The report is empty if the tier is shut down.
  func clean() async -> CleanReport {
    await withCheckedContinuation { continuation in
      let isEnded = monitor.change { state in
        if !state.isEnded {
          state.waiters.append(continuation)
          state.isCleanDue = true
        }
        return state.isEnded
      }
      if isEnded { continuation.resume(returning: CleanReport()) }
    }
  }

  /// Tells the thread to end.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    monitor.change { _ in }
  }

  /// Waits until the thread has ended. Returns whether it has.
  func waitForEnd(within limit: Duration) -> Bool {
    monitor.wait(for: limit) { $0.isEnded ? true : nil } ?? false
  }

  private func run(_ onReady: () -> Void) {
    let stopped = { self.isStopped.load(ordering: .relaxed) }
    let start = ContinuousClock.now
    store.scan(until: stopped)
    if !stopped() {
      store.log.info(
        "disk cache indexed",
        fields: [
          "entries": .int(store.index.count), "bytes": .int(store.space.bytes),
          "duration_ms": .milliseconds(start.duration(to: .now)),
        ])
      _ = clean(stopped)
      onReady()
    }
    while !stopped() {
      let work = monitor.wait(for: configuration.cleanInterval) { state -> State? in
        guard state.isCleanDue || state.isFolderNew || stopped() else { return nil }
        defer {
          state.isCleanDue = false
          state.isFolderNew = false
          state.waiters = []
        }
        return state
      }
      var report = CleanReport()
      if !stopped() {
        if work?.isFolderNew == true { store.verify(until: stopped) }
        if work?.isCleanDue ?? true { report = clean(stopped) }
      }
      for waiter in work?.waiters ?? [] { waiter.resume(returning: report) }
    }
    let left = monitor.change { state in
      state.isEnded = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in left { waiter.resume(returning: CleanReport()) }
  }

  private func clean(_ stopped: () -> Bool) -> CleanReport {
    let start = ContinuousClock.now
    store.lookAfterFolder(until: stopped)
    let report = store.clean(configuration, until: stopped)
    if report.expired + report.evicted > 0 {
      store.log.info(
        "disk cache cleaned",
        fields: [
          "expired": .int(report.expired), "evicted": .int(report.evicted),
          "bytes": .int(store.space.bytes), "duration_ms": .milliseconds(start.duration(to: .now)),
        ])
    }
    return report
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

  /// The first phase: removes expired entries. Also retries failed removals.
  ///
  /// - Returns: the number of expired entries.
  private func removeOld(
    _ configuration: DiskTierConfiguration, until isStopped: () -> Bool
  ) -> Int {
    let now = clock()
    let maximumAge = configuration.maximumAge
    var expired = 0
    func isOld(_ record: EntryRecord) -> Bool {
      let time =
        switch configuration.expireBy {
        case .access: record.times.access
        case .modification: record.times.stored
        case .creation: record.times.created
        }
      return maximumAge >= 0 && now.seconds - time.seconds > maximumAge
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
      }
    }
    return expired
  }

  /// The second phase for one kind. Returns the number of evicted entries.
  private func makeRoom(
    _ kind: EntryKind, fraction: Double, until isStopped: () -> Bool
  ) -> Int {
    let share = space[kind]
    let isShort = share.takeShortage()
    guard isShort || share.isNearlyFull else { return 0 }
    let left = share.limit * fraction
    let goal = DiskUse(bytes: share.use.bytes - left.bytes, files: share.use.files - left.files)
    return evict(kind, freeing: goal, until: isStopped)
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
    guard goal.bytes > 0 || goal.files > 0 else { return 0 }
    var entries: [(digest: EntryDigest, access: UnixTime, bytes: Int)] = []
    forEachRecord(until: isStopped) { digest, record in
      if !record.isTombstone, record.kind == kind {
        entries.append((digest, record.times.access, record.bytes))
      }
    }
    entries.sort { $0.access < $1.access }
    var missing = goal
    var evicted = 0
    for entry in entries where missing.bytes > 0 || missing.files > 0 {
      if isStopped() { break }
      // An entry used since then stays.
      let isGone = removeFile(entry.digest, kind: kind) {
        $0?.times.access == entry.access && $0?.isTombstone == false
      }
      // Also of a file that stays: one whose folder cannot be written would make misses of all.
      missing = DiskUse(bytes: missing.bytes - entry.bytes, files: missing.files - 1)
      guard isGone else { continue }
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

  /// Adds all entries on disk to the index, from file names, sizes and times alone. The index
  /// becomes complete shard by shard; meanwhile readers ask the disk for unknown entries. Records
  /// that already exist stay unchanged.
  func scan(until isStopped: () -> Bool) {
    isScanDue.store(false, ordering: .relaxed)
    for (number, shard) in index.shards.enumerated() {
      let first = number * DiskIndex.foldersPerShard
      for kind in EntryKind.allCases {
        for folderNumber in first..<first + DiskIndex.foldersPerShard {
          if isStopped() { return }
          do {
            try scanFolder(kind, number: folderNumber, into: shard)
          } catch {
            // Its files are missing from the accounting, so a later clean scans again.
            isScanDue.store(true, ordering: .relaxed)
            fail(reading, with: error)
          }
        }
      }
      shard.table.withLock { $0.isComplete = true }
    }
  }

  private func scanFolder(_ kind: EntryKind, number: Int, into shard: IndexShard)
    throws(SystemError)
  {
    let path = folder.folder(kind, number: number)
    let names = try DiskFolder.contents(of: path)
    shard.folders.withLock { folders in
      let size = DiskFolder.blocks(of: path) * 512
      let position = IndexShard.position(kind, folder: number)
      space[kind].add(bytes: size - folders[position].bytes)
      folders[position].bytes = size
      for name in names {
        // Skips foreign names and entries in the wrong folder, which no look-up finds.
        guard let digest = EntryDigest(hexadecimal: name), digest.folder == number,
          shard.table.withLock({ $0.records[digest] }) == nil,
          let record = record(kind, at: path + "/" + name)
        else { continue }
        shard.table.withLock { $0.records[digest] = $0.found(record) }
        folders[position].entries += 1
        space[kind].add(bytes: record.bytes, files: 1)
      }
      if folders[position].entries == 0, rmdir(path) == 0 {
        space[kind].add(bytes: -folders[position].bytes)
        folders[position] = IndexShard.Folder()
      }
    }
  }

  private func record(_ kind: EntryKind, at path: String) -> EntryRecord? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    // Times in the future were set before the clock went back: the entry would not age until then.
    let times = EntryTimes(of: status).bounded(by: clock())
    return EntryRecord(kind: kind, blocks: Int(status.st_blocks), times: times)
  }

  /// Prepares a clean: recreates a deleted folder, above all its lock, and scans again after an
  /// incomplete scan.
  func lookAfterFolder(until isStopped: () -> Bool) {
    do {
      try healFolder()
    } catch {
      fail(writing, with: error)
    }
    if isScanDue.load(ordering: .relaxed) { scan(until: isStopped) }
  }

  /// Updates the index after another process deleted or added files.
  func verify(until isStopped: () -> Bool) {
    forgetMissing(until: isStopped)
    scan(until: isStopped)
  }

  private func forgetMissing(until isStopped: () -> Bool) {
    for (number, shard) in index.shards.enumerated() {
      let all = shard.table.withLock { table in table.records.map { ($0.key, $0.value.kind) } }
      for (digest, kind) in all {
        if isStopped() { return }
        let path = folder.file(kind, of: digest)
        removeFile(digest, kind: kind) { _ in access(path, F_OK) != 0 }
      }
      let first = number * DiskIndex.foldersPerShard
      shard.folders.withLock { folders in
        for folderNumber in first..<first + DiskIndex.foldersPerShard {
          for kind in EntryKind.allCases {
            let position = IndexShard.position(kind, folder: folderNumber)
            guard folders[position].bytes > 0, folders[position].entries == 0,
              access(folder.folder(kind, number: folderNumber), F_OK) != 0
            else { continue }
            space[kind].add(bytes: -folders[position].bytes)
            folders[position] = IndexShard.Folder()
          }
        }
      }
    }
  }
}
