// PurgeJournal: the unfinished purges, and their text and file on disk.

import Core
import Glibc
import Synchronization

/// The unfinished purges, a line each in the file `purges`: `<number> <kind> <value>`. Kinds and
/// values are those of `DELETE /admin/cache`, and two more: `last` has the number of the last
/// purge, and `clear` has a time in place of the number. New lines are appended, and the last of
/// those that agree counts. A line without its end was not written whole and does not count.
struct PurgeJournal: Equatable {
  /// The number of the last purge, finished or not; 0 for none.
  var last = 0
  /// The time of a clear. Everything stored up to it must be removed, regardless of its generation.
  var cleared: UnixTime?
  /// The purges in the order they were added.
  var purges: [Purge] = []

  /// The encoded lines.
  var text: String {
    var lines: [String] = []
    if last > 0 { lines.append("\(last) last") }
    if let cleared { lines.append("\(cleared.seconds) clear") }
    lines += purges.map { "\($0.number) \(Self.text(of: $0.scope))" }
    return lines.map { $0 + "\n" }.joined()
  }

  /// Creates an empty journal.
  init() {}

  /// Parses lines. Invalid lines are skipped, and `complain` gets their numbers, starting at 1.
  init(parsing text: String, complain: (Int) -> Void) {
    // Splits bytes, because CR LF is one Character.
    let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.dropLast().map(Substring.init).enumerated() where !line.isEmpty {
      if !take(line) { complain(index + 1) }
    }
    purges.sort { $0.number < $1.number }
    last = max(last, purges.last?.number ?? 0)
  }

  private mutating func take(_ line: Substring) -> Bool {
    let parts = line.utf8.split(
      separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false
    ).map(Substring.init)
    // The upper bound leaves room for greater numbers of later purges.
    guard parts.count >= 2, let number = Int(parts[0]), (1...Int.max / 2).contains(number) else {
      return false
    }
    switch (parts[1], parts.count) {
    case ("last", 2): last = max(last, number)
    case ("clear", 2): cleared = UnixTime(seconds: number)
    default:
      guard
        let scope = PurgeScope(
          kind: parts[1], value: parts.count == 3 ? Self.unescaped(parts[2]) : nil)
      else { return false }
      purges.append(Purge(number: number, scope: scope))
    }
    return true
  }

  private static func text(of scope: PurgeScope) -> String {
    let (kind, value) = scope.words
    return value.map { "\(kind) \(escaped($0))" } ?? kind
  }

  // Only tags can contain a line feed or a backslash; URLs have them encoded.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  private static func unescaped(_ text: Substring) -> String {
    var unescaped = ""
    var isEscaped = false
    for scalar in text.unicodeScalars {
      if isEscaped {
        unescaped.unicodeScalars.append(scalar == "n" ? "\n" : scalar)
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else {
        unescaped.unicodeScalars.append(scalar)
      }
    }
    return unescaped
  }
}

extension DiskStore {
  private var journalPath: String { "\(folder.path)/purges" }

  /// Reads the unfinished purges of an earlier run. Must be called once, before anything is served.
  ///
  /// The file's size counts in the share of the variants from here on. The file may exceed the
  /// limit: a purge must work in a full tier, and a clean follows.
  ///
  /// - Throws: the system error if the file exists and cannot be read, because purged images might
  ///   be served.
  func readJournal() throws(SystemError) -> PurgeJournal {
    let file = OwnedDescriptor(owning: open(journalPath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW))
    guard file.value >= 0 else {
      guard errno == ENOENT else { throw SystemError() }
      return PurgeJournal()
    }
    var status = stat()
    guard fstat(file.value, &status) == 0 else { throw SystemError() }
    let bytes = try FileContents.read(file.value, limit: .max)
    noteJournal(PurgeJournalFile(bytes: Int(status.st_blocks) * 512))
    return PurgeJournal(parsing: String(decoding: bytes, as: UTF8.self)) { line in
      log.warning(
        "damaged line in the purge journal skipped",
        fields: ["file": .string(journalPath), "line": .int(line)])
    }
  }

  /// Appends lines to the file. Only one thread may call this and `writeJournal` at a time.
  ///
  /// - Parameter isDurable: Whether the lines are synced to the medium before this returns.
  /// - Returns: whether it is done. Otherwise the file must be replaced: this run has not written
  ///   it, it holds much that is finished, or it could not be written.
  func appendToJournal(_ lines: PurgeJournal, isDurable: Bool) -> Bool {
    var file = journal.withLock { $0 }
    guard folder.isLocked, let length = file.length, length < file.limit else { return false }
    let descriptor = open(journalPath, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size == length else { return false }
    let bytes = Array(lines.text.utf8)
    guard (try? EntryFile.put(bytes, to: descriptor, at: length)) != nil else { return false }
    guard !isDurable || fdatasync(descriptor) == 0, fstat(descriptor, &status) == 0 else {
      return false
    }
    file.length = length + bytes.count
    file.bytes = Int(status.st_blocks) * 512
    noteJournal(file)
    return true
  }

  /// Replaces the file, durably.
  func writeJournal(_ journal: PurgeJournal) throws(SystemError) {
    let (temporary, descriptor) = try createTemporary()
    var isMoved = false
    defer {
      close(descriptor)
      if !isMoved { unlink(temporary) }
    }
    let bytes = Array(journal.text.utf8)
    try EntryFile.put(bytes, to: descriptor, at: 0)
    // Without this sync before the rename, a power failure may leave an empty file in its place.
    guard fsync(descriptor) == 0 else { throw SystemError() }
    guard rename(temporary, journalPath) == 0 else { throw SystemError() }
    isMoved = true
    var file = PurgeJournalFile(bytes: DiskFolder.blocks(of: journalPath) * 512)
    noteJournal(file)
    try DiskFolder.sync(folder.path)
    file.length = bytes.count
    file.limit = max(2 * bytes.count, 65_536)
    noteJournal(file)
  }

  private func noteJournal(_ file: PurgeJournalFile) {
    let share = space[.variant]
    let old = journal.exchange(file)
    share.add(bytes: file.bytes - old.bytes)
    if file.bytes > old.bytes, share.isNearlyFull { onShortage.withLock { $0 }?() }
  }
}

/// The file of the purge journal as it was last written.
struct PurgeJournalFile {
  /// The accounted size.
  var bytes = 0
  /// The length; `nil` if the last write failed, or before the first of this run.
  var length: Int?
  /// From this length on, the file is replaced by one of unfinished purges.
  var limit = 0
}
