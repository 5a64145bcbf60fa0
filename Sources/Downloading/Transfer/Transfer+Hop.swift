// Transfer+Hop: the options of a hop, which sockets it may open, and whether it gets its host's secrets.

import CCurl
import Glibc
import Model
import Platform

extension Transfer {
  /// Sets the options of a hop or a retry. All share one deadline.
  func aim(at target: DownloadTarget, now: ContinuousClock.Instant) throws(ImageError) {
    let entry = rules.hosts[target]
    let isProbe = rules.configuration.dryRun?.isOrigin(target.url) == true
    let proxy = isProbe ? nil : rules.proxy(entry?.rule)
    if proxy != nil, let refusal = rules.refusal(byProxy: target.host) {
      throw .refused(refusal, isNamed: false)
    }
    usesProxy = proxy != nil
    share = entry?.share
    try easy.configure(entry, proxy: proxy)
    hopName = proxy.map { HopName(proxy: $0) } ?? HopName(target)
    hopBegan = now
    let told = rules.configuration.tells(traceOfHop(now: now), to: target)
    let headers = try rules.headers(
      of: entry?.rule, forwarded: trail.isFirst(target) ? forwarded : [],
      hasSecrets: sendsSecrets(of: entry?.rule, to: target), validators: validators,
      isRedirected: !redirects.isEmpty, trail: servers, trace: told,
      signature: ObjectRequest.signature(for: target, of: entry?.rule))
    // curl reads the list until it gets another one.
    try easy.set(CURLOPT_HTTPHEADER, pointer: headers.pointer)
    self.headers = headers
    try easy.set(CURLOPT_URL, to: target.url.text)
    // The URL is in canonical form, and is what rules, keys and a signature cover.
    try easy.set(CURLOPT_PATH_AS_IS, to: true)
    // Over TLS, ALPN tells whether a connection can be multiplexed, so waiting is worthwhile.
    // Without TLS only the first response tells, and all transfers would wait for a slow one.
    try easy.set(CURLOPT_PIPEWAIT, to: target.url.scheme == .https)
    // With little memory left, bodies may have to wait, and only an own connection can make its host wait.
    let version = room.hasPlenty(for: 0) ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
    try easy.set(CURLOPT_HTTP_VERSION, to: version)
  }

  /// When the current hop must have a connection.
  var connectDeadline: ContinuousClock.Instant {
    min(deadline, hopBegan + rules.configuration.connectTimeout)
  }

  /// Returns the configuration key behind a time-out that curl reports at `now`.
  func timeoutKey(_ now: ContinuousClock.Instant) -> String {
    // curl counts whole milliseconds, so it may report the deadline a little early.
    if now + .milliseconds(2) >= deadline { return "download.timeout" }
    return hasSentRequest ? "download.low_speed_time" : "download.connect_timeout"
  }

  /// Sets what the hop's name resolves to and the time that is left. Call it before curl gets the
  /// handle.
  ///
  /// - Parameter addresses: the addresses of `hopName`. With them curl asks no resolver: it would
  ///   start a thread for each transfer, without a limit.
  func launch(
    _ addresses: [IPAddress], now: ContinuousClock.Instant
  ) throws(ImageError) {
    guard deadline > now else {
      throw .sourceTimeout(detail: "no time left for another request", key: "download.timeout")
    }
    lookUpTime = now - hopBegan
    // curl reads the list at the start of a hop.
    let names = try HeaderList(hopName?.lines(addresses) ?? [])
    try easy.set(CURLOPT_RESOLVE, pointer: names.pointer)
    self.names = names
    try easy.set(CURLOPT_TIMEOUT_MS, to: (deadline - now).wholeMilliseconds)
    let connecting = max(connectDeadline - now, .milliseconds(1))
    try easy.set(CURLOPT_CONNECTTIMEOUT_MS, to: connecting.wholeMilliseconds)
  }

  /// Returns whether a hop gets its rule's secrets, and records the hop.
  func sendsSecrets(of rule: HostRule?, to target: DownloadTarget) -> Bool {
    let isOfTrail = trail.enter(target)
    // The operator chose the endpoint, and no redirect leads to or from it.
    if target.object != nil { return true }
    return isOfTrail && rule?.sendsCredentials(to: target.url.scheme, port: target.url.port) == true
  }

  /// Opens a socket if the address is allowed.
  func openSocket(_ address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
    let dryRun = rules.configuration.dryRun
    if dryRun?.isOrigin(target.url) == true { return newSocket(for: address) }
    // The operator chose the proxy, so its address is not checked.
    if !usesProxy, let refusal = rules.refusal(of: address, for: target) {
      refusedAddress = refusal
      refusedNames.add(target)
      return CURL_SOCKET_BAD
    }
    if let dryRun {
      dryRun.report(
        usesProxy ? "a proxy for \(target.hostAndPort)" : rules.text(of: address, for: target))
      refusedAddress = .sourceUnreachable(detail: "a dry run connects to nothing")
      return CURL_SOCKET_BAD
    }
    return newSocket(for: address)
  }

  private func newSocket(for address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
    hasOpenedSocket = true
    // Close-on-exec: imaging workers must not inherit connections.
    let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
    return socket(address.pointee.family, kind, address.pointee.protocol)
  }

  /// Aims at the target of a redirect.
  ///
  /// - Throws: the error of a refused redirect.
  func follow(_ location: String, now: ContinuousClock.Instant) throws(ImageError) {
    let configuration = rules.configuration
    // The signature is for this endpoint, and a redirect tells of a wrong region or endpoint.
    if target.object != nil {
      throw .sourceError(
        status: response.status,
        detail: "a redirect of an object store is not followed"
          + (storeCode.map { ": \($0)" } ?? ""))
    }
    guard redirects.count < configuration.maximumRedirects else {
      throw .tooManyRedirects(limit: configuration.maximumRedirects)
    }
    redirects.append(response)
    let next = try DownloadTarget(redirect: location, hosts: configuration.hosts)
    try aim(at: next, now: now)
    // Set only now: a redirect that is refused is a failure of the current hop.
    target = next
    forgetHop()
  }
}
