// DiskIndex: what is on disk, known without asking it.

import Model
import Platform

/// What the index knows about one file: 12 bytes, beside the 16 of its digest.
struct EntryRecord: Equatable {
  private static let sourceBit: UInt32 = 1 << 31
  private static let verifiedBit: UInt32 = 1 << 30
  private static let deadBit: UInt32 = 1 << 29
  private static let blockMask = deadBit - 1

  /// Blocks of 512 bytes (up to 256 GiB), and three bits above them.
  private var packed: UInt32
  private var accessSeconds: UInt32
  private var storedSeconds: UInt32

  init(kind: EntryKind, blocks: Int, stored: UnixTime, access: UnixTime, isVerified: Bool) {
    packed = UInt32(min(max(blocks, 0), Int(Self.blockMask)))
    if kind == .source { packed |= Self.sourceBit }
    if isVerified { packed |= Self.verifiedBit }
    accessSeconds = UInt32(clamping: access.seconds)
    storedSeconds = UInt32(clamping: stored.seconds)
  }

  var kind: EntryKind { packed & Self.sourceBit == 0 ? .variant : .source }
  var bytes: Int { Int(packed & Self.blockMask) * 512 }
  /// When it was last asked for.
  var access: UnixTime {
    get { UnixTime(seconds: Int(accessSeconds)) }
    set { accessSeconds = UInt32(clamping: newValue.seconds) }
  }
  /// When it was written.
  var stored: UnixTime { UnixTime(seconds: Int(storedSeconds)) }
  /// Whether its body is known to be what was written: this process wrote it, or has checked it.
  var isVerified: Bool {
    get { packed & Self.verifiedBit != 0 }
    set { packed = newValue ? packed | Self.verifiedBit : packed & ~Self.verifiedBit }
  }
  /// Whether it was removed and its file is still there, to be removed yet or because it could not be: absent to
  /// whoever looks, but taking space.
  var isDead: Bool {
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
      guard let record = table.records[digest] else { return table.isComplete ? .absent : .unknown }
      return record.isDead ? .absent : .present(record)
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

  /// Makes all variants of the source whose digest begins with `high` absent to whoever looks from now on; their files
  /// are to be removed.
  ///
  /// - Returns: their digests; `nil`, and nothing is changed, where only the disk knows all of them.
  func hideVariants(_ high: UInt64) -> [EntryDigest]? {
    shard(of: EntryDigest(high: high, low: 0)).table.withLock { table in
      guard table.isComplete else { return nil }
      let digests = table.records.compactMap { digest, record in
        digest.high == high && record.kind == .variant ? digest : nil
      }
      for digest in digests { table.records[digest]?.isDead = true }
      return digests
    }
  }

  var count: Int {
    shards.reduce(0) { $0 + $1.table.withLock { $0.records.count } }
  }

  var isComplete: Bool { shards.allSatisfy { $0.table.withLock { $0.isComplete } } }
}
