// TransferRules: what all transfers of a thread share: settings, limits, timer, curl's options.

import CCurl
import Core
import Requesting

/// The downloader's settings, prepared for transfers.
struct TransferRules: Sendable {
  let configuration: DownloaderConfiguration
  let addresses: AddressPolicy
  let retries: RetryPolicy
  let hosts: HostRules
  /// Where this server listens.
  let own: OwnEndpoint
  private let defaults: [HeaderField]
  private let usual: HeaderList

  init(
    _ configuration: DownloaderConfiguration, own: OwnEndpoint = OwnEndpoint(),
    keeping known: HostRules? = nil
  ) throws(ImageError) {
    self.configuration = configuration
    self.own = own
    addresses = AddressPolicy(allowedNetworks: configuration.allowedNetworks)
    retries = RetryPolicy(
      limit: min(max(configuration.retries, 0), 5), delay: configuration.retryDelay)
    hosts = try HostRules(configuration.hostRules, keeping: known)
    // `identity`, because a compressed body can expand to a much larger one. Coded bodies are still
    // decoded, within the limits.
    defaults = [
      HeaderField("Accept", value: configuration.accept),
      HeaderField("User-Agent", value: configuration.userAgent),
      HeaderField("Accept-Encoding", value: "identity"),
      // RFC 9110, section 7.6.3. A rule may drop it, because `CDN-Loop` ends loops.
      configuration.serverID.isEmpty
        ? nil : HeaderField("Via", value: "1.1 \(configuration.serverID)"),
    ].compactMap(\.self)
    let trail = try Self.trailField(ServerTrail(), through: configuration.serverID)
    usual = try Self.list(defaults + trail)
  }

  /// The parser of a hop's response head.
  var head: OriginResponseParser {
    OriginResponseParser(limit: configuration.maximumHeaderBytes)
  }

  /// Returns the proxy for a hop, or `nil` for none.
  func proxy(_ rule: HostRule?) -> String? {
    switch rule?.proxy ?? .standard {
    case .standard: configuration.proxy
    case .direct: nil
    case .url(let url): url
    }
  }

  /// Returns why a host may not be requested through a proxy. The proxy resolves names, so only IP
  /// addresses and localhost names (RFC 6761, section 6.3) can be checked here.
  func refusal(byProxy host: String) -> String? {
    if host == "localhost" || host.hasSuffix(".localhost") {
      return addresses.refusal(of: .v4(0x7f00_0001)).map { "\(host): \($0)" }
    }
    if let address = IPAddress(host) { return addresses.refusal(of: address) }
    // An IPv6 address with a zone is only valid on this machine.
    return host.contains(":") ? "\(host) (not an address)" : nil
  }

  /// Returns the request fields of a hop. A client's fields override the defaults, and the host
  /// rule's fields override both.
  ///
  /// - Parameters:
  ///   - forwarded: the client's fields, if the hop may have them; only those that the rule names
  ///     are sent.
  ///   - hasSecrets: whether the rule's secrets are sent on this hop.
  ///   - trail: the servers that the request came through.
  ///   - trace: the trace that the origin is told. It takes the place of what the rule and the
  ///     client say.
  ///   - signature: the fields that sign the request.
  func headers(
    of rule: HostRule?, forwarded: [HeaderField], hasSecrets: Bool, validators: Validators?,
    isRedirected: Bool, trail: ServerTrail = ServerTrail(), trace: TraceContext? = nil,
    signature: [HeaderField] = []
  ) throws(ImageError) -> HeaderList {
    // Sent on every hop, regardless of the rule: RFC 8586, section 2, forbids removing it.
    let last =
      Self.conditions(validators, isRedirected: isRedirected)
      + (try Self.trailField(trail, through: configuration.serverID)) + (trace?.fields ?? [])
      + signature
    guard let rule else {
      let isUsual = trail.elements.isEmpty && validators == nil && trace == nil
      return isUsual ? usual : try Self.list(defaults + last)
    }
    var fields = defaults
    func isNamed(_ name: String, in names: [String]) -> Bool {
      names.contains { $0.lowercased() == name.lowercased() }
    }
    func set(_ more: [HeaderField]) {
      fields.removeAll { field in isNamed(field.name, in: more.map(\.name)) }
      fields += more
    }
    set(forwarded.filter { isNamed($0.name, in: rule.forwardedHeaders) })
    fields.removeAll { isNamed($0.name, in: rule.droppedHeaders) }
    set(rule.headers)
    if hasSecrets { set(rule.secretHeaders) }
    fields.removeAll { $0.name.lowercased() == Self.trailName }
    if trace != nil {
      fields.removeAll { isNamed($0.name, in: [TraceContext.parentName, TraceContext.stateName]) }
    }
    return try Self.list(fields + last)
  }

