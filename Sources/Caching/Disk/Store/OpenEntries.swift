// OpenEntries: keeps the files of popular small variants open, with their metadata.

import Core
import Glibc

/// An open file that this process has verified.
final class OpenEntry: Sendable {
  let key: CacheKey
  let info: VariantInfo
  /// The whole file.
  let file: FileRegion
  /// Where the body is in the file.
  let body: Range<Int>
  /// The `FileStamp.fingerprint` of the verified state.
  let fingerprint: UInt32

  init(
    key: CacheKey, info: VariantInfo, file: FileRegion, body: Range<Int>, fingerprint: UInt32
  ) {
    self.key = key
    self.info = info
    self.file = file
    self.body = body
    self.fingerprint = fingerprint
  }
}

/// A bounded table of open files, by name.
///
/// Set-associative: a name selects a set of four places. A hit moves its entry one place forward,
/// and a new entry replaces the last one. A file is kept at its second read within a while, so
/// files that are read once push out none. A full set takes one of several newcomers
/// (probabilistic admission): otherwise each would close a file that is read as often.
///
/// An open file keeps its room on disk after it is unlinked. So code that unlinks or replaces a
/// file calls `drop` before its room counts as free. A read may hold the file a little longer.
final class OpenEntries: Sendable {
  /// Tells a look-up from one before a later `drop`.
  struct Visit {
    fileprivate let drops: UInt64
  }

  private struct Part {
    var places: [(name: EntryDigest, entry: OpenEntry)?]
    /// Marks of names that were read once.
    var seen: [UInt32]
    /// Increases with each `drop`.
    var drops: UInt64 = 0
    /// Files that were read again while their set was full.
    var newcomers = 0
  }

  private static let ways = 4
  private static let partCount = 16
  /// Marks for each place.
  private static let marks = 4
  /// One of this many newcomers to a full set replaces an entry (probabilistic admission).
  static let newcomersPerReplacement = 8
  private let parts: [Lock<Part>]
  private let setsPerPart: Int

  /// The maximum number of open files.
  var limit: Int { parts.count * setsPerPart * Self.ways }

  /// Creates a table of at most `limit` files. A limit below 64 keeps no file open.
  init(limit: Int) {
    setsPerPart = max(limit, 0) / (Self.partCount * Self.ways)
    let places = setsPerPart * Self.ways
    parts = (0..<(setsPerPart > 0 ? Self.partCount : 0)).map { _ in
      Lock(
        Part(
          places: Array(repeating: nil, count: places),
          seen: Array(repeating: 0, count: places * Self.marks)))
    }
  }

  /// The number of open files.
  var count: Int { parts.reduce(0) { $0 + $1.withLock { $0.places.count { $0 != nil } } } }

  /// Returns the open file of a name, if there is one. `keep` needs the visit.
  func entry(of name: EntryDigest) -> (entry: OpenEntry?, visit: Visit)? {
    guard !parts.isEmpty else { return nil }
    let first = firstPlace(of: name)
    return part(of: name).withLock { part in
      let visit = Visit(drops: part.drops)
      for place in first..<first + Self.ways {
        guard let found = part.places[place], found.name == name else { continue }
        if place > first { part.places.swapAt(place, place - 1) }
        return (found.entry, visit)
      }
      return (nil, visit)
    }
  }

  /// Keeps a file open if its name was read before, and no file of its part was dropped since
  /// `visit`: it could be this one.
  func keep(_ name: EntryDigest, since visit: Visit, _ entry: OpenEntry) {
    let first = firstPlace(of: name)
    // The replaced file is closed outside the lock.
    let replaced = part(of: name).withLock { part -> OpenEntry? in
      guard part.drops == visit.drops else { return nil }
      let mark = UInt32(truncatingIfNeeded: name.low >> 32 ^ name.low) | 1
      let place = Int((name.high ^ name.low >> 5) % UInt64(part.seen.count))
      guard part.seen[place] == mark else {
        part.seen[place] = mark
        return nil
      }
      let set = first..<first + Self.ways
      var free = set.first { part.places[$0] == nil || part.places[$0]?.name == name }
      if free == nil {
        part.newcomers &+= 1
        if part.newcomers % Self.newcomersPerReplacement == 0 { free = set.upperBound - 1 }
      }
      guard let free else { return nil }
      let old = part.places[free]?.entry
      part.places[free] = (name, entry)
      return old
    }
    withExtendedLifetime(replaced) {}
  }

  /// Closes the file of a name, unless a read in progress uses it.
  func drop(_ name: EntryDigest) {
    guard !parts.isEmpty else { return }
    let first = firstPlace(of: name)
    let dropped = part(of: name).withLock { part -> OpenEntry? in
      part.drops &+= 1
      guard let place = (first..<first + Self.ways).first(where: { part.places[$0]?.name == name })
      else { return nil }
      defer { part.places[place] = nil }
      return part.places[place]?.entry
    }
    withExtendedLifetime(dropped) {}
  }

  /// Closes all files.
  func dropAll() {
    for part in parts {
      let dropped = part.withLock { part in
        part.drops &+= 1
        defer { part.places = Array(repeating: nil, count: part.places.count) }
        return part.places
      }
      withExtendedLifetime(dropped) {}
    }
  }

  private func part(of name: EntryDigest) -> Lock<Part> {
    // The lowest bit is the same for all variants.
    parts[Int(truncatingIfNeeded: name.low >> 1) & (Self.partCount - 1)]
  }

  private func firstPlace(of name: EntryDigest) -> Int {
    Int((name.low >> 5) % UInt64(max(setsPerPart, 1))) * Self.ways
  }
}
