// NearestNames: suggests existing names for mistyped ones.

/// Suggestions for mistyped names of keys, options, commands and parameters.
public enum NearestNames {
  /// The maximum number of suggestions.
  private static let maximumCount = 5
  /// The maximum length of a name with suggestions, in bytes: comparisons are quadratic.
  private static let longest = 64

  /// Returns the names that resemble `given`, the most similar first.
  ///
  /// A similar name has one of:
  /// - another spelling: `server-port`, `SERVER_PORT`
  /// - the same end: `port` for `server.port`
  /// - the same beginning: `log` for `log.level`
  /// - a few different letters
  public static func of(_ given: String, among names: [String]) -> [String] {
    guard given.utf8.count <= longest else { return [] }
    let wanted = words(given)
    guard !wanted.isEmpty else { return [] }
    let likeness: [(String) -> Bool] = [
      { words($0) == wanted },
      { last($0) == last(given) },
      { words($0).suffix(wanted.count).elementsEqual(wanted) },
      { words($0).starts(with: wanted) },
    ]
    for isLike in likeness {
      let found = names.filter(isLike)
      if !found.isEmpty { return Array(found.prefix(maximumCount)) }
    }
    let near = closest(wanted.joined(separator: "."), among: names)
    guard near.isEmpty, wanted.count == 1, let beginning = wanted.first, beginning.count >= 3 else {
      return near
    }
    return Array(names.filter { last($0).hasPrefix(beginning) }.prefix(maximumCount))
  }

  /// Returns `; did you mean a, b or c?`, or an empty text without names.
  public static func question(_ names: [String]) -> String {
    guard let last = names.last else { return "" }
    let others = names.dropLast().joined(separator: ", ")
    return "; did you mean \(others.isEmpty ? "" : others + " or ")\(last)?"
  }

  /// Returns the names with the fewest edits from `text`, if these are few for its length.
  private static func closest(_ text: String, among names: [String]) -> [String] {
    let limit = 1 + text.utf8.count / 5
    let distances = names.map { name in
      let whole = distance(text, words(name).joined(separator: "."))
      // A name without its section is compared with names without theirs.
      let end = text.contains(".") ? .max : distance(text, last(name))
      return (min(whole, end), whole <= end)
    }
    guard let least = distances.map(\.0).min(), least <= limit else { return [] }
    let found = zip(names, distances).filter { $0.1.0 == least }
    // `--prefix` of a command comes before `--fleet.s3.prefix`.
    let whole = found.filter(\.1.1)
    return Array((whole.isEmpty ? found : whole).map(\.0).prefix(maximumCount))
  }

  private static func words(_ name: String) -> [String] {
    name.lowercased().split(whereSeparator: { "._-".contains($0) }).map(String.init)
  }

  /// Returns the part after the section.
  private static func last(_ name: String) -> String {
    let name = name.lowercased()
    return String(name[(name.lastIndex(of: ".").map(name.index(after:)) ?? name.startIndex)...])
  }

  /// Returns the edit distance of two texts: insertions, deletions, replacements and exchanges of
  /// neighbours (optimal string alignment).
  static func distance(_ left: String, _ right: String) -> Int {
    let left = Array(left.utf8)
    let right = Array(right.utf8)
    var before = [Int]()
    var previous = Array(0...right.count)
    for (row, byte) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var least = min(
          previous[column] + (byte == other ? 0 : 1), previous[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
          least = min(least, before[column - 1] + 1)
        }
        current.append(least)
      }
      before = previous
      previous = current
    }
    return previous[right.count]
  }
}