  private static let trailName = "cdn-loop"

  /// Returns `CDN-Loop` with this server's name after those of the servers before it.
  private static func trailField(
    _ trail: ServerTrail, through server: String
  ) throws(ImageError) -> [HeaderField] {
    guard !server.isEmpty else { return [] }
    guard let field = HeaderField("CDN-Loop", value: trail.value(through: server)) else {
      throw .internal(detail: "a CDN-Loop field that cannot be sent")
    }
    return [field]
  }

  /// An empty line disables the `Accept` and `Accept-Encoding` that curl sends by default.
  private static func list(_ fields: [HeaderField]) throws(ImageError) -> HeaderList {
    let absent = ["Accept", "Accept-Encoding"].filter { name in
      !fields.contains { $0.name.lowercased() == name.lowercased() }
    }
    return try HeaderList(
      fields.map { "\($0.name): \($0.value)" } + absent.map { "\($0):" })
  }

  /// Returns the fields that make a request conditional.
  ///
  /// The validators belong to the response of the last hop. Origins ignore them while redirecting
  /// (RFC 9110, section 13.2.1), so the `ETag` is sent on every hop: it is not secret and
  /// practically unique. A date says nothing about another URL, so it is sent to the requested URL
  /// only (section 15.4).
  ///
  /// Validators may come from disk; one with a line break is dropped.
  private static func conditions(_ validators: Validators?, isRedirected: Bool) -> [HeaderField] {
    let date = isRedirected ? nil : validators?.lastModified
    return [
      validators?.etag.flatMap { HeaderField("If-None-Match", value: $0) },
      date.flatMap { HeaderField("If-Modified-Since", value: $0) },
    ].compactMap(\.self)
  }
}

/// The next time at which a transfer must be checked without an event from curl. Belongs to the
/// transfer thread.
///
/// Keeps only the earliest time that was set; waits that end early do not clear it. An unneeded
/// check is cheaper than a sorted list.
final class TransferAlarm {
  private(set) var time: ContinuousClock.Instant?

  /// Rings at `instant`, or earlier if set so before.
  func set(_ instant: ContinuousClock.Instant) { time = min(time ?? instant, instant) }

  /// Returns whether the time has come, and clears it if so.
  func rings(at now: ContinuousClock.Instant) -> Bool {
    guard let time, time <= now else { return false }
    self.time = nil
    return true
  }
}

extension Transfer {
  /// The transfer of a callback, which the loop retains as long as curl has its handle.
  fileprivate static func of(_ context: UnsafeMutableRawPointer) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  }
}

