// Preconditions: whether a client already has what it asks for (RFC 9110, section 13).

import Model

/// Evaluating `If-None-Match` and `If-Modified-Since` of a GET or HEAD.
enum Preconditions {
  /// Whether the answer is 304.
  ///
  /// - Parameters:
  ///   - ifNoneMatch: `*` or a list of entity tags, compared weakly; where it is present, the date is not looked at.
  ///     Its bytes as they came: revalidating is as frequent as any hit, and allocates as little.
  ///   - ifModifiedSince: a date; one that cannot be read is ignored.
  static func isNotModified(
    _ info: VariantInfo, ifNoneMatch: UnsafeRawBufferPointer?, ifModifiedSince: String?
  ) -> Bool {
    if let ifNoneMatch {
      var etag = info.etag
      return etag.withUTF8 { matches(ifNoneMatch, etag: UnsafeRawBufferPointer($0)) }
    }
    guard let ifModifiedSince, let since = HTTPDate.parse(ifModifiedSince),
      let lastModified = info.lastModified.flatMap({ HTTPDate.parse($0) })
    else { return false }
    return lastModified <= since
  }

  /// Walks the list tag by tag: a comma or a blank may stand inside the quotes.
  private static func matches(
    _ list: UnsafeRawBufferPointer, etag: UnsafeRawBufferPointer
  ) -> Bool {
    let wanted = UnsafeRawBufferPointer(rebasing: etag[opaqueStart(in: etag, at: 0)...])
    var position = 0
    while position < list.count {
      switch list[position] {
      case UInt8(ascii: " "), UInt8(ascii: ","), UInt8(ascii: "\t"):
        position += 1
        continue
      case UInt8(ascii: "*"): return true
      default: position = opaqueStart(in: list, at: position)
      }
      guard position < list.count, list[position] == UInt8(ascii: "\"") else { return false }
      var end = position + 1
      while end < list.count, list[end] != UInt8(ascii: "\"") { end += 1 }
      guard end < list.count else { return false }
      end += 1
      if wanted.isEqual(to: UnsafeRawBufferPointer(rebasing: list[position..<end])) { return true }
      position = end
    }
    return false
  }

  /// Where a tag that begins at `position` goes on behind its mark of weakness.
  private static func opaqueStart(in text: UnsafeRawBufferPointer, at position: Int) -> Int {
    let isWeak =
      text.count >= position + 2 && text[position] == UInt8(ascii: "W")
      && text[position + 1] == UInt8(ascii: "/")
    return isWeak ? position + 2 : position
  }
}
