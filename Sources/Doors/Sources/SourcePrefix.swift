// SourcePrefix: beginnings of sources with wildcards, which allow or replace them.

/// The beginning of a source, in which `*` stands for any bytes but slashes.
struct SourcePrefix: Sendable {
  /// The texts between the wildcards.
  private let pieces: [[UInt8]]
  /// The most bytes that a wildcard stands for, which bounds the time of a match.
  private static let longestPart = 255

  /// Creates a beginning.
  init(_ pattern: String) {
    pieces = pattern.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
      .map(Array.init)
  }

  /// Whether a source begins so.
  func matches(_ source: String) -> Bool { end(in: source) != nil }

  /// Returns how many bytes of a source the beginning has, as many as possible; `nil`: the source
  /// begins otherwise.
  func end(in source: String) -> Int? { match(Array(source.utf8)).map(end) }

  private func end(of parts: [Range<Int>]) -> Int {
    (parts.last?.upperBound ?? 0) + (pieces.last?.count ?? 0)
  }

  /// Returns a source with its beginning replaced; `nil` if it begins otherwise. `${1}` in the text
  /// is what the first wildcard stands for, and so on.
  func replacing(in source: String, with text: String) -> String? {
    let bytes = Array(source.utf8)
    guard let parts = match(bytes) else { return nil }
    let end = end(of: parts)
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "$"), rest.first == UInt8(ascii: "{"),
        let close = rest.firstIndex(of: UInt8(ascii: "}")),
        let number = Int(String(decoding: rest[rest.startIndex + 1..<close], as: UTF8.self)),
        number >= 1
      {
        if number <= parts.count { result += bytes[parts[number - 1]] }
        rest = rest[(close + 1)...]
      } else {
        result.append(byte)
      }
    }
    return String(decoding: result + bytes[end...], as: UTF8.self)
  }

  /// Returns what the wildcards stand for, each as long as possible; `nil` without a match.
  private func match(_ text: [UInt8]) -> [Range<Int>]? {
    var failed: Set<Int> = []
    return match(piece: 0, at: 0, in: text, failed: &failed)
  }

  /// Matches from a piece on. Each wildcard and place is tried once.
  private func match(
    piece index: Int, at start: Int, in text: [UInt8], failed: inout Set<Int>
  ) -> [Range<Int>]? {
    guard text[start...].starts(with: pieces[index]) else { return nil }
    let next = start + pieces[index].count
    guard index + 1 < pieces.count else { return [] }
    guard failed.insert(index * (text.count + 1) + next).inserted else { return nil }
    let part = text[next...].prefix(Self.longestPart).prefix { $0 != UInt8(ascii: "/") }
    for end in (next...part.endIndex).reversed() {
      if let rest = match(piece: index + 1, at: end, in: text, failed: &failed) {
        return [next..<end] + rest
      }
    }
    return nil
  }
}
