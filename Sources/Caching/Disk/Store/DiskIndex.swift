// DiskIndex: what is on disk, known without asking it.

import Model
import Platform

/// What the index knows about one file: 16 bytes, beside the 16 of its digest.
struct EntryRecord: Equatable {
  private static let sourceBit: UInt32 = 1 << 31
  private static let verifiedBit: UInt32 = 1 << 30
  private static let deadBit: UInt32 = 1 << 29
  private static let blockMask = deadBit - 1

  /// Blocks of 512 bytes (up to 256 GiB), and three bits above them.
  private var packed: UInt32
  private var createdSeconds: UInt32
  private var storedSeconds: UInt32
  private var accessSeconds: UInt32

  init(kind: EntryKind, blocks: Int, times: EntryTimes, isVerified: Bool) {
    packed = UInt32(min(max(blocks, 0), Int(Self.blockMask)))
    if kind == .source { packed |= Self.sourceBit }
    if isVerified { packed |= Self.verifiedBit }
    createdSeconds = UInt32(clamping: times.created.seconds)
    storedSeconds = UInt32(clamping: times.stored.seconds)
    accessSeconds = UInt32(clamping: times.access.seconds)
  }

  var kind: EntryKind { packed & Self.sourceBit == 0 ? .variant : .source }
  var bytes: Int { Int(packed & Self.blockMask) * 512 }
  /// Its file's times, between 1970 and 2106.
  var times: EntryTimes {
    get {
      EntryTimes(
        created: UnixTime(seconds: Int(createdSeconds)),
        stored: UnixTime(seconds: Int(storedSeconds)),
        access: UnixTime(seconds: Int(accessSeconds)))
    }
    set {
      createdSeconds = UInt32(clamping: newValue.created.seconds)
      storedSeconds = UInt32(clamping: newValue.stored.seconds)
      accessSeconds = UInt32(clamping: newValue.access.seconds)
    }
  }
  /// Whether its body is known to be what was written: this process wrote it, or has checked it.
  var isVerified: Bool {
    get { packed & Self.verifiedBit != 0 }
    set { packed = newValue ? packed | Self.verifiedBit : packed & ~Self.verifiedBit }
  }
  /// Whether it was removed and its file is still there, to be removed yet or because it could not be: absent to
  /// whoever looks, but taking space.
  var isTombstone: Bool {
    get { packed & Self.deadBit != 0 }
    set { packed = newValue ? packed | Self.deadBit : packed & ~Self.deadBit }
  }
}

/// A part of the index: the entries of 64 neighbouring folders of each kind.
final class IndexShard: Sendable {
  /// A folder of entries.
  struct Folder {
    var entries = 0
    /// What the folder itself takes; 0 while it is not there.
    var bytes = 0
  }

  struct Table {
    var records: [EntryDigest: EntryRecord] = [:]
    /// Whether what is not in the table is not on disk either.
    var isComplete = false
    /// What is still to be found on disk and was stored no later than then counts as removed, and all that is as absent;
    /// `nil` where nothing was cleared.
    var cleared: UnixTime?

    /// The record of a file that was found on disk.
    func found(_ record: EntryRecord) -> EntryRecord {
      var record = record
      if let cleared, record.times.stored <= cleared { record.isTombstone = true }
      return record
    }

    fileprivate mutating func hideAll() -> Int {
      let count = records.values.count { !$0.isTombstone }
      records = records.mapValues { record in
        var record = record
        record.isTombstone = true
        return record
      }
      cleared = UnixTime(seconds: .max)
      return count
    }
  }

  /// Held while a file of these folders is renamed to its place or removed, so that table, account and disk agree;
  /// readers never take it. By kind, then folder.
  let folders = Lock([Folder](repeating: Folder(), count: 2 * DiskIndex.foldersPerShard))
  /// Held for single look-ups and changes, never across a system call. Taken after `folders` where both are.
  let table = Lock(Table())

  static func position(_ kind: EntryKind, _ folder: Int) -> Int {
    Int(kind.rawValue) * DiskIndex.foldersPerShard + folder % DiskIndex.foldersPerShard
  }
}

/// Digests of everything on disk. Its 64 parts grow one at a time, so that no look-up waits for a large table to move.
final class DiskIndex: Sendable {
  static let shardCount = 64
  static let foldersPerShard = 4_096 / shardCount

  /// What the index says about a digest.
  enum Answer {
    case present(EntryRecord)
    case absent
    /// The index is not complete: only the disk knows.
    case unknown
  }

  let shards = (0..<shardCount).map { _ in IndexShard() }

  func shard(of digest: EntryDigest) -> IndexShard { shards[digest.folder / Self.foldersPerShard] }

  func lookUp(_ digest: EntryDigest) -> Answer {
    shard(of: digest).table.withLock { table in
      guard let record = table.records[digest] else {
        return table.isComplete || table.cleared != nil ? .absent : .unknown
      }
      return record.isTombstone ? .absent : .present(record)
    }
  }

  /// Changes a record that is there.
  func update(_ digest: EntryDigest, _ change: (inout EntryRecord) -> Void) {
    shard(of: digest).table.withLock { table in
      guard var record = table.records[digest] else { return }
      change(&record)
      table.records[digest] = record
    }
  }

  /// Makes all entries of a family absent to whoever looks from now on; their files are to be removed.
  ///
  /// - Returns: their names, and those that were hidden before and whose files are still there; `nil`, and nothing is
  ///   changed, where only the disk knows all of them.
  func hide(_ family: EntryGroup) -> (hidden: [EntryName], before: [EntryName])? {
    shard(of: family.place).table.withLock { table in
      guard table.isComplete else { return nil }
      var (hidden, before): ([EntryName], [EntryName]) = ([], [])
      for (digest, record) in table.records where family.contains(digest, record.kind) {
        let name = EntryName(digest: digest, kind: record.kind)
        if record.isTombstone { before.append(name) } else { hidden.append(name) }
      }
      for name in hidden { table.records[name.digest]?.isTombstone = true }
      return (hidden, before)
    }
  }

  /// Whether a file of a family is still to be removed.
  func hasDead(_ family: EntryGroup) -> Bool {
    shard(of: family.place).table.withLock { table in
      table.records.contains { digest, record in
        record.isTombstone && family.contains(digest, record.kind)
      }
    }
  }

  /// Makes everything absent to whoever looks from now on, and what is still to be found on disk too; all files are to be
  /// removed.
  ///
  /// - Returns: how many entries there were in the index.
  func hideAll() -> Int {
    var count = 0
    for shard in shards {
      // With both locks: whoever renames a file to its place at this moment gets it into the table first.
      count += shard.folders.withLock { _ in shard.table.withLock { $0.hideAll() } }
    }
    return count
  }

  /// Has everything count as removed that is found on disk from now on and was stored until `time`.
  func hideFound(until time: UnixTime) {
    for shard in shards { shard.table.withLock { $0.cleared = time } }
  }

  var count: Int {
    shards.reduce(0) { $0 + $1.table.withLock { $0.records.count } }
  }

  var isComplete: Bool { shards.allSatisfy { $0.table.withLock { $0.isComplete } } }
}
