// DiskSpace: how much of the disk the tier takes, promised room included, in an account for each kind of entry.

import Synchronization

/// So much of a disk.
struct DiskUse: Equatable {
  /// Bytes, as `du` counts them.
  var bytes: Int
  /// Entries, each a file.
  var files: Int

  /// Nine tenths of it, for 0.9.
  static func * (use: DiskUse, factor: Double) -> DiskUse {
    DiskUse(
      bytes: Int(Double(use.bytes) * factor),
      files: use.files == .max ? .max : Int(Double(use.files) * factor))
  }
}

/// The account of one kind of entry: what is on disk, and what has been promised to writes under way. It is never above
/// its limit, save at a start with a limit lower than before, until the first clean.
final class DiskShare: Sendable {
  /// Its limit; `files` is `Int.max` where there is none.
  let limit: DiskUse
  private let bytes = Atomic<Int>(0)
  private let files = Atomic<Int>(0)
  /// Whether a write found no room since the last clean.
  private let isShort = Atomic<Bool>(false)

  init(limit: DiskUse) { self.limit = limit }

  /// What is taken or promised.
  var use: DiskUse {
    DiskUse(bytes: bytes.load(ordering: .relaxed), files: files.load(ordering: .relaxed))
  }

  /// Whether a clean is due although everything still fits: so that writes need not be refused while it runs.
  var isNearlyFull: Bool {
    let use = use
    return use.bytes > limit.bytes - limit.bytes / 16 || use.files > limit.files - limit.files / 16
  }

  /// What promising room came to.
  enum Promise {
    case made
    /// There will be room when something else has gone.
    case noRoom
    /// Not even then.
    case tooLarge
  }

  /// Promises a file of so many bytes.
  func reserve(_ amount: Int) -> Promise {
    guard amount <= limit.bytes, limit.files > 0 else { return .tooLarge }
    if bytes.add(amount, upTo: limit.bytes) {
      if files.add(1, upTo: limit.files) { return .made }
      bytes.wrappingSubtract(amount, ordering: .relaxed)
    }
    isShort.store(true, ordering: .relaxed)
    return .noRoom
  }

  /// Notes that so many bytes and files more, or less, are taken.
  func add(bytes amount: Int, files count: Int = 0) {
    bytes.wrappingAdd(amount, ordering: .relaxed)
    if count != 0 { files.wrappingAdd(count, ordering: .relaxed) }
  }

  /// Whether a write found no room since this was last asked.
  func takeShortage() -> Bool { isShort.exchange(false, ordering: .relaxed) }
}

/// The tier's accounts. What its fixed folders take comes off the limit first; each other folder is in the account of the
/// entries that it holds, and the list of purges in that of the variants.
final class DiskSpace: Sendable {
  let limit: Int
  private let base: Int
  private let variants: DiskShare
  private let sources: DiskShare

  /// - Parameter base: what the tier takes without any entry, in bytes.
  init(_ configuration: DiskTierConfiguration, base: Int) {
    (limit, self.base) = (configuration.limit, base)
    let share = min(max(configuration.sourceShare, 0), 1)
    let count = configuration.countLimit
    let all = DiskUse(bytes: max(limit - base, 0), files: count > 0 ? count : .max)
    let ofSources = all * share
    sources = DiskShare(limit: ofSources)
    variants = DiskShare(
      limit: DiskUse(
        bytes: all.bytes - ofSources.bytes,
        files: count > 0 ? all.files - ofSources.files : .max))
  }

  /// The account of one kind.
  subscript(kind: EntryKind) -> DiskShare { kind == .source ? sources : variants }

  /// Most bytes of one entry's body: a sixteenth of the tier and a quarter of its share, so that a few large ones do not
  /// push out all others.
  func mostBytes(_ kind: EntryKind) -> Int {
    min(limit / Self.largestPart, self[kind].limit.bytes / 4)
  }

  private static let largestPart = 16

  /// Bytes taken or promised in all.
  var bytes: Int { base + variants.use.bytes + sources.use.bytes }
}
