// RequestFraming: finds where requests begin and end (RFC 9112) and rejects invalid bytes.

import Core

/// Checks the bytes of one connection before libmicrohttpd parses them. Accepts pieces of any size.
///
/// A pure state machine that allocates nothing. It is stricter than RFC 9112: it refuses what two
/// implementations may parse differently, because a proxy in front may be the other one (request
/// smuggling). It refuses:
/// - two lengths, or a length together with a transfer coding
/// - two hosts
/// - folded lines, line ends other than CRLF, blanks around names, and control characters.
struct RequestFraming {
  /// The result of checking a piece.
  enum Verdict: Equatable {
    /// The piece consists of requests, or parts of requests.
    case accepted
    /// The request that begins at `start` is refused; 0 if it began in an earlier piece.
    case refused(ImageError, start: Int)
  }

  /// Maximum length of the target, in bytes; RFC 9110, section 4.1, recommends at least 8,000.
  static let longestTarget = 8_192
  /// What libmicrohttpd's 16 KiB hold beside a response head: bytes, and `itemCost` for each field,
  /// parameter and cookie. It copies the value of `Cookie`, which counts twice.
  static let largestHead = 13_312
  /// Bytes that libmicrohttpd allocates for a field, a parameter or a cookie.
  static let itemCost = 64
  static let longestMethod = 32

  enum State {
    case start, startLineFeed, method, target, version, lineFeed
    case fieldStart, name, valueStart, value, valueLineFeed, endLineFeed
    case body, chunkSize, chunkLineFeed, chunkData, chunkEnd, chunkEndLineFeed
  }

  /// The fields that decide about framing, and the one that libmicrohttpd takes apart.
  enum Field { case contentLength, transferEncoding, host, cookie, other }

  var state = State.start
  /// The number of complete requests, including their bodies.
  private(set) var wholeRequests = 0
  /// The offset in the last piece at which the latest request began; 0 if it began in an earlier
  /// piece.
  private(set) var lastStart = 0
  /// The offsets of quotation marks in cookies of the last piece; see `cookieQuote`.
  var cookieQuotes: [Int] = []
  /// Whether the next byte begins a request.
  var isBetweenRequests: Bool { state == .start }
  /// Whether the next byte is part of a request's head or begins one.
  var isBeforeBody: Bool {
    switch state {
    case .start, .startLineFeed, .method, .target, .version, .lineFeed: true
    case .fieldStart, .name, .valueStart, .value, .valueLineFeed, .endLineFeed: !isTrailer
    case .body, .chunkSize, .chunkLineFeed, .chunkData, .chunkEnd, .chunkEndLineFeed:
      false
    }
  }
  /// Whether the head of the request behind `ended` others was checked. `false` if its bytes
  /// reached libmicrohttpd by another call than recv(2).
  func hasChecked(requestAfter ended: Int) -> Bool { wholeRequests > ended || !isBeforeBody }
  /// Whether a request line has begun and has not ended.
  var isInLine: Bool { state == .method || state == .target || state == .version }

  // The current request.
  var methodIsOptions = false
  var isHTTP1 = false
  var isHTTP11 = false
  var isTrailer = false
  /// Bytes parsed of the current element.
  var position = 0
  /// The cost of the head so far.
  var cost = 0
  var hosts = 0
  var hasLength = false
  var hasCoding = false
  /// The known names that match the current name so far.
  var candidates = FieldNames.none
  var field = Field.other
  /// Significant characters of the value so far; for a coding, the matched length of `chunked`.
  var valueCount = 0
  var sawBlankInValue = false
  /// Remaining bytes of the body or chunk.
  var rest = 0

  /// Checks the next piece.
  mutating func take(_ bytes: UnsafeRawBufferPointer) -> Verdict {
    var start = 0
    var index = 0
    if !cookieQuotes.isEmpty { cookieQuotes = [] }
    defer { lastStart = start }
    do throws(ImageError) {
      while index < bytes.count {
        if state == .start { start = index }
        index = try step(bytes, from: index)
      }
      return .accepted
    } catch {
      return .refused(error, start: start)
    }
  }