extension EasyHandle {
  /// Sets the options that all hops of a transfer share.
  ///
  /// - Parameters:
  ///   - configuration: the downloader's settings.
  ///   - transfer: the context of the callbacks, passed unretained. The caller retains the transfer
  ///     until curl no longer has the handle; curl makes no callbacks outside that time or while it
  ///     frees the handle.
  func configure(
    _ configuration: DownloaderConfiguration, for transfer: Transfer
  ) throws(ImageError) {
    let this = Unmanaged.passUnretained(transfer).toOpaque()
    try set(CURLOPT_WRITEDATA, pointer: this)
    try set(CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      guard let context else { return 0 }
      let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return Transfer.of(context).receiveBody(piece)
    }
    try set(CURLOPT_HEADERDATA, pointer: this)
    try set(CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      guard let context else { return 0 }
      let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return Transfer.of(context).receiveHeader(line) ? line.count : Int(CURL_WRITEFUNC_ERROR)
    }
    try set(CURLOPT_OPENSOCKETDATA, pointer: this)
    try setOpenSocket { context, _, address in
      guard let context, let address else { return CURL_SOCKET_BAD }
      return Transfer.of(context).openSocket(address)
    }
    try set(CURLOPT_PREREQDATA, pointer: this)
    // Called when curl has a new or reused connection and is about to send the request.
    try setRequest { context, address, _, _, _ in
      guard let context else { return CURL_PREREQFUNC_ABORT }
      let address = address.flatMap { IPAddress(String(cString: $0)) }
      return Transfer.of(context).sendsRequest(to: address)
        ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }

    try set(CURLOPT_NOSIGNAL, to: true)
    // Our proxy applies to every host; the environment is ignored.
    try set(CURLOPT_NOPROXY, to: "")
    // The proxy does not get the origin's fields, and its own response fields are not passed to us.
    try set(CURLOPT_HEADEROPT, to: Int(CURLHEADER_SEPARATE))
    try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, to: true)
    try set(CURLOPT_PROTOCOLS_STR, to: "http,https")
    try set(CURLOPT_REDIR_PROTOCOLS_STR, to: "http,https")
    try set(CURLOPT_FOLLOWLOCATION, to: false)
    try set(CURLOPT_DISALLOW_USERNAME_IN_URL, to: true)
    // Not CURLOPT_ACCEPT_ENCODING: curl would decode coded bodies, and digests cover the coded
    // bytes. Not CURLOPT_HTTP_CONTENT_DECODING 0 either: transfer codings would stay as well
    // (7.88). Without it, aborting a transfer during name resolution blocks the thread until the
    // resolver returns.
    try set(CURLOPT_QUICK_EXIT, to: true)
    try set(CURLOPT_BUFFERSIZE, to: 64 << 10)
    try set(CURLOPT_TCP_KEEPALIVE, to: true)
    try set(CURLOPT_FRESH_CONNECT, to: transfer.request.onEnd != nil)
    try set(CURLOPT_SSLVERSION, to: Int(CURL_SSLVERSION_TLSv1_2))
    // curl caches the parsed authorities only if they come from one file and no folder.
    try set(CURLOPT_CAPATH, pointer: nil)
    if !configuration.caFile.isEmpty { try set(CURLOPT_CAINFO, to: configuration.caFile) }

    try set(CURLOPT_MAXAGE_CONN, to: configuration.idleConnectionLifetime.wholeSeconds)
    // Each hop brings its addresses. They must not expire while it waits for a connection.
    try set(CURLOPT_DNS_CACHE_TIMEOUT, to: max(configuration.timeout.wholeSeconds, 60))
    try set(CURLOPT_LOW_SPEED_LIMIT, to: configuration.lowSpeedLimit)
    try set(
      CURLOPT_LOW_SPEED_TIME,
      to: (configuration.lowSpeedTime ?? max(.seconds(15), configuration.firstByteTimeout))
        .wholeSeconds)
  }

  /// Sets the options of the hop's host rule, and resets the options of the previous hop.
  ///
  /// curl reuses a connection only for the same host, proxy and verification settings, and only
  /// from the pool of the hop's rule (`RuleShare`). Hops without a rule have one pool. A connection
  /// made without verification therefore never serves a hop that requires it.
  func configure(_ entry: HostRules.Entry?, proxy: String?) throws(ImageError) {
    // Empty rather than nil: a proxy from the environment would hide the origin's address from the
    // open-socket callback.
    try set(CURLOPT_PROXY, to: proxy ?? "")
    let verifies = !(entry?.rule.allowsInvalidCertificates ?? false)
    try set(CURLOPT_SSL_VERIFYPEER, to: verifies)
    try set(CURLOPT_SSL_VERIFYHOST, to: verifies ? 2 : 0)
    // The order matters: a nil file turns curl's cookies off, the share selects the jar, and an
    // empty file name turns cookies on.
    try set(CURLOPT_COOKIEFILE, pointer: nil)
    try set(CURLOPT_SHARE, pointer: entry.map { UnsafeMutableRawPointer($0.share.pointer) })
    if entry?.share.keepsCookies == true { try set(CURLOPT_COOKIEFILE, to: "") }
  }
}

