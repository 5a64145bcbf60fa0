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
    // A proxy from the environment would hide the origin's address from the open-socket callback.
    try set(CURLOPT_PROXY, "")
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_FOLLOWLOCATION, false)
    try set(CURLOPT_DISALLOW_USERNAME_IN_URL, true)
    try set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    // Without it, giving up a transfer whose name is being resolved waits for the resolver, and everyone with it.
    try set(CURLOPT_QUICK_EXIT, true)
    try set(CURLOPT_BUFFERSIZE, 64 << 10)
    try set(CURLOPT_TCP_KEEPALIVE, true)
    try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    try set(CURLOPT_SSL_VERIFYPEER, true)
    try set(CURLOPT_SSL_VERIFYHOST, 2)
    // curl keeps the parsed authorities between connections only where they come from one file and no folder.
    try set(CURLOPT_CAPATH, pointer: nil)
    if let file = configuration.caFile { try set(CURLOPT_CAINFO, file) }

    try set(CURLOPT_USERAGENT, configuration.userAgent)
    try set(CURLOPT_MAXAGE_CONN, configuration.idleConnectionLifetime.wholeSeconds)
    try set(CURLOPT_DNS_CACHE_TIMEOUT, configuration.dnsCacheLifetime.wholeSeconds)
    try set(CURLOPT_LOW_SPEED_LIMIT, configuration.lowSpeedLimit)
    try set(CURLOPT_LOW_SPEED_TIME, configuration.lowSpeedTime.wholeSeconds)
  }
}

extension Duration {
  /// Rounded up, so that a short time does not become curl's 0, "no limit"; never negative.
  var wholeMilliseconds: Int { Int(max(self / .milliseconds(1), 0).rounded(.up)) }
  /// Rounded up, never negative.
  var wholeSeconds: Int { Int(max(self / .seconds(1), 0).rounded(.up)) }
}
