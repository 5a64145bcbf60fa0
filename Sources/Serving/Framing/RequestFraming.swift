// RequestFraming: where each request on a connection begins and ends (RFC 9112), and which bytes are no request.

/// Judges the bytes of one connection as they come, in pieces of any size, before libmicrohttpd parses them.
///
/// It is stricter than RFC 9112 requires. What two implementations may read differently is refused, since a proxy in
/// front may be the other one (request smuggling): two lengths, a length beside a coding, two hosts, folded lines,
/// line ends that are not CRLF, blanks around names, control characters. A pure state machine; allocates nothing.
struct RequestFraming {
  /// What a piece is.
  enum Verdict: Equatable {
    /// Requests, or parts of them.
    case accepted
    /// The request that begins at `start` is refused; 0 where it began in an earlier piece.
    case refused(FramingFault, start: Int)
  }

  /// Longest target, in bytes; RFC 9110, section 4.1, recommends at least 8,000.
  static let longestTarget = 8_192
  /// What libmicrohttpd has room for in its 16 KiB beside a response head: bytes, and `itemCost` for each field, each
  /// parameter and each cookie. It copies the value of `Cookie`, which counts twice.
  static let largestHead = 13_312
  /// Bytes that libmicrohttpd allocates for a field, a parameter or a cookie.
  static let itemCost = 64
  static let longestMethod = 32
  static let longestExtension = 256
  static let longestExtensions = 4_096

  enum State {
    case start, startLineFeed, method, target, version, lineFeed
    case fieldStart, name, valueStart, value, valueLineFeed, endLineFeed
    case body, chunkSize, chunkExtension, chunkLineFeed, chunkData, chunkEnd, chunkEndLineFeed
  }

  /// The fields that decide about framing, and the one that libmicrohttpd takes apart.
  enum Field { case contentLength, transferEncoding, host, cookie, other }

  var state = State.start
  /// Requests that are whole, their bodies included.
  private(set) var wholeRequests = 0
  /// Where in the last piece the request began that was read last; 0 where it began in an earlier piece.
  private(set) var lastStart = 0
  /// Whether the next byte begins a request.
  var isBetweenRequests: Bool { state == .start }
  /// Whether a request line has begun and has not ended.
  var isInLine: Bool { state == .method || state == .target || state == .version }

  // The current request.
  var methodIsOptions = false
  var isHTTP1 = false
  var isHTTP11 = false
  var isTrailer = false
  /// Bytes of the part that is being read.
  var position = 0
  /// What the head costs so far.
  var cost = 0
  var hosts = 0
  var hasLength = false
  var hasCoding = false
  /// Which of the known names the current one may still be.
  var candidates = FieldNames.none
  var field = Field.other
  /// Characters of the value that count so far; of a coding, how much of `chunked` has come.
  var valueCount = 0
  var sawBlankInValue = false
  /// Bytes of the body, or of the chunk, that are still to come.
  var rest = 0
  var extensionBytes = 0

  /// Judges the next piece.
  mutating func take(_ bytes: UnsafeRawBufferPointer) -> Verdict {
    var start = 0
    var index = 0
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

  /// Reads on in the current state, one byte at least; returns where it stopped.
  private mutating func step(
    _ bytes: UnsafeRawBufferPointer, from index: Int
  ) throws(FramingFault) -> Int {
    switch state {
    case .start, .startLineFeed, .method, .target, .version, .lineFeed:
      return try stepLine(bytes, from: index)
    case .fieldStart, .name, .valueStart, .value, .valueLineFeed, .endLineFeed:
      return try stepField(bytes, from: index)
    case .body, .chunkSize, .chunkExtension, .chunkLineFeed, .chunkData, .chunkEnd,
      .chunkEndLineFeed:
      return try stepBody(bytes, from: index)
    }
  }

  /// The head is whole: what follows is a body, or the next request.
  mutating func endHead() throws(FramingFault) {
    if isTrailer { return endRequest() }
    guard hosts == 1 || (hosts == 0 && !isHTTP11) else {
      throw .malformed("a request has one Host field")
    }
    if hasCoding {
      guard !hasLength else { throw .malformed("Transfer-Encoding beside Content-Length") }
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

  /// The request is whole; the next one begins.
  mutating func endRequest() {
    let whole = wholeRequests + 1
    self = RequestFraming()
    wholeRequests = whole
  }

  /// Adds to what the head costs.
  mutating func pay(_ amount: Int) throws(FramingFault) {
    cost += amount
    guard cost <= Self.largestHead else {
      throw state == .target ? .targetTooLong : .headTooLarge
    }
  }
}

/// Why bytes are no request that this server takes.
enum FramingFault: Error, Hashable {
  /// Not HTTP/1.x, or open to interpretation; what is wrong.
  case malformed(String)
  case targetTooLong
  case headTooLarge
  case unsupportedVersion
}
