// RequestFraming: finds where requests begin and end (RFC 9112) and rejects invalid bytes.

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
    case refused(FramingFault, start: Int)
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
  private(set) var cookieQuotes: [Int] = []
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
    do throws(FramingFault) {
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
  ) throws(FramingFault) -> Int {
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

  /// Records a quotation mark in a cookie.
  mutating func noteCookieQuote(at index: Int) { cookieQuotes.append(index) }

  /// Ends the head. A body or the next request follows.
  mutating func endHead() throws(FramingFault) {
    if isTrailer { return endRequest() }
    guard hosts == 1 || (hosts == 0 && !isHTTP11) else {
      throw .malformed("a request requires exactly one Host header")
    }
    if hasCoding {
      guard !hasLength else { throw .malformed("both Transfer-Encoding and Content-Length") }
      guard isHTTP11 else { throw .malformed("Transfer-Encoding in HTTP/1.0") }
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
  mutating func pay(_ amount: Int) throws(FramingFault) {
    cost += amount
    guard cost <= Self.largestHead else {
      throw state == .target ? .targetTooLong : .headTooLarge
    }
  }
}

/// The reason why a request is refused.
enum FramingFault: Error, Hashable {
  /// Not HTTP/1.x, or ambiguous; with a description of the problem.
  case malformed(String)
  case targetTooLong
  case headTooLarge
  case unsupportedVersion
  /// The client that a PROXY header names has its share of connections.
  case tooManyConnections
}
