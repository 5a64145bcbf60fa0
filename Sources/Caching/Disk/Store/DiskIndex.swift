// DiskIndex: an in-memory index of the files on disk.

import Core

/// The index record of one file: 20 bytes, beside the 16 bytes of its digest.
struct EntryRecord: Equatable {
  private static let sourceBit: UInt32 = 1 << 31
  private static let tombstoneBit: UInt32 = 1 << 30
  private static let blockMask = tombstoneBit - 1

  /// The number of 512-byte blocks (up to 512 GiB) and two flag bits above it.
  private var packed: UInt32
  private var createdSeconds: UInt32
  private var storedSeconds: UInt32
  private var accessSeconds: UInt32
  /// The `FileStamp.fingerprint` of the state in which this process verified the file, or wrote it;
  /// 0 for none.
  var verified: UInt32

  init(kind: EntryKind, blocks: Int, times: EntryTimes, verified: UInt32 = 0) {
    self.verified = verified
    packed = UInt32(min(max(blocks, 0), Int(Self.blockMask)))
    if kind == .source { packed |= Self.sourceBit }
    createdSeconds = UInt32(clamping: times.created.seconds)
    storedSeconds = UInt32(clamping: times.stored.seconds)
    accessSeconds = UInt32(clamping: times.access.seconds)
  }

  var kind: EntryKind { packed & Self.sourceBit == 0 ? .variant : .source }
  var bytes: Int { Int(packed & Self.blockMask) * 512 }
  /// The times of the file, between 1970 and 2106.
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
  /// Whether the entry was removed but its file still exists. A tombstone is absent for look-ups
  /// and still counts as used space.
  var isTombstone: Bool {
    get { packed & Self.tombstoneBit != 0 }
    set { packed = newValue ? packed | Self.tombstoneBit : packed & ~Self.tombstoneBit }
  }
}

/// A shard of the index: the entries of 64 neighbouring folders of each kind.
final class IndexShard: Sendable {
  /// The state of a folder of entries.
  struct Folder {
    var entries = 0
    /// The size of the folder itself in bytes; 0 if it does not exist.
    var bytes = 0
  }

  struct Table {
    var records: [EntryDigest: EntryRecord] = [:]
    /// Whether the table knows every file on disk.
    var isComplete = false
    /// The time of a clear; `nil` without one. A file found by a scan and stored up to this time
    /// becomes a tombstone. While it is set, unknown entries are absent.
    var cleared: UnixTime?

    /// Returns the record to store for a file found on disk.
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

  /// Held while a file of these folders is renamed into place or removed, so that table, accounting
  /// and disk agree. Readers never take it. Ordered by kind, then folder.
  let folders = Lock([Folder](repeating: Folder(), count: 2 * DiskIndex.foldersPerShard))
  /// Held for single look-ups and changes, never across a system call. If both locks are needed,
  /// `folders` comes first.
  let table = Lock(Table())

  static func position(_ kind: EntryKind, folder: Int) -> Int {
    Int(kind.rawValue) * DiskIndex.foldersPerShard + folder % DiskIndex.foldersPerShard
  }
}

/// The index of all files on disk. Its 64 shards grow independently, so no look-up waits until a
/// large table has been copied.
final class DiskIndex: Sendable {
  static let shardCount = 64
  static let foldersPerShard = 256 / shardCount

  /// The result of a look-up.
  enum Answer {
    case present(EntryRecord)
    case absent
    /// The index is not complete, so only the disk knows.
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

  /// Changes an existing record.
  func update(_ digest: EntryDigest, change: (inout EntryRecord) -> Void) {
    shard(of: digest).table.withLock { table in
      guard var record = table.records[digest] else { return }
      change(&record)
      table.records[digest] = record
    }
  }

  /// Turns all entries of a group into tombstones.
  ///
  /// - Returns: the names of the new tombstones and of those that existed before; `nil`, without
  ///   any change, if the shard is not complete.
  func hide(_ group: EntryGroup) -> (hidden: [EntryName], hiddenBefore: [EntryName])? {
    shard(of: group.place).table.withLock { table in
      guard table.isComplete else { return nil }
      var hidden: [EntryName] = []
      var hiddenBefore: [EntryName] = []
      for (digest, record) in table.records where group.contains(digest, kind: record.kind) {
        let name = EntryName(digest: digest, kind: record.kind)
        if record.isTombstone { hiddenBefore.append(name) } else { hidden.append(name) }
      }
      for name in hidden { table.records[name.digest]?.isTombstone = true }
      return (hidden, hiddenBefore)
    }
  }

  /// Returns whether the group has a tombstone.
  func hasTombstone(_ group: EntryGroup) -> Bool {
    shard(of: group.place).table.withLock { table in
      table.records.contains { digest, record in
        record.isTombstone && group.contains(digest, kind: record.kind)
      }
    }
  }

  /// Turns all entries into tombstones, those that a scan finds later included.
  ///
  /// - Returns: the number of new tombstones.
  func hideAll() -> Int {
    var count = 0
    for shard in shards {
      // Both locks are held, so a file being renamed into place reaches the table first.
      count += shard.folders.withLock { _ in shard.table.withLock { $0.hideAll() } }
    }
    return count
  }

  /// Turns files that a scan finds later into tombstones if stored up to `time`; `nil`: none.
  func hideFound(until time: UnixTime?) {
    for shard in shards { shard.table.withLock { $0.cleared = time } }
  }

  var count: Int {
    shards.reduce(0) { $0 + $1.table.withLock { $0.records.count } }
  }

  var isComplete: Bool { shards.allSatisfy { $0.table.withLock { $0.isComplete } } }
}
