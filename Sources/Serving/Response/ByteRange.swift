// ByteRange: the part of an image that a request asks for (RFC 9110, section 14).

import Core

/// A single range of bytes, as a download that goes on asks for. Several ranges, other units and
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

  /// Returns these bytes of a body; `nil` if there are none.
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
