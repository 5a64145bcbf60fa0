// OriginResponseParser: parses status and fields of the final response, line by line.

import Core

/// Parses the head of a response. Ignores interim responses (1xx) and trailers, but counts their
/// bytes. Of trailers only announced digests count.
struct OriginResponseParser {
  /// The effect of a line.
  enum Event: Hashable {
    /// The head continues, or the line is irrelevant.
    case more
    /// The head of a final response (200 to 599) is complete; the body follows.
    case complete
    /// The header exceeds its limit.
    case tooLarge
  }

  private enum Part { case statusLine, fields, body }

  /// The parsed response, once the head is complete.
  private(set) var origin = OriginResponse(status: 0)
  /// The length of the body, if known: `Content-Length`, unless `Transfer-Encoding` overrides it
  /// (RFC 9112, section 6.3). Clamped to `Int.max`.
  var contentLength: Int? { hasTransferEncoding ? nil : length ?? wholeRange }
  /// Whether `Content-Length` applies and is invalid or inconsistent, so that the end of the body
  /// is unknown.
  var hasInvalidLength: Bool { !hasTransferEncoding && isLengthInvalid }
  /// The length of the decoded body, if known. `Content-Length` is that of the coded one.
  var bodyLength: Int? { contentEncoding == nil ? contentLength : nil }
  /// The body's digests, complete after the last line. Those of a coded body cover the coded bytes.
  private(set) var digests = BodyDigests()
  /// The known names in `Content-Encoding`, in lower case; several joined by commas. Any other
  /// (`aws-chunked`, `UTF-8`) says nothing about the bytes, which tell their format themselves.
  private(set) var contentEncoding: String?
  /// The unparsed `Location` of a redirect (RFC 9110, section 15.4).
  ///
  /// CURLINFO_REDIRECT_URL is not used, because curl sets it only after a complete body.
  var redirect: String? {
    switch origin.status {
    case 301, 302, 303, 307, 308: location
    default: nil
    }
  }
  /// The unparsed `Retry-After`.
  private(set) var retryAfter: String?
  /// Whether any line was received.
  var hasBegun: Bool { bytes > 0 }
  /// Whether the head of a final response is complete.
  var isComplete: Bool { part == .body }

  private var length: Int?
  private var isLengthInvalid = false
  private var hasTransferEncoding = false
  private var location: String?
  private static let cacheDirectives: Set = [
    "max-age", "s-maxage", "no-store", "no-cache", "private", "public", "must-revalidate",
    "proxy-revalidate", "stale-while-revalidate", "stale-if-error", "immutable",
  ]
  private var cdnControl: String?
  private var surrogateControl: String?
  /// The length of a 206 that has the whole image: `Content-Range: bytes 0-8/9`.
  private var wholeRange: Int?
  private var part = Part.statusLine
  private var bytes = 0
  private let limit: Int

  /// Creates a parser.
  ///
  /// - Parameter limit: maximum bytes of all lines together.
  init(limit: Int) { self.limit = limit }

  /// Parses one line, including its line break.
  mutating func receive(_ line: UnsafeRawBufferPointer) -> Event {
    bytes += line.count
    guard bytes <= limit else { return .tooLarge }
    let text = line.prefix { $0 != 0x0d && $0 != 0x0a }
    // Lines after the head are trailers.
    guard part != .body else {
      if digests.isAnnounced, let (name, value) = Self.field(in: text), name != "trailer" {
        digests.receive(name: name, String(decoding: value, as: UTF8.self))
      }
      return .more
    }
    if part == .statusLine {
      // Nothing of an interim response counts, except its bytes.
      let received = bytes
      self = OriginResponseParser(limit: limit)
      bytes = received
      origin.status = Self.status(ofLine: text)
      part = .fields
      return .more
    }
    guard text.isEmpty else {
      receiveField(text)
      return .more
    }
    part = (100..<200).contains(origin.status) ? .statusLine : .body
    // Some stores answer a plain GET so. What arrived is all of the image.
    let isWhole = origin.status == 206 && wholeRange != nil && length ?? wholeRange == wholeRange
    // A 201 has no heuristic freshness (RFC 9110, section 15.1).
    // One that says nothing of caching, such as `content="ESI/1.0"`, does not count.
    origin.targetedControl = [cdnControl, surrogateControl].compactMap(\.self).first {
      CacheDirectives($0).contains { Self.cacheDirectives.contains($0.name) }
    }
    if origin.status == 201, origin.targetedControl ?? origin.cacheControl ?? origin.expires == nil
    {
      origin.cacheControl = "no-cache"
    }
    if origin.status == 201 || isWhole { origin.status = 200 }
    return isComplete ? .complete : .more
  }

