// RequestLine: the log line of a request.

import Core
import Glibc

/// One request that ended, for the log.
struct RequestLine {
  let method: String
  /// The response status; 499 if the client disconnected.
  let status: Int
  /// Bytes of the body.
  let bytes: Int
  let cacheStatus: String?
  let error: ImageError?
  /// What was sent in place of the error: the name of a fallback image, or `redirect`.
  var fallback: String?

  /// The status that decides the level: with a fallback, that of the failure.
  var severity: Int { fallback == nil ? status : error?.status ?? status }

  /// Creates the line of a hit that an event loop answers by itself.
  static func hit(
    _ tier: CacheStatus.Tier, status: Int, bytes: Int, of client: Connection
  ) -> RequestLine {
    RequestLine(
      method: client.method.rawValue, status: status,
      bytes: client.bodyBytes(status: status, of: bytes),
      cacheStatus: CacheStatus.hit(tier).headerValue, error: nil)
  }

  /// Creates the line of a client that disconnected before its response.
  static func gone(_ method: Method) -> RequestLine {
    RequestLine(
      method: (method == .head ? method : .get).rawValue, status: ImageError.cancelled.status,
      bytes: 0,
      cacheStatus: nil, error: .cancelled)
  }

  /// Creates the line for a streamed response. `error` is set if the body was cut off after its
  /// status was sent.
  static func streamed(_ streaming: Streaming, error: ImageError?) -> RequestLine {
    RequestLine(
      method: Method.get.rawValue, status: streaming.status, bytes: streaming.stream.sent,
      cacheStatus: streaming.cacheStatus, error: error ?? streaming.failure?.error,
      fallback: streaming.failure?.name)
  }
}

/// The first line of bytes that are not a valid request, for the log.
struct RefusedLine {
  /// The maximum number of bytes that are read: the longest target with a method in front of it.
  static let longest = RequestFraming.longestTarget + RequestFraming.longestMethod
  /// The most characters of bytes that are no request line, such as the start of TLS.
  private static let longestGarbage = 60

  /// The method, if there is one.
  let method: String?
  /// The target, or the received text if it has no target.
  let target: String
  /// The version, if the line has one, such as `HTTP/9.9`.
  let version: String?

  /// Reads the first line of `bytes`, as far as it was received.
  init(_ bytes: [UInt8]) {
    let line = bytes.prefix { $0 != 0x0d && $0 != 0x0a }
    // Masked as a whole and as a text without its end. A blank or a line feed in a password ends
    // the target before the sign that marks the password, and the end of a long text is missing.
    let masked = SecretMask.maskedBeginning(String(decoding: line, as: UTF8.self))
    let words = masked.utf8.split(
      separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count > 1, words[0].allSatisfy({ (0x41...0x5a).contains($0) }) else {
      method = nil
      version = nil
      target = displayable(masked, limit: Self.longestGarbage)
      return
    }
    method = words[0].isEmpty ? nil : String(words[0])
    target = String(words[1]) ?? ""
    version = words.count > 2 ? Self.version(words[2]) : nil
  }

  private static func version(_ word: Substring.UTF8View) -> String? {
    let isOne =
      word.count == 8 && word.starts(with: "HTTP/".utf8)
      && word.dropFirst(5).allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
    return isOne ? String(word) : nil
  }
}

extension RequestHandler {
  private static let memoryHit = CacheStatus.hit(.memory).headerValue

  /// Writes a request's line: status 500 as an error, other server faults as warnings, everything
  /// else at info. `loggedRequests` moves memory hits, requests to routine endpoints and successes
  /// to debug.
  func log(_ line: RequestLine, of client: Connection, on connection: OpaquePointer?) {
    if client.trace.isRecorded { client.trace.line = line }
    let isQuiet =
      client.target?.endpoint?.isRoutine == true
      || line.cacheStatus == Self.memoryHit
    let isFailure = line.severity >= 400 || line.error != nil
    let logged = client.policy.configuration.log.requests
    let level: LogLevel
    switch line.severity {
    case 500: level = .error
    case 502...599 where !isQuiet: level = .warning
    case _ where logged == .misses && isQuiet, _ where logged == .errors && !isFailure:
      level = .debug
    default: level = .info
    }
    log.request(
      level, fields: fields(line, of: client, on: connection),
      combined: combined(line, of: client, on: connection))
  }