  /// Parses at least one byte in the current state. Returns the index where it stops.
  private mutating func step(
    _ bytes: UnsafeRawBufferPointer, from index: Int
  ) throws(ImageError) -> Int {
    switch state {
    case .start, .startLineFeed, .method, .target, .version, .lineFeed:
      return try stepLine(bytes, from: index)
    case .fieldStart, .name, .valueStart, .value, .valueLineFeed, .endLineFeed:
      return try stepField(bytes, from: index)
    case .body, .chunkSize, .chunkLineFeed, .chunkData, .chunkEnd, .chunkEndLineFeed:
      return try stepBody(bytes, from: index)
    }
  }

  /// What libmicrohttpd gets in place of a quotation mark in `Cookie`. Its parser of cookies takes
  /// one quotation mark alone for two, and then refuses the request (`Cookie: a="` is 431). Nothing
  /// here reads its cookies, and no client can send this byte. `Forwarding` puts the mark back.
  static let cookieQuote: UInt8 = 0x01

  /// Ends the head. A body or the next request follows.
  mutating func endHead() throws(ImageError) {
    if isTrailer { return endRequest() }
    guard hosts == 1 || (hosts == 0 && !isHTTP11) else {
      throw .malformedRequest("a request requires exactly one Host header")
    }
    if hasCoding {
      guard !hasLength else { throw .malformedRequest("both Transfer-Encoding and Content-Length") }
      guard isHTTP11 else { throw .malformedRequest("Transfer-Encoding in HTTP/1.0") }
      beginChunk()
    } else if rest > 0 {
      state = .body
    } else {
      endRequest()
    }
  }

  mutating func beginChunk() {
    state = .chunkSize
    position = 0
    rest = 0
  }

  /// Ends the request and resets the state for the next one.
  mutating func endRequest() {
    let whole = wholeRequests + 1
    let quotes = cookieQuotes
    self = RequestFraming()
    wholeRequests = whole
    cookieQuotes = quotes
  }

  /// Adds to the cost of the head.
  /// - Throws: `targetTooLong` or `headTooLarge` above `largestHead`.
  mutating func pay(_ amount: Int) throws(ImageError) {
    cost += amount
    guard cost <= Self.largestHead else {
      throw state == .target
        ? .targetTooLong(limit: Self.longestTarget) : .headTooLarge(limit: Self.largestHead)
    }
  }
}

extension RequestFraming {
  /// Parses the body from `first`. Returns the index after the parsed bytes.
  mutating func stepBody(
    _ bytes: UnsafeRawBufferPointer, from first: Int
  ) throws(ImageError) -> Int {
    let byte = bytes[first]
    switch state {
    case .body:
      let count = min(rest, bytes.count - first)
      rest -= count
      if rest == 0 { endRequest() }
      return first + count
    case .chunkSize:
      if let digit = byte.hexadecimalValue {
        // 15 hexadecimal digits cannot overflow `Int`.
        guard position < 15 else { throw .malformedRequest("a chunk size is too long") }
        rest = rest << 4 | Int(digit)
        position += 1
        return first + 1
      }
      guard position > 0 else { throw .malformedRequest("a chunk without a size") }
      position = 0
      // libmicrohttpd 1.0.1 refuses extensions (RFC 9112, section 7.1.1) with an answer of its own.
      guard byte != UInt8(ascii: ";") else { throw .malformedRequest("a chunk with an extension") }
      guard byte == Byte.carriageReturn else {
        throw .malformedRequest("a chunk size is not a number")
      }
      state = .chunkLineFeed
      return first + 1
    case .chunkLineFeed:
      try expectLineFeed(byte)
      if rest > 0 {
        state = .chunkData
      } else {
        isTrailer = true
        state = .fieldStart
      }
    case .chunkData:
      let count = min(rest, bytes.count - first)
      rest -= count
      if rest == 0 { state = .chunkEnd }
      return first + count
    case .chunkEnd:
      guard byte == Byte.carriageReturn else {
        throw .malformedRequest("a chunk longer than its size")
      }
      state = .chunkEndLineFeed
    default:
      try expectLineFeed(byte)
      beginChunk()
    }
    return first + 1
  }
}

/// The words that decide about framing and about the room for a head, in lower case.
struct FieldNames: OptionSet {
  let rawValue: UInt8

  static let none: FieldNames = []
  static let contentLength = FieldNames(rawValue: 1)
  static let transferEncoding = FieldNames(rawValue: 2)
  static let host = FieldNames(rawValue: 4)
  static let cookie = FieldNames(rawValue: 8)
  static let all: FieldNames = [.contentLength, .transferEncoding, .host, .cookie]