  /// `HTTP/1.1 200 OK`, `HTTP/2 200`.
  private static func status(ofLine line: Slice<UnsafeRawBufferPointer>) -> Int {
    let words = line.split(separator: 0x20, maxSplits: 2)
    guard words.count > 1 else { return 0 }
    return Int(String(decoding: words[1], as: UTF8.self)) ?? 0
  }

  /// Returns the name in lower case and the value; `nil` for a line that is no field.
  ///
  /// A line that starts with a blank continues the previous one (obs-fold, RFC 9112, section 5.2).
  /// It is ignored, because the fields kept here are short.
  private static func field(
    in line: Slice<UnsafeRawBufferPointer>
  ) -> (name: String, value: Slice<UnsafeRawBufferPointer>)? {
    guard let colon = line.firstIndex(of: 0x3a), line.first != 0x20, line.first != 0x09 else {
      return nil
    }
    let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
    return (name, line[line.index(after: colon)...].trimming { $0.isBlank })
  }

  private mutating func receiveField(_ line: Slice<UnsafeRawBufferPointer>) {
    guard let (name, value) = Self.field(in: line) else { return }
    // Checked before other values are ignored: curl uses the leading digits of an invalid length.
    if name == "content-length" { return receiveLength(value) }
    // Control characters are refused (RFC 9110, section 5.5), because the value may be sent later.
    guard !value.isEmpty, !value.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f }) else {
      return
    }
    let text = String(decoding: value, as: UTF8.self)
    switch name {
    case "content-type": Self.keep(text, in: &origin.contentType)
    case "cache-control": Self.join(text, to: &origin.cacheControl)
    case "cdn-cache-control": Self.join(text, to: &cdnControl)
    // Its `max-age=60+30` is a lifetime, and seconds for which it may be stale.
    case "surrogate-control":
      Self.join(
        text.split(separator: ",").map { $0.prefix { $0 != "+" } }.joined(separator: ","),
        to: &surrogateControl)
    case "vary": Self.join(text, to: &origin.vary)
    case "expires": Self.keep(text, in: &origin.expires)
    case "date": Self.keep(text, in: &origin.date)
    case "age": Self.keep(text, in: &origin.age)
    case "last-modified": Self.keep(text, in: &origin.lastModified)
    case "etag": Self.keep(text, in: &origin.etag)
    case "transfer-encoding": hasTransferEncoding = true
    case "content-encoding":
      for coding in value.split(separator: 0x2c) {
        let name = String(decoding: coding.trimming { $0.isBlank }, as: UTF8.self).lowercased()
        if ContentCoding(name: name) != nil { Self.join(name, to: &contentEncoding) }
      }
    case "location":
      Self.keep(String(validating: value, as: UTF8.self) ?? Self.escaped(value), in: &location)
    case "content-range": wholeRange = Self.wholeRange(text)
    case "retry-after": Self.keep(text, in: &retryAfter)
    default: digests.receive(name: name, text)
    }
  }

  /// Parses one number, or the same number several times (RFC 9110, section 8.6).
  private mutating func receiveLength(_ value: Slice<UnsafeRawBufferPointer>) {
    for item in value.split(separator: 0x2c, omittingEmptySubsequences: false) {
      let digits = item.trimming { $0.isBlank }
      guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return isLengthInvalid = true
      }
      let number = Int(String(decoding: digits, as: UTF8.self)) ?? .max
      if let length, length != number { isLengthInvalid = true }
      length = number
    }
  }

  /// Returns a value whose bytes are no UTF-8 (Latin-1) with `%E4` for the byte E4.
  private static func escaped(_ value: Slice<UnsafeRawBufferPointer>) -> String {
    value.reduce(into: "") { text, byte in
      text +=
        byte < 0x80 ? String(UnicodeScalar(byte)) : "%" + String(byte, radix: 16, uppercase: true)
    }
  }

  /// Returns the length that a `Content-Range` of everything states; `nil` for a part.
  private static func wholeRange(_ text: String) -> Int? {
    let words = text.lowercased().split { " -/".contains($0) }
    guard words.count == 4, words[0] == "bytes", words[1] == "0", let last = Int(words[2]),
      let count = Int(words[3]), count > 0, last == count - 1
    else { return nil }
    return count
  }

  /// Joins the lines of a list field (RFC 9110, section 5.3).
  private static func join(_ text: String, to field: inout String?) {
    field = field.map { $0 + ", " + text } ?? text
  }

  /// Keeps the first of several values of a singleton field.
  private static func keep(_ text: String, in field: inout String?) {
    if field == nil { field = text }
  }
}
