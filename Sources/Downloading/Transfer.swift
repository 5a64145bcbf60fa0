// Transfer: one load being fetched, hop by hop: its curl handle, what has come in so far, and what that means.

import CCurl
import Glibc
import Model
import Platform

/// What all transfers have in common.
struct TransferRules: Sendable {
  let configuration: DownloaderConfiguration
  let addresses: AddressPolicy
  let headers: HeaderList

  init(_ configuration: DownloaderConfiguration) throws(ImageError) {
    self.configuration = configuration
    addresses = AddressPolicy(allowedNetworks: configuration.allowedNetworks)
    // Nothing here decompresses, so a small body that swells is not asked for; see field notes.
    headers = try HeaderList(["Accept: \(configuration.accept)", "Accept-Encoding: identity"])
  }
}

/// Bytes of the bodies being received, all transfers together; of the transfer thread alone.
final class BodyBudget {
  private let limit: Int
  private var used = 0

  init(limit: Int) { self.limit = limit }

  func take(_ count: Int) -> Bool {
    guard used + count <= limit else { return false }
    used += count
    return true
  }

  func giveBack(_ count: Int) { used -= count }
}

/// One load being fetched. Redirects are followed here and not by curl, so that each target is looked at before
/// anything is sent or even resolved. It belongs to the transfer thread.
final class Transfer {
  /// What is to be done after a hop.
  enum Outcome {
    /// Go on: hand the handle to curl once more.
    case nextHop
    /// The load has ended.
    case ended(Result<Download, ImageError>)
  }

  private let easy: EasyHandle
  private let rules: TransferRules
  private let budget: BodyBudget
  private let deadline: ContinuousClock.Instant

  private var target: Target
  private var redirects = 0
  private var head: ResponseHead
  private var body: MemoryFile?
  private var received = 0
  private var discarded = 0
  private var timings = Timings()
  /// What this side gave a transfer up for; curl only reports that a callback wanted it so.
  private var failure: ImageError?
  private var refusedAddress: String?
  private var hasOpenedSocket = false

  /// Bodies of redirects and errors are read to this many bytes, so that the connection can be used again.
  private static let discardLimit = 64 << 10

  init(
    _ target: Target, rules: TransferRules, budget: BodyBudget, queuedFor: Duration,
    now: ContinuousClock.Instant
  ) throws(ImageError) {
    self.target = target
    self.rules = rules
    self.budget = budget
    deadline = now + rules.configuration.timeout
    head = ResponseHead(limit: rules.configuration.maximumHeaderBytes)
    timings.queue = queuedFor
    easy = try EasyHandle()
    try configure()
    try aim(now: now)
  }

  deinit { budget.giveBack(received) }

  /// curl's name for this transfer.
  var handle: UnsafeMutableRawPointer { easy.pointer }

  /// Body bytes received.
  var bytes: Int { received }

  /// What every hop has in common.
  private func configure() throws(ImageError) {
    let configuration = rules.configuration
    // Passed unretained: whoever hands the handle to curl keeps this object until the handle is taken back, and curl
    // calls nobody in between or while it frees the handle.
    let this = Unmanaged.passUnretained(self).toOpaque()
    try easy.set(CURLOPT_WRITEFUNCTION, function: TransferCallbacks.body)
    try easy.set(CURLOPT_WRITEDATA, pointer: this)
    try easy.set(CURLOPT_HEADERFUNCTION, function: TransferCallbacks.header)
    try easy.set(CURLOPT_HEADERDATA, pointer: this)
    try easy.setOpenSocket(function: TransferCallbacks.openSocket)
    try easy.set(CURLOPT_OPENSOCKETDATA, pointer: this)

    try easy.set(CURLOPT_NOSIGNAL, true)
    // A proxy from the environment would hide the origin's address from the open-socket callback.
    try easy.set(CURLOPT_PROXY, "")
    try easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
    try easy.set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    try easy.set(CURLOPT_FOLLOWLOCATION, false)
    try easy.set(CURLOPT_DISALLOW_USERNAME_IN_URL, true)
    try easy.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    // Without it, giving up a transfer whose name is being resolved waits for the resolver, and everyone with it.
    try easy.set(CURLOPT_QUICK_EXIT, true)
    try easy.set(CURLOPT_BUFFERSIZE, 64 << 10)
    try easy.set(CURLOPT_TCP_KEEPALIVE, true)
    try easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    try easy.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    try easy.set(CURLOPT_SSL_VERIFYPEER, true)
    try easy.set(CURLOPT_SSL_VERIFYHOST, 2)
    // curl keeps the parsed authorities between connections only where they come from one file and no folder.
    try easy.set(CURLOPT_CAPATH, pointer: nil)
    if let file = configuration.caFile { try easy.set(CURLOPT_CAINFO, file) }

    try easy.set(CURLOPT_USERAGENT, configuration.userAgent)
    try easy.set(CURLOPT_HTTPHEADER, pointer: rules.headers.pointer)
    try easy.set(CURLOPT_MAXAGE_CONN, configuration.idleConnectionLifetime.wholeSeconds)
    try easy.set(CURLOPT_DNS_CACHE_TIMEOUT, configuration.dnsCacheLifetime.wholeSeconds)
    try easy.set(CURLOPT_LOW_SPEED_LIMIT, configuration.lowSpeedLimit)
    try easy.set(CURLOPT_LOW_SPEED_TIME, configuration.lowSpeedTime.wholeSeconds)
  }

