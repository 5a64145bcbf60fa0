// ServerExchange: a request to a server that the operator has configured, and its response.

import CCurl
import Core
import Glibc

/// A request by libcurl, without redirects, cookies and proxy. Clients cannot choose its URL, so no
/// address is refused.
package struct ServerRequest: Sendable {
  /// What is done with the body.
  package enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
  }

  package var method = Method.get
  package var url: String
  /// The header lines. `Name:` leaves a field out that curl would send.
  package var fields: [String] = []
  package var body: [UInt8]?
  /// The path of a unix socket to connect to; `nil`: the URL's host.
  package var socketPath: String?
  /// A file with the certificate authorities; empty: the system's.
  package var caFile = ""
  /// The most bytes of the response's body. The rest is not read, and the status counts all the
  /// same.
  package var limit = 64 << 10
  /// Whether the server may choose HTTP/2 over TLS.
  package var allowsHTTP2 = false

  package init(_ method: Method = .get, _ url: String) {
    self.method = method
    self.url = url
  }
}

/// A request on its way, with its response. Belongs to the thread that runs it; curl has a pointer
/// to it until its handle is removed.
package final class ServerExchange {
  /// The most bytes of header fields, those of interim responses included.
  private static let headLimit = 64 << 10

  package let easy: EasyHandle
  private let request: ServerRequest
  private let fields: HeaderList
  /// Receives the pieces of the response's body in place of `keep`. Returns whether curl continues.
  package var sink: ((UnsafeRawBufferPointer) -> Bool)?
  private var headLength = 0
  /// The body of the response, as far as it is read.
  package private(set) var bytes: [UInt8] = []
  /// Whether the body has reached its limit.
  package private(set) var isCut = false

  /// Prepares a request.
  ///
  /// - Throws: `ImageError.internal` if curl has no memory or does not know an option.
  package init(_ request: ServerRequest) throws(ImageError) {
    self.request = request
    // No `Expect`, for which curl would wait a second, and no type of a form.
    let hasType = request.fields.contains { $0.lowercased().hasPrefix("content-type:") }
    fields = try HeaderList(request.fields + ["Expect:"] + (hasType ? [] : ["Content-Type:"]))
    easy = try EasyHandle()
    try setOptions()
    try setReceiving()
    if let body = request.body { try setSending(body) }
  }

  private func setOptions() throws(ImageError) {
    try easy.set(CURLOPT_NOSIGNAL, to: true)
    try easy.set(CURLOPT_PROTOCOLS_STR, to: "http,https")
    try easy.set(CURLOPT_URL, to: request.url)
    try easy.set(CURLOPT_PATH_AS_IS, to: true)
    if !request.allowsHTTP2 { try easy.set(CURLOPT_HTTP_VERSION, to: CURL_HTTP_VERSION_1_1) }
    try easy.set(CURLOPT_USERAGENT, to: "Pictor/\(pictorVersion)")
    try easy.set(CURLOPT_FOLLOWLOCATION, to: false)
    // Empty: no proxy from the environment either.
    try easy.set(CURLOPT_PROXY, to: "")
    try easy.set(CURLOPT_SSLVERSION, to: Int(CURL_SSLVERSION_TLSv1_2))
    // A name server that does not answer must not delay the thread.
    try easy.set(CURLOPT_QUICK_EXIT, to: true)
    // The file alone: curl would trust the system's folder as well.
    try easy.set(CURLOPT_CAPATH, pointer: nil)
    if !request.caFile.isEmpty { try easy.set(CURLOPT_CAINFO, to: request.caFile) }
    if let path = request.socketPath { try easy.set(CURLOPT_UNIX_SOCKET_PATH, to: path) }
    try easy.set(CURLOPT_CUSTOMREQUEST, to: request.method.rawValue)
    try easy.set(CURLOPT_HTTPHEADER, pointer: fields.pointer)
    try easy.setOpenSocket { _, _, address in
      address.map { Curl.socket(for: $0) } ?? CURL_SOCKET_BAD
    }
  }

  private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  private static func of(_ context: UnsafeMutableRawPointer) -> ServerExchange {
    Unmanaged<ServerExchange>.fromOpaque(context).takeUnretainedValue()
  }

  private func setReceiving() throws(ImageError) {
    try easy.set(CURLOPT_WRITEDATA, pointer: context)
    try easy.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      guard let bytes, let context else { return 0 }
      let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
      let exchange = ServerExchange.of(context)
      return exchange.sink?(piece) ?? exchange.keep(piece) ? piece.count : 0
    }
    try easy.set(CURLOPT_HEADERDATA, pointer: context)
    try easy.set(CURLOPT_HEADERFUNCTION) { _, size, count, context in
      guard let context else { return 0 }
      let exchange = ServerExchange.of(context)
      exchange.headLength += size * count
      return exchange.isHeadTooLong ? 0 : size * count
    }
  }

  private func setSending(_ body: [UInt8]) throws(ImageError) {
    try easy.set(CURLOPT_POSTFIELDSIZE, to: body.count)
    // curl keeps a copy: it sends the body again if a kept connection has ended.
    guard !body.isEmpty else { return try easy.set(CURLOPT_COPYPOSTFIELDS, to: "") }
    let code = body.withUnsafeBytes { bytes in
      // curl reads the bytes only.
      pictor_curl_set_pointer(
        easy.pointer, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
    guard code == CURLE_OK else { throw .internal(detail: "curl: \(Curl.text(code))") }
  }

  /// Adds a piece of the response's body to `bytes`. Returns whether curl continues.
  package func keep(_ piece: UnsafeRawBufferPointer) -> Bool {
    bytes += piece.prefix(request.limit - bytes.count)
    isCut = isCut || piece.count > 0 && bytes.count == request.limit
    return !isCut
  }

  // MARK: The state

  /// Whether there is a connection.
  package var isConnected: Bool { easy.offset(CURLINFO_CONNECT_TIME_T) > 0 }

  /// Whether the whole request is sent.
  package var isSent: Bool {
    easy.number(CURLINFO_REQUEST_SIZE) > 0
      && easy.offset(CURLINFO_SIZE_UPLOAD_T) >= request.body?.count ?? 0
  }

  /// The error of the system's call that failed.
  package var systemError: SystemError? {
    let code = easy.number(CURLINFO_OS_ERRNO)
    return code == 0 ? nil : SystemError(CInt(code))
  }

  package var isHeadTooLong: Bool { headLength > Self.headLimit }

  /// The status; 0 without a response.
  package var status: Int { easy.number(CURLINFO_RESPONSE_CODE) }

  /// The seconds of `Retry-After`, also of a date; `nil` without.
  package var retryAfter: Int? {
    let seconds = easy.offset(CURLINFO_RETRY_AFTER)
    return seconds > 0 ? seconds : nil
  }
}

extension MultiHandle {
  /// Runs one exchange to its end. Blocks.
  ///
  /// - Parameters:
  ///   - descriptor: returns a descriptor that ends the wait when it is readable; negative for
  ///     none.
  ///   - deadline: returns when the wait ends; asked again after `wakeUp`.
  /// - Returns: curl's code; `nil` if the wait ended before.
  package func run(
    _ exchange: ServerExchange, watching descriptor: () -> CInt = { -1 },
    until deadline: () -> ContinuousClock.Instant
  ) throws(ImageError) -> CURLcode? {
    try add(exchange.easy.pointer)
    defer { remove(exchange.easy.pointer) }
    while true {
      if let ended = try perform().first { return ended.code }
      let rest = deadline() - .now
      let watched = descriptor()
      guard rest > .zero else { return nil }
      if watched >= 0, Poll.wait(for: [watched], until: .now) == [true] { return nil }
      try wait(atMost: rest, or: watched)
    }
  }
}
