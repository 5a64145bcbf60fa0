// Preconditions: evaluates a request's preconditions and its range (RFC 9110, sections 13 and 14).

import Core
import Glibc

/// Evaluates `If-None-Match` and `If-Modified-Since` of a GET or HEAD request.
enum Preconditions {
  /// Returns whether the response is 304.
  ///
  /// - Parameters:
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

/// A single range of bytes, as a resumed download asks for. Several ranges, other units and
/// texts that are no range are ignored: the client gets the whole.
enum ByteRange: Equatable, CustomStringConvertible {
  /// Positions in the whole, at least one.
  case part(Range<Int>, of: Int)
  /// The whole ends before the range begins.
  case beyond(Int)

  /// Reads `Range` of a request, unless `If-Range` names other bytes. A date there never fits: an
  /// image that is compressed once more has other bytes and the same date.
  init?(on connection: OpaquePointer, of tag: EntityTag, _ count: Int) {
    guard let text = RequestHandler.field("Range", on: connection) else { return nil }
    if let condition = RequestHandler.field("If-Range", on: connection) {
      let condition = String(cString: condition)
      guard EntityTag(condition) == tag, !condition.hasPrefix("W/") else { return nil }
    }
    self.init(String(cString: text), of: count)
  }

  /// Parses `bytes=0-99`, `bytes=100-` or `bytes=-100` (section 14.1.2) for `count` bytes.
  init?(_ text: String, of count: Int) {
    let halves = text.split(separator: "=", maxSplits: 1)
    guard halves.count == 2, halves[0].lowercased() == "bytes" else { return nil }
    let ends = halves[1].trimming { $0 == " " }.split(
      separator: "-", maxSplits: 1, omittingEmptySubsequences: false
    ).map { $0.isEmpty ? nil : CacheDirectives.seconds($0) ?? -1 }
    guard ends.count == 2, !ends.contains(-1) else { return nil }
    switch (ends[0], ends[1]) {
    case (let first?, let last):
      guard first <= last ?? .max else { return nil }
      self =
        first < count ? .part(first..<min(last ?? .max, count - 1) + 1, of: count) : .beyond(count)
    case (nil, let suffix?):
      self =
        suffix > 0 && count > 0 ? .part(max(count - suffix, 0)..<count, of: count) : .beyond(count)
    case (nil, nil): return nil
    }
  }

  /// The status: 206, or 416 for what is not there.
  var status: Int { if case .part = self { 206 } else { 416 } }

  /// `Content-Range` (section 14.4).
  var description: String {
    switch self {
    case .part(let range, let count):
      "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(count)"
    case .beyond(let count): "bytes */\(count)"
    }
  }

  /// Returns these bytes of a body; `nil` for a range beyond its end.
  ///
  /// - Throws: `overloaded` if there are too many descriptors.
  func part(of body: Variant.Body) throws(ImageError) -> Variant.Body? {
    guard case .part(let range, _) = self else { return nil }
    switch body {
    case .memory(let bytes): return .memory(ImageBytes(range, of: bytes))
    case .file(let region):
      do throws(SystemError) { return .file(try region.part(range)) } catch {
        throw .overloaded(queue: "descriptors", retryAfter: 1)
      }
    }
  }
}
