// OriginResponseParser: the status and the headers of the final answer, from the lines curl hands over one by one.

import Model

/// Collects the head of an answer. Interim answers (1xx) and trailers leave no trace in it, but their bytes count.
struct OriginResponseParser {
  /// What a line was.
  enum Event: Hashable {
    /// The head goes on, or the line does not matter.
    case more
    /// The head of a final answer (200 to 599) is whole; the body follows.
    case complete
    /// More header bytes than allowed.
    case tooLarge
  }

  private enum Part { case statusLine, fields, body }

  /// What is kept, once the head is whole.
  private(set) var origin = OriginResponse(status: 0)
  /// How many bytes the body has, where the head says so: `Content-Length`, unless there is a `Transfer-Encoding`,
  /// which overrides it (RFC 9112, section 6.3). A number too great for `Int` is the greatest.
  var contentLength: Int? { hasTransferEncoding ? nil : length }
  /// Whether `Content-Length` counts and is no number, or not always the same: then nobody knows where the body ends.
  var hasInvalidLength: Bool { !hasTransferEncoding && isLengthInvalid }
  /// How many bytes of body are handed on, where the head says so: a coded body has others than its `Content-Length`.
  var bodyLength: Int? { contentEncoding == nil ? contentLength : nil }
  /// What the origin says of the content's bytes. Nothing where they are coded: what curl hands on is decoded.
  var digests: BodyDigests { contentEncoding == nil ? sentDigests : BodyDigests() }
  /// `Content-Encoding` in lower case, other than `identity`; several joined by commas.
  private(set) var contentEncoding: String?
  /// `Location` of a redirect (RFC 9110, section 15.4), as it stands there.
  ///
  /// Not CURLINFO_REDIRECT_URL, which curl only has where the answer's body came whole.
  var redirect: String? {
    switch origin.status {
    case 301, 302, 303, 307, 308: location
    default: nil
    }
  }
  /// `Retry-After`, as it stands there.
  private(set) var retryAfter: String?
  /// Whether any line came.
  var hasBegun: Bool { bytes > 0 }
  /// Whether the head of a final answer is whole.
  var isComplete: Bool { part == .body }

  private var length: Int?
  private var isLengthInvalid = false
  private var hasTransferEncoding = false
  private var location: String?
  private var sentDigests = BodyDigests()
  private var part = Part.statusLine
  private var bytes = 0
  private let limit: Int

  /// - Parameter limit: most bytes of all lines together.
  init(limit: Int) { self.limit = limit }

  /// Takes in one line, with its line break.
  mutating func receive(_ line: UnsafeRawBufferPointer) -> Event {
    bytes += line.count
    guard bytes <= limit else { return .tooLarge }
    // Behind the head there are only trailers, which change nothing that is kept.
    guard part != .body else { return .more }
    let text = line.prefix { $0 != 0x0d && $0 != 0x0a }
    if part == .statusLine {
      (origin, contentEncoding, location, retryAfter) = (OriginResponse(status: 0), nil, nil, nil)
      (length, isLengthInvalid, hasTransferEncoding) = (nil, false, false)
      sentDigests = BodyDigests()
      origin.status = Self.status(ofLine: text)
      part = .fields
      return .more
    }
    guard text.isEmpty else {
      receiveField(text)
      return .more
    }
    part = (100..<200).contains(origin.status) ? .statusLine : .body
    return isComplete ? .complete : .more
  }

  /// `HTTP/1.1 200 OK`, `HTTP/2 200`.
  private static func status(ofLine line: Slice<UnsafeRawBufferPointer>) -> Int {
    let words = line.split(separator: 0x20, maxSplits: 2)
    guard words.count > 1 else { return 0 }
    return Int(String(decoding: words[1], as: UTF8.self)) ?? 0
  }

  private mutating func receiveField(_ line: Slice<UnsafeRawBufferPointer>) {
    // A line that starts with a space continues the one before (obs-fold, RFC 9112, section 5.2): none of the
    // headers kept here is ever that long.
    guard let colon = line.firstIndex(of: 0x3a), line.first != 0x20, line.first != 0x09 else {
      return
    }
    let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
    let value = Self.trimmed(line[line.index(after: colon)...])
    // Before anything is passed over: curl goes by the digits that a length begins with.
    if name == "content-length" { return receiveLength(value) }
    // What is kept may be sent on one day: no control characters (RFC 9110, section 5.5).
    guard !value.isEmpty, !value.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f }) else {
      return
    }
    let text = String(decoding: value, as: UTF8.self)
    switch name {
    case "content-type": Self.keep(text, &origin.contentType)
    case "cache-control": Self.join(text, &origin.cacheControl)
    case "vary": Self.join(text, &origin.vary)
    case "expires": Self.keep(text, &origin.expires)
    case "date": Self.keep(text, &origin.date)
    case "age": Self.keep(text, &origin.age)
    case "last-modified": Self.keep(text, &origin.lastModified)
    case "etag": Self.keep(text, &origin.etag)
    case "transfer-encoding": hasTransferEncoding = true
    case "content-encoding" where text.lowercased() != "identity":
      Self.join(text.lowercased(), &contentEncoding)
    case "location": Self.keep(text, &location)
    case "retry-after": Self.keep(text, &retryAfter)
    default: sentDigests.receive(name: name, text)
    }
  }

  /// One number, or the same one several times (RFC 9110, section 8.6).
  private mutating func receiveLength(_ value: Slice<UnsafeRawBufferPointer>) {
    for item in value.split(separator: 0x2c, omittingEmptySubsequences: false) {
      let digits = Self.trimmed(item)
      guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return isLengthInvalid = true
      }
      let number = Int(String(decoding: digits, as: UTF8.self)) ?? .max
      if let length, length != number { isLengthInvalid = true }
      length = number
    }
  }

  private static func trimmed(
    _ text: Slice<UnsafeRawBufferPointer>
  ) -> Slice<UnsafeRawBufferPointer> {
    var text = text.drop { $0 == 0x20 || $0 == 0x09 }
    while text.last == 0x20 || text.last == 0x09 { text.removeLast() }
    return text
  }

  /// The lines of a list are one list (RFC 9110, section 5.3).
  private static func join(_ text: String, _ field: inout String?) {
    field = field.map { $0 + ", " + text } ?? text
  }

  /// Of a header that may appear once, the first counts.
  private static func keep(_ text: String, _ field: inout String?) {
    if field == nil { field = text }
  }
}
