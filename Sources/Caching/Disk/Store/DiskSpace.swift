// DiskSpace: the disk space used and reserved by each kind of entry.

import Core
import Synchronization

/// An amount of disk space.
struct DiskUse: Equatable {
  /// Bytes as `du` counts them.
  var bytes: Int
  /// Entries, which is files.
  var files: Int

  /// Returns a fraction of an amount. `Int.max` files stay `Int.max`.
  static func * (use: DiskUse, factor: Double) -> DiskUse {
    DiskUse(
      bytes: Int(Double(use.bytes) * factor),
      files: use.files == .max ? .max : Int(Double(use.files) * factor))
  }
}

/// The accounting of one kind of entry: used space and reservations of writes in progress. It never
/// exceeds its limit, except after a start with a lower limit, until the first clean.
final class DiskShare: Sendable {
  /// The limit. `files` is `Int.max` if there is no limit.
  let limit: DiskUse
  private let bytes = Atomic<Int>(0)
  private let files = Atomic<Int>(0)
  /// Whether a write found no room since the last clean.
  private let isShort = Atomic<Bool>(false)

  init(limit: DiskUse) { self.limit = limit }

  /// The used and reserved space.
  var use: DiskUse {
    DiskUse(bytes: bytes.load(ordering: .relaxed), files: files.load(ordering: .relaxed))
  }

  /// Returns the figures of the share of a kind of entry. Room reserved by writes in progress
  /// counts as used.
  func figures(of kind: String) -> Figures {
    var figures = Figures()
    let use = use
    figures.add("entries", use.files, "pictor_disk_share_entries", "Entries of a kind on disk.")
    figures.add(
      "bytes", use.bytes, "pictor_disk_share_size_bytes", "Bytes of a kind of entry on disk.")
    figures.add(
      "limit", limit.bytes, "pictor_disk_share_limit_bytes", "The most bytes of a kind on disk.")
    figures.add(
      "count_limit", limit.files == .max ? 0 : limit.files, "pictor_disk_share_limit_entries",
      "The most entries of a kind on disk; 0: unlimited.")
    figures.label("kind", kind)
    return figures
  }

  /// Whether a clean is due, before writes must be refused.
  var isNearlyFull: Bool {
    let use = use
    return use.bytes > limit.bytes - limit.bytes / 16 || use.files > limit.files - limit.files / 16
  }

  /// Whether a sixteenth of its files is less than one. Such a space fills without a warning.
  var isOfFewFiles: Bool { limit.files < 16 }

  /// Whether at most this fraction of the limit is used, in bytes and in files.
  func isBelow(_ fraction: Double) -> Bool {
    let use = use
    let most = limit * fraction
    return use.bytes <= most.bytes && use.files <= most.files
  }

  /// Reserves room for one file of this size. Returns why it cannot.
  func reserve(_ amount: Int) -> DiskPlacement? {
    guard amount <= limit.bytes, limit.files > 0 else { return .tooLarge }
    if bytes.add(amount, upTo: limit.bytes) {
      if files.add(1, upTo: limit.files) { return nil }
      bytes.wrappingSubtract(amount, ordering: .relaxed)
    }
    isShort.store(true, ordering: .relaxed)
    return .noRoom
  }

  /// Adds to the used space; negative amounts release space.
  func add(bytes amount: Int, files count: Int = 0) {
    bytes.wrappingAdd(amount, ordering: .relaxed)
    if count != 0 { files.wrappingAdd(count, ordering: .relaxed) }
  }

  /// Returns whether a write found no room since the last call.
  func takeShortage() -> Bool { isShort.exchange(false, ordering: .relaxed) }
}

/// What became of an entry that is to be placed.
enum DiskPlacement {
  case placed
  /// A later operation on the key, or a purge, came in between.
  case unwanted
  /// There is no room until other entries are removed.
  case noRoom
  /// It is larger than the limit.
  case tooLarge
}

/// The accounting of the tier. The permanent folders are subtracted from the limit. Every other
/// folder counts in the share of its entries, and the purge journal in the share of the variants.
final class DiskSpace: Sendable {
  let limit: Int
  private let base: Int
  private let variants: DiskShare
  private let sources: DiskShare

  /// Divides the limits between the kinds.
  ///
  /// - Parameter base: bytes used without any entry.
  init(_ configuration: DiskTierConfiguration, base: Int) {
    limit = configuration.limit
    self.base = base
    let share = min(max(configuration.sourceShare, 0), 1)
    let count = configuration.countLimit
    let all = DiskUse(bytes: max(limit - base, 0), files: count > 0 ? count : .max)
    var ofSources = all * share
    // Each kind has a file where there are two. A single one is for a variant, which can be sent.
    if count > 0 { ofSources.files = min(max(ofSources.files, 1), count - 1) }
    sources = DiskShare(limit: ofSources)
    variants = DiskShare(
      limit: DiskUse(
        bytes: all.bytes - ofSources.bytes,
        files: count > 0 ? all.files - ofSources.files : .max))
  }

  /// The share of a kind.
  subscript(kind: EntryKind) -> DiskShare { kind == .source ? sources : variants }

  /// The maximum number of bytes of one entry's body: a sixteenth of the tier and a quarter of its
  /// share, so that a few large ones do not push out all others.
  func maximumBytes(of kind: EntryKind) -> Int {
    min(limit / Self.largestPart, self[kind].limit.bytes / 4)
  }

  private static let largestPart = 16

  /// Bytes taken or promised in all.
  var bytes: Int { base + variants.use.bytes + sources.use.bytes }
}

extension Atomic where Value == Int {
  /// Adds `amount` unless the sum would exceed `limit`. Returns whether it did.
  func add(_ amount: Int, upTo limit: Int) -> Bool {
    var current = load(ordering: .relaxed)
    while current + amount <= limit {
      let (exchanged, original) = weakCompareExchange(
        expected: current, desired: current + amount, ordering: .relaxed)
      if exchanged { return true }
      current = original
    }
    return false
  }
}
