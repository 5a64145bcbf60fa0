// TransferOptions: the curl options of a transfer, and curl's callbacks.

import CCurl
import Model
import Platform
import Requesting

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
    try set(CURLOPT_WRITEFUNCTION, function: TransferCallbacks.body)
    try set(CURLOPT_WRITEDATA, pointer: this)
    try set(CURLOPT_HEADERFUNCTION, function: TransferCallbacks.header)
    try set(CURLOPT_HEADERDATA, pointer: this)
    try setOpenSocket(function: TransferCallbacks.openSocket)
    try set(CURLOPT_OPENSOCKETDATA, pointer: this)
    try setRequest(function: TransferCallbacks.request)
    try set(CURLOPT_PREREQDATA, pointer: this)

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
    try set(CURLOPT_NETRC, to: Int(CURL_NETRC_IGNORED.rawValue))
    // Not CURLOPT_ACCEPT_ENCODING: curl would decode coded bodies, and digests cover the coded bytes.
    // Not CURLOPT_HTTP_CONTENT_DECODING 0 either: transfer codings would stay as well (7.88).
    // Without it, aborting a transfer during name resolution blocks the thread until the resolver
    // returns.
    try set(CURLOPT_QUICK_EXIT, to: true)
    try set(CURLOPT_BUFFERSIZE, to: 64 << 10)
    try set(CURLOPT_TCP_KEEPALIVE, to: true)
    try set(CURLOPT_SSLVERSION, to: Int(CURL_SSLVERSION_TLSv1_2))
    // curl caches the parsed authorities only if they come from one file and no folder.
    try set(CURLOPT_CAPATH, pointer: nil)
    if !configuration.caFile.isEmpty { try set(CURLOPT_CAINFO, to: configuration.caFile) }

    try set(CURLOPT_MAXAGE_CONN, to: configuration.idleConnectionLifetime.wholeSeconds)
    // Each hop brings its addresses. They must not expire while it waits for a connection.
    try set(CURLOPT_DNS_CACHE_TIMEOUT, to: max(configuration.timeout.wholeSeconds, 60))
    try set(CURLOPT_LOW_SPEED_LIMIT, to: configuration.lowSpeedLimit)
    try set(CURLOPT_LOW_SPEED_TIME, to: configuration.lowSpeedTime.wholeSeconds)
  }

  /// Sets the options of the hop's host rule, and resets the options of the previous hop.
  ///
  /// curl reuses a connection only for the same host, proxy and verification settings, and only from
  /// the pool of the hop's rule (`RuleShare`). Hops without a rule have one pool. A connection made
  /// without verification therefore never serves a hop that requires it.
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

/// curl's callbacks. The context is the transfer, which the loop retains as long as curl has its
/// handle.
enum TransferCallbacks {
  static let body: curl_write_callback = { bytes, size, count, context in
    guard let context else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer.receiveBody(piece)
  }

  static let header: curl_write_callback = { bytes, size, count, context in
    guard let context else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer.receiveHeader(line) ? line.count : Int(CURL_WRITEFUNC_ERROR)
  }

  static let openSocket: curl_opensocket_callback = { context, _, address in
    guard let context, let address else { return CURL_SOCKET_BAD }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.openSocket(address)
  }

  /// Called when curl has a new or reused connection and is about to send the request.
  static let request: curl_prereq_callback = { context, address, _, _, _ in
    guard let context else { return CURL_PREREQFUNC_ABORT }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.sendsRequest(to: address.flatMap { IPAddress(String(cString: $0)) })
      ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
  }
}

extension Duration {
  /// Whole milliseconds, rounded up so that a short time does not become curl's 0, "no limit".
  /// Never negative.
  var wholeMilliseconds: Int { Int(max(self / .milliseconds(1), 0).rounded(.up)) }
  /// Whole seconds, rounded up; never negative.
  var wholeSeconds: Int { Int(max(self / .seconds(1), 0).rounded(.up)) }
}
