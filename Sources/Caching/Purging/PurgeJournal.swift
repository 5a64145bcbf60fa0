// PurgeJournal: the unfinished purges, and their text on disk.

import Model

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
    lines += purges.map { "\($0.number) \(Self.words(for: $0.scope))" }
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
        let scope = Self.scope(parts[1], value: parts.count == 3 ? Self.unescaped(parts[2]) : nil)
      else { return false }
      purges.append(Purge(number: number, scope: scope))
    }
    return true
  }

  private static func words(for scope: PurgeScope) -> String {
    switch scope {
    case .url(let url): "url " + url.text
    case .prefix(let url): "prefix " + url.text
    case .host(let host): "host " + host.description
    case .tag(let tag): "tag " + escaped(tag)
    case .everything: "everything"
    }
  }

  private static func scope(_ kind: Substring, value: String?) -> PurgeScope? {
    guard let value else { return kind == "everything" ? .everything : nil }
    switch kind {
    case "url": return url(value).map(PurgeScope.url)
    case "prefix": return url(value).map(PurgeScope.prefix)
    case "host": return HostPattern(value).map(PurgeScope.host)
    case "tag": return .tag(value)
    default: return nil
    }
  }

  /// Parses a URL. Rejects any text but the normalised form that was written.
  private static func url(_ text: String) -> SourceURL? {
    guard let url = try? SourceURL(parsing: text), url.text == text else { return nil }
    return url
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
