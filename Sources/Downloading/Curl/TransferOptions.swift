// TransferOptions: what curl is told once for each transfer.

import CCurl
import Model

extension EasyHandle {
  /// What every hop of a transfer has in common.
  ///
  /// - Parameter transfer: what the callbacks are called with, passed unretained: whoever hands the handle to curl keeps
  ///   it until the handle is taken back, and curl calls nobody in between or while it frees the handle.
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

    try set(CURLOPT_NOSIGNAL, true)
    // Where there is a proxy it is for every host, whatever the environment says.
    try set(CURLOPT_NOPROXY, "")
    // What is meant for the origin is no business of a proxy that only passes bytes on; nor is that one's answer ours.
    try set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
    try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_FOLLOWLOCATION, false)
    try set(CURLOPT_DISALLOW_USERNAME_IN_URL, true)
    try set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    // Decodes what comes coded though `identity` was asked for; the header says what is asked for (`TransferRules`).
    try set(CURLOPT_ACCEPT_ENCODING, ContentCodings.decodable.sorted().joined(separator: ", "))
    // Without it, giving up a transfer whose name is being resolved waits for the resolver, and everyone with it.
    try set(CURLOPT_QUICK_EXIT, true)
    try set(CURLOPT_BUFFERSIZE, 64 << 10)
    try set(CURLOPT_TCP_KEEPALIVE, true)
    try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    // curl keeps the parsed authorities between connections only where they come from one file and no folder.
    try set(CURLOPT_CAPATH, pointer: nil)
    if let file = configuration.caFile { try set(CURLOPT_CAINFO, file) }

    try set(CURLOPT_MAXAGE_CONN, configuration.idleConnectionLifetime.wholeSeconds)
    try set(CURLOPT_DNS_CACHE_TIMEOUT, configuration.dnsCacheLifetime.wholeSeconds)
    try set(CURLOPT_LOW_SPEED_LIMIT, configuration.lowSpeedLimit)
    try set(CURLOPT_LOW_SPEED_TIME, configuration.lowSpeedTime.wholeSeconds)
  }

  /// What the rule of a hop's host says, or that there is none: nothing of the hop before stays.
  ///
  /// curl uses a connection again only for a host, a proxy and a strictness that are the same, so one that was made
  /// without a look at the certificate serves no hop that wants one.
  func configure(_ entry: HostRules.Entry?, proxy: String?) throws(ImageError) {
    // Empty, not nothing: a proxy from the environment would hide the origin's address from the open-socket callback.
    try set(CURLOPT_PROXY, proxy ?? "")
    let verifies = !(entry?.rule.allowsInvalidCertificates ?? false)
    try set(CURLOPT_SSL_VERIFYPEER, verifies)
    try set(CURLOPT_SSL_VERIFYHOST, verifies ? 2 : 0)
    // In this order: without a file curl's cookies are off, even one without a name turns them on, and the share says
    // whose they are.
    try set(CURLOPT_COOKIEFILE, pointer: nil)
    try set(CURLOPT_SHARE, pointer: entry?.jar.map { UnsafeMutableRawPointer($0.pointer) })
    if entry?.jar != nil { try set(CURLOPT_COOKIEFILE, "") }
  }
}

extension Duration {
  /// Rounded up, so that a short time does not become curl's 0, "no limit"; never negative.
  var wholeMilliseconds: Int { Int(max(self / .milliseconds(1), 0).rounded(.up)) }
  /// Rounded up, never negative.
  var wholeSeconds: Int { Int(max(self / .seconds(1), 0).rounded(.up)) }
}