  /// What is different for each hop. All of them share one deadline.
  private func aim(now: ContinuousClock.Instant) throws(ImageError) {
    let left = deadline - now
    guard left > .zero else { throw .sourceTimeout(detail: "no time left for a redirect") }
    let connecting = min(left, rules.configuration.connectTimeout)
    try easy.set(CURLOPT_URL, target.url.text)
    try easy.set(CURLOPT_TIMEOUT_MS, left.wholeMilliseconds)
    try easy.set(CURLOPT_CONNECTTIMEOUT_MS, connecting.wholeMilliseconds)
    // Over TLS the handshake tells whether one connection can carry many: worth waiting for. In the clear only the
    // first answer would tell, and everyone would wait for a slow one.
    try easy.set(CURLOPT_PIPEWAIT, target.url.scheme == .https)
  }

  // MARK: What curl reports, on the transfer thread

  /// A line of a head, or of trailers. `false` ends the transfer.
  fileprivate func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    switch head.receive(line) {
    case .more:
      return true
    case .tooLarge:
      failure = .sourceUnreachable(
        detail: "more than \(rules.configuration.maximumHeaderBytes) bytes of headers")
      return false
    case .complete:
      guard TransferFailure.error(status: head.origin.status) == nil else { return true }
      if let encoding = head.contentEncoding {
        failure = .unsupportedFormat(detail: "Content-Encoding \(encoding) was not asked for")
      } else if let length = head.contentLength, length > rules.configuration.maximumBytes {
        failure = .sourceTooLarge(limit: rules.configuration.maximumBytes)
      }
      return failure == nil
    }
  }

  /// A piece of the body. `false` ends the transfer.
  fileprivate func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard TransferFailure.error(status: head.origin.status) == nil else {
      discarded += bytes.count
      return discarded <= Self.discardLimit
    }
    guard received + bytes.count <= rules.configuration.maximumBytes else {
      failure = .sourceTooLarge(limit: rules.configuration.maximumBytes)
      return false
    }
    guard budget.take(bytes.count) else {
      failure = .overloaded(queue: "download", retryAfter: 1)
      return false
    }
    received += bytes.count
    do throws(SystemError) {
      if body == nil { body = try MemoryFile(name: "pictor-body") }
      try body?.append(bytes)
      return true
    } catch {
      failure = .internal(detail: "memory file: \(error)")
      return false
    }
  }

  /// Opens a socket to an address that may be connected to.
  fileprivate func openSocket(_ address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
    if let refusal = refusal(of: address) {
      refusedAddress = refusal
      return CURL_SOCKET_BAD
    }
    hasOpenedSocket = true
    // Close-on-exec: the workers that this process starts get no connections of its own.
    let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
    return socket(address.pointee.family, kind, address.pointee.protocol)
  }

  /// Read where curl has it: an IPv6 address is longer than the `sockaddr` that the structure's copy would hold.
  private func refusal(of address: UnsafePointer<curl_sockaddr>) -> String? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr),
      let ip = IPAddress(
        UnsafeRawPointer(address) + offset, length: Int(address.pointee.addrlen))
    else { return "an address that is no IP address" }
    return rules.addresses.refusal(of: ip)
  }

  // MARK: The end of a hop

  /// What the hop's end means. To be asked once a hop, when curl has let go of the handle.
  func hopEnded(_ code: CURLcode, now: ContinuousClock.Instant) -> Outcome {
    addTimings()
    do throws(ImageError) {
      if let failure { throw failure }
      if let refusedAddress, !hasOpenedSocket {
        throw .forbiddenSource(reason: "its address is not allowed", detail: refusedAddress)
      }
      // However the body of an error or a redirect ended: its head has said all there is to say.
      if head.isComplete, code != CURLE_OPERATION_TIMEDOUT {
        if let location = redirectLocation {
          try follow(location, now: now)
          return .nextHop
        }
        if let error = TransferFailure.error(status: head.origin.status) { throw error }
      }
      guard code == CURLE_OK else {
        throw TransferFailure.error(
          code, detail: easy.detail(of: code), afterHead: head.isComplete, url: target.url)
      }
      // curl takes a head that the connection's end cut off for a whole one.
      guard head.isComplete else { throw .sourceUnreachable(detail: "half a head") }
      guard let body = body.take() else { throw .unsupportedFormat(detail: "empty body") }
      return .ended(
        .success(Download(file: try Self.sealed(body), origin: head.origin, timings: timings)))
    } catch {
      return .ended(.failure(error))
    }
  }

  private static func sealed(_ body: consuming MemoryFile) throws(ImageError) -> FileRegion {
    do throws(SystemError) {
      return try body.sealed()
    } catch {
      throw .internal(detail: "memory file: \(error)")
    }
  }

  /// Where the answer redirects to, made absolute (RFC 9110, section 15.4).
  ///
  /// Not CURLINFO_REDIRECT_URL, which curl only has where the answer's body came whole.
  private var redirectLocation: String? {
    switch head.origin.status {
    case 301, 302, 303, 307, 308: head.location.map(target.absolute)
    default: nil
    }
  }

  private func follow(_ location: String, now: ContinuousClock.Instant) throws(ImageError) {
    let configuration = rules.configuration
    guard redirects < configuration.maximumRedirects else {
      throw .tooManyRedirects(limit: configuration.maximumRedirects)
    }
    redirects += 1
    target = try Target(redirect: location, allowedHosts: configuration.allowedHosts)
    head = ResponseHead(limit: configuration.maximumHeaderBytes)
    (discarded, refusedAddress, hasOpenedSocket) = (0, nil, false)
    try aim(now: now)
  }

  /// Adds up the hops' times. A connection used again took no time to make.
  private func addTimings() {
    var hop = Timings()
    let connected = easy.time(CURLINFO_CONNECT_TIME_T)
    let secured = easy.time(CURLINFO_APPCONNECT_TIME_T)
    if easy.number(CURLINFO_NUM_CONNECTS) > 0 {
      let resolved = easy.time(CURLINFO_NAMELOOKUP_TIME_T)
      hop.dns = resolved
      hop.connect = max(connected - resolved, .zero)
      if secured > connected { hop.tls = secured - connected }
    }
    let firstByte = easy.time(CURLINFO_STARTTRANSFER_TIME_T)
    if firstByte > .zero {
      hop.ttfb = max(firstByte - easy.time(CURLINFO_PRETRANSFER_TIME_T), .zero)
      hop.download = max(easy.time(CURLINFO_TOTAL_TIME_T) - firstByte, .zero)
    }
    timings.add(hop)
  }
}

/// What C calls. The context is the transfer, kept alive by the loop as long as curl has its handle.
private enum TransferCallbacks {
  static let body: curl_write_callback = { bytes, size, count, context in
    guard let context else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    // Anything but the count makes curl stop; a piece is never empty where 0 would be ambiguous.
    return transfer.receiveBody(piece) ? piece.count : Int(CURL_WRITEFUNC_ERROR)
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
}

extension Duration {
  /// Rounded up, so that a short time does not become curl's 0, "no limit"; never negative.
  fileprivate var wholeMilliseconds: Int { Int(max(self / .milliseconds(1), 0).rounded(.up)) }
  /// Rounded up, never negative.
  fileprivate var wholeSeconds: Int { Int(max(self / .seconds(1), 0).rounded(.up)) }
}
