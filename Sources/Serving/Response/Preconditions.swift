// Preconditions: evaluates a request's preconditions (RFC 9110, section 13).

import Core
import Glibc

/// Evaluates `If-None-Match` and `If-Modified-Since` of a GET or HEAD request.
enum Preconditions {
  /// Returns whether the response is 304.
  ///
  /// - Parameters:
  ///   - info: the variant's metadata.
  ///   - ifNoneMatch: `*` or a list of entity tags, compared weakly. Takes precedence over the
  ///     date. Raw bytes, so that revalidation does not allocate.
  ///   - ifModifiedSince: a date; an invalid one is ignored.
  static func isNotModified(
    _ info: VariantInfo, ifNoneMatch: UnsafeRawBufferPointer?, ifModifiedSince: String?
  ) -> Bool {
    if let ifNoneMatch {
      return isNotModified(etag: info.etag, ifNoneMatch: ifNoneMatch)
    }
    guard let ifModifiedSince, let since = HTTPDate.parse(ifModifiedSince),
      let lastModified = info.lastModified
    else { return false }
    return lastModified <= since
  }

  /// Returns whether a list of entity tags, or `*`, contains the tag.
  static func isNotModified(etag: EntityTag, ifNoneMatch: UnsafeRawBufferPointer) -> Bool {
    etag.withUTF8 { matches(ifNoneMatch, etag: UnsafeRawBufferPointer($0)) }
  }

  /// Parses the list tag by tag, because quotes may contain commas and blanks.
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
      case UInt8(ascii: "*"):
        // Only alone (RFC 9110, section 13.1.2).
        return list.allSatisfy { $0 == UInt8(ascii: "*") || $0 == 0x20 || $0 == 0x09 }
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

  /// Returns the start of a tag's quoted part, after an optional `W/`.
  private static func opaqueStart(in text: UnsafeRawBufferPointer, at position: Int) -> Int {
    let isWeak =
      text.count >= position + 2 && text[position] == UInt8(ascii: "W")
      && text[position + 1] == UInt8(ascii: "/")
    return isWeak ? position + 2 : position
  }
}

extension UnsafeRawBufferPointer {
  /// Whether both buffers hold the same bytes and are not empty.
  fileprivate func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count, let start = baseAddress, let otherStart = other.baseAddress else {
      return false
    }
    return memcmp(start, otherStart, count) == 0
  }
}