extension Duration {
  /// Whole milliseconds, rounded up so that a short time does not become curl's 0, "no limit".
  /// Never negative.
  var wholeMilliseconds: Int { Int(max(self / .milliseconds(1), 0).rounded(.up)) }
  /// Whole seconds, rounded up; never negative.
  var wholeSeconds: Int { Int(max(self / .seconds(1), 0).rounded(.up)) }
}

/// Maps curl's codes and origins' statuses to errors, and classifies connection failures.
enum TransferFailure {
  /// Returns the error for a failed transfer.
  ///
  /// - Parameters:
  ///   - code: curl's code.
  ///   - detail: the detail for the operator.
  ///   - afterHead: whether the response head was complete.
  ///   - url: the requested URL.
  ///   - timeoutKey: the configuration key that decides a time-out.
  static func error(
    _ code: CURLcode, detail: String, afterHead: Bool, url: SourceURL, timeoutKey: String? = nil
  ) -> ImageError {
    switch code {
    case CURLE_OPERATION_TIMEDOUT:
      return .sourceTimeout(detail: detail, key: timeoutKey)
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
      return .sourceTLS(detail: detail)
    case CURLE_URL_MALFORMAT:
      return .invalidURL(url.text, reason: "it cannot be fetched")
    // Not CURLE_OUT_OF_MEMORY: curl 7.88 reports it for a header line above 100 kB. Not
    // CURLE_WRITE_ERROR: callbacks report by themselves why they end a transfer, and curl 7.88 uses
    // it for bytes after the end of a gzip transfer coding. After the head, curl 7.88 reports a
    // trailer without a colon as a bad argument.
    case CURLE_BAD_FUNCTION_ARGUMENT where !afterHead,
      CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION, CURLE_ABORTED_BY_CALLBACK:
      return .internal(detail: detail)
    default:
      return afterHead ? .sourceIncomplete(detail: detail) : .sourceUnreachable(detail: detail)
    }
  }

  /// Returns the error for a final status, or `nil` for 200 and 203; a proxy may turn 200 into 203.
  /// Requests ask for a complete body, so 204 and 206 are errors, and so is a 304 to a request
  /// without validators. `OriginResponseParser` makes 200 of a 201 and of a 206 with everything.
  ///
  /// - Parameters:
  ///   - status: the final status.
  ///   - retryAfter: the origin's `Retry-After`, in seconds.
  static func error(status: Int, retryAfter: Int? = nil) -> ImageError? {
    switch status {
    case 200, 203: nil
    case 404, 410: .sourceNotFound(status: status)
    default: .sourceError(status: status, retryAfter: retryAfter)
    }
  }

  /// Whether the connection failed before or after it was made. Only valid if no byte of a response
  /// was received.
  static func isOfConnection(_ code: CURLcode, hasSentRequest: Bool) -> Bool {
    switch code {
    // HTTP2_STREAM: the server refused or reset a stream (RFC 9113, section 8.7). HTTP2: the
    // connection ended.
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
      CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM:
      true
    case CURLE_OPERATION_TIMEDOUT: !hasSentRequest
    default: false
    }
  }
}