  static let chunked: StaticString = "chunked"
  static let options: StaticString = "OPTIONS"
  /// The pattern of an HTTP version; a zero stands for any digit.
  static let version: StaticString = "HTTP/0.0"
  /// The position of the major version's digit in `version`.
  static let majorPosition = 5
  private static let lengthName: StaticString = "content-length"
  private static let codingName: StaticString = "transfer-encoding"
  private static let hostName: StaticString = "host"
  private static let cookieName: StaticString = "cookie"

  /// Keeps the names that have this byte at this position, ignoring case.
  mutating func narrow(by byte: UInt8, at position: Int) {
    drop(.contentLength, named: Self.lengthName, byte: byte, at: position)
    drop(.transferEncoding, named: Self.codingName, byte: byte, at: position)
    drop(.host, named: Self.hostName, byte: byte, at: position)
    drop(.cookie, named: Self.cookieName, byte: byte, at: position)
  }

  private mutating func drop(
    _ name: FieldNames, named text: StaticString, byte: UInt8, at position: Int
  ) {
    // Most names of other fields match none of them after a byte or two.
    guard contains(name) else { return }
    guard position < text.utf8CodeUnitCount,
      text.utf8Start[position] == Byte.lowercased(byte)
    else { return subtract(name) }
  }

  /// Returns the field that matches after `length` bytes of its name.
  func field(length: Int) -> RequestFraming.Field {
    switch self {
    case .contentLength where length == Self.lengthName.utf8CodeUnitCount: .contentLength
    case .transferEncoding where length == Self.codingName.utf8CodeUnitCount: .transferEncoding
    case .host where length == Self.hostName.utf8CodeUnitCount: .host
    case .cookie where length == Self.cookieName.utf8CodeUnitCount: .cookie
    default: .other
    }
  }
}

/// Byte classes (RFC 9110, section 5.6.2; RFC 3986, section 3.2.2).
enum Byte {
  static let tab: UInt8 = 0x09
  static let lineFeed: UInt8 = 0x0a
  static let carriageReturn: UInt8 = 0x0d
  static let space: UInt8 = 0x20
  static let delete: UInt8 = 0x7f
  /// The bit that distinguishes lower-case from upper-case ASCII letters.
  static let caseBit: UInt8 = 0x20

  /// Whether the byte may occur in tokens: letters, digits and !#$%&'*+-.^_`|~.
  static func isToken(_ byte: UInt8) -> Bool {
    has(byte, low: 0x03ff_6cfa_0000_0000, high: 0x57ff_ffff_c7ff_fffe)
  }
  /// Whether the byte may occur in a host with port: letters, digits and -._~!$&'()*+;=%:[].
  static func isHost(_ byte: UInt8) -> Bool {
    has(byte, low: 0x2fff_6ff2_0000_0000, high: 0x47ff_fffe_afff_fffe)
  }
  /// Whether the byte may occur in a field value.
  static func isValue(_ byte: UInt8) -> Bool {
    byte >= space ? byte != delete : byte == tab
  }
  /// Skips characters of a host. Returns the index where it stops.
  static func endOfHost(_ bytes: UnsafeRawBufferPointer, from first: Int) -> Int {
    var index = first
    while index < bytes.count, isHost(bytes[index]) { index += 1 }
    return index
  }
  /// Skips plain field-value characters, eight bytes at a time. Returns the index where it stops.
  static func endOfPlainWords(_ bytes: UnsafeRawBufferPointer, from first: Int) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highBits = ones << 7
    var index = first
    while index + 8 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      // Sets a byte's high bit if the byte is below space or is DEL.
      let isControl = (word &- ones &* UInt64(space)) & ~word
      let difference = word ^ (ones &* UInt64(delete))
      let isDelete = (difference &- ones) & ~difference
      guard (isControl | isDelete) & highBits == 0 else { break }
      index += 8
    }
    return index
  }
  /// Returns the lower-case form of an ASCII letter, and any other byte unchanged.
  static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | caseBit : byte }

  /// Tests the bit of an ASCII character in a 128-bit set.
  private static func has(_ byte: UInt8, low: UInt64, high: UInt64) -> Bool {
    byte < 128 && (byte < 64 ? low : high) & (1 << UInt64(byte & 63)) != 0
  }
}