  private func combined(
    _ line: RequestLine, of client: Connection, on connection: OpaquePointer?
  ) -> CombinedLine {
    let header = LoggedHeader(on: connection)
    return CombinedLine(
      client: named(client, header).address?.description, user: client.operatorName,
      method: displayable(line.method),
      target: String(decoding: client.target?.raw ?? [], as: UTF8.self),
      version: client.isHTTP11 ? "HTTP/1.1" : "HTTP/1.0", status: line.status, bytes: line.bytes,
      referer: header.referer, userAgent: header.userAgent)
  }

  /// Returns the client, which may be behind trusted proxies.
  func named(_ client: Connection, _ header: LoggedHeader) -> NamedClient {
    client.policy.trustedProxies.client(
      of: client.peer, forwardedFor: header.forwardedFor, forwarded: header.forwarded)
  }

  private func fields(
    _ line: RequestLine, of client: Connection, on connection: OpaquePointer?
  ) -> KeyValuePairs<String, LogValue> {
    var url: String?
    if case .success(let request)? = client.target?.request { url = request.source.text }
    let header = LoggedHeader(on: connection)
    return [
      "method": .string(displayable(line.method)),
      "target": .string(String(decoding: client.target?.raw ?? [], as: UTF8.self)),
      "url": .string(ifPresent: url), "status": .int(line.status), "bytes": .int(line.bytes),
      "duration_ms": .milliseconds(.microseconds(client.elapsedMicroseconds)),
      "cache": .string(ifPresent: line.cacheStatus), "error": .string(ifPresent: line.error?.code),
      "fallback": .string(ifPresent: line.fallback),
      "detail": .string(ifPresent: line.error.map { $0.logDetail ?? $0.message }),
      "client": .client(named(client, header).address),
      "operator": .string(ifPresent: client.operatorName),
      "user_agent": .string(ifPresent: header.userAgent),
      "request_id": .string(client.requestID.description),
      "trace_id": .string(ifPresent: trace(of: client, on: connection)?.traceID),
    ]
  }
}

extension Connection {
  /// The name of the operator whose token the request has, if its endpoint is for operators.
  fileprivate var operatorName: String? {
    guard case .known(let found) = verdict else { return nil }
    return found.name
  }
}

extension LogValue {
  /// The address of a client or a proxy; `unix:` for a peer of a unix socket.
  static func client(_ address: IPAddress?) -> LogValue {
    .string(address?.unmapped.description ?? ListenAddress.unixPrefix)
  }
}

/// The logged fields of a request's header. Read only for lines that are written.
struct LoggedHeader {
  /// The maximum length of `User-Agent` in the log, in bytes.
  private static let longestAgent = 256

  /// The lines of `X-Forwarded-For`, in order.
  private(set) var forwardedFor: [[UInt8]] = []
  private(set) var forwarded: [[UInt8]] = []
  /// `User-Agent`, cut.
  private(set) var userAgent: String?
  /// `Referer`; the log cuts it.
  private(set) var referer: String?

  /// Reads the header of the request on a connection; empty without a connection.
  init(on connection: OpaquePointer?) {
    guard let connection else { return }
    RequestHandler.forEachField(on: connection) { read($0, value: $1) }
  }

  private mutating func read(_ name: UnsafePointer<CChar>, value: UnsafePointer<CChar>) {
    func bytes() -> [UInt8] { Array(UnsafeRawBufferPointer(start: value, count: strlen(value))) }
    if strcasecmp(name, "User-Agent") == 0 {
      if userAgent == nil { userAgent = Self.cut(bytes()) }
    } else if strcasecmp(name, "Referer") == 0 {
      if referer == nil { referer = String(decoding: bytes(), as: UTF8.self) }
    } else if strcasecmp(name, "X-Forwarded-For") == 0 {
      forwardedFor.append(bytes())
    } else if strcasecmp(name, "Forwarded") == 0 {
      forwarded.append(bytes())
    }
  }

  private static func cut(_ bytes: [UInt8]) -> String {
    guard bytes.count > longestAgent else { return String(decoding: bytes, as: UTF8.self) }
    // Masked before it is cut, as in `Log`.
    let text = SecretMask.masked(String(decoding: bytes, as: UTF8.self))
    return String(decoding: text.utf8.prefix(longestAgent), as: UTF8.self) + "…"
  }
}
