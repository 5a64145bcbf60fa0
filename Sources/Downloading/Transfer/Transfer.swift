// Transfer: one load that is being fetched, hop by hop.

import CCurl
import Glibc
import Model
import Platform

/// A load that is being fetched. Follows redirects itself, so that each target is checked before it
/// is resolved or contacted. Belongs to the transfer thread.
final class Transfer {
  private let easy: EasyHandle
  private let rules: TransferRules
  private let budget: BodyBudget
  private let alarm: TransferAlarm
  private let validators: Validators?
  /// The client's request fields for the first origin.
  private let forwarded: [HeaderField]
  /// The servers that it was asked for through.
  private let servers: ServerTrail
  private let deadline: ContinuousClock.Instant
  private let progress: (_ received: Int, _ expected: Int) -> Void
  private let onHead: (@Sendable (OriginResponse) -> Void)?
  private let onBody: (@Sendable (any StreamingBody) -> Void)?

  private var target: DownloadTarget
  private var trail: RedirectTrail
  private var headers: HeaderList?
  private var jar: CookieJar?
  private var usesProxy = false
  /// The responses of the redirects so far.
  private var redirects: [OriginResponse] = []
  private var retries = 0
  private var head: OriginResponseParser
  private var body: MemoryFile?
  /// The body for readers that follow it; only if requested.
  private var growing: DownloadBuffer?
  private var received = 0
  private var discarded = 0
  private var timings = Timings()
  /// The local reason for aborting; curl only reports that a callback aborted.
  private var failure: ImageError?
  private var refusedAddress: ImageError?
  private var hasOpenedSocket = false
  /// Whether the current hop has a connection and its request was sent.
  private(set) var hasSentRequest = false
  /// The event that the transfer waits for. `alarm` rings no later than its deadline.
  private(set) var wait = Wait.nothing

  /// Bodies of redirects and errors are read to this many bytes, so that the connection can be used again.
  private static let discardLimit = 64 << 10

  init(
    _ load: PendingDownload, rules: TransferRules, budget: BodyBudget, alarm: TransferAlarm,
    now: ContinuousClock.Instant,
    progress: @escaping (_ received: Int, _ expected: Int) -> Void
  ) throws(ImageError) {
    target = load.target
    trail = RedirectTrail(load.target)
    validators = load.validators
    (forwarded, servers) = (load.forwarded, load.trail)
    onHead = load.onHead
    onBody = load.onBody
    self.rules = rules
    self.budget = budget
    self.alarm = alarm
    self.progress = progress
    deadline = now + rules.configuration.timeout
    head = OriginResponseParser(limit: rules.configuration.maximumHeaderBytes)
    timings.queue = now - load.arrived
    easy = try EasyHandle()
    try easy.configure(rules.configuration, for: self)
    try aim(at: target, now: now)
  }

  deinit {
    budget.giveBack(received)
    growing?.end(isWhole: false)
    easy.leaveJar()
  }

  /// curl's handle of this transfer.
  var handle: UnsafeMutableRawPointer { easy.pointer }

  /// Host and port of the current hop.
  var host: String { target.hostAndPort }

  /// The URL of the current hop.
  var url: SourceURL { target.url }

  /// Whether the current hop's host sent a complete response head.
  var hasAnswer: Bool { head.isComplete }

  /// Body bytes received.
  var bytes: Int { received }

  /// Sets the options of a hop or a retry. All share one deadline.
  private func aim(at target: DownloadTarget, now: ContinuousClock.Instant) throws(ImageError) {
    let left = deadline - now
    guard left > .zero else { throw .sourceTimeout(detail: "no time left for another request") }
    let connecting = min(left, rules.configuration.connectTimeout)
    let entry = rules.hosts[target.host]
    let proxy = rules.proxy(entry?.rule)
    if proxy != nil, let refusal = rules.refusal(byProxy: target.host) {
      throw .refusedAddress(refusal)
    }
    (usesProxy, jar) = (proxy != nil, entry?.jar)
    try easy.configure(entry, proxy: proxy)
    let headers = try rules.headers(
      entry?.rule, forwarded: trail.isFirst(target) ? forwarded : [],
      hasSecrets: trail.enter(target), validators, isRedirected: !redirects.isEmpty,
      trail: servers)
    // curl reads the list until it gets another one.
    try easy.set(CURLOPT_HTTPHEADER, pointer: headers.pointer)
    self.headers = headers
    try easy.set(CURLOPT_URL, target.url.text)
    try easy.set(CURLOPT_TIMEOUT_MS, left.wholeMilliseconds)
    try easy.set(CURLOPT_CONNECTTIMEOUT_MS, connecting.wholeMilliseconds)
    // Over TLS, ALPN tells whether a connection can be multiplexed, so waiting is worthwhile.
    // Without TLS only the first response tells, and all transfers would wait for a slow one.
    try easy.set(CURLOPT_PIPEWAIT, target.url.scheme == .https)
  }

  /// Prepares the retry that `wait` was set for.
  func retry(now: ContinuousClock.Instant) throws(ImageError) {
    retries += 1
    forgetHop()
    try aim(at: target, now: now)
  }

  private func forgetHop() {
    head = OriginResponseParser(limit: rules.configuration.maximumHeaderBytes)
    (discarded, refusedAddress, hasOpenedSocket) = (0, nil, false)
    (hasSentRequest, wait) = (false, .nothing)
  }

  // MARK: What curl reports, on the transfer thread

  /// Records that the request is about to be sent on a connection. Returns `false` to abort the
  /// transfer.
  ///
  /// curl resends a request if a reused connection ends before the first byte of a response. This
  /// counts as a retry.
  func sendsRequest() -> Bool {
    if hasSentRequest {
      guard retries < rules.retries.limit else {
        failure = .sourceUnreachable(detail: "the connection ended before an answer")
        return false
      }
      retries += 1
    }
    hasSentRequest = true
    let limit = rules.configuration.firstByteTimeout
    guard limit > .zero else { return true }
    let end = ContinuousClock.now + limit
    wait = .firstByte(until: end)
    alarm.set(end)
    return true
  }

  /// Receives a line of the head or the trailers. Returns `false` to abort the transfer.
  func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    wait = .nothing
    switch head.receive(line) {
    case .more:
      return true
    case .tooLarge:
      failure = .sourceUnreachable(
        detail: "more than \(rules.configuration.maximumHeaderBytes) bytes of headers")
      return false
    case .complete:
      // The end of this response is unknown, so the connection must be closed (RFC 9112, section
      // 6.3).
      guard !head.hasInvalidLength else {
        failure = .sourceUnreachable(detail: "a Content-Length that makes no sense")
        return false
      }
      if head.redirect == nil { onHead?(origin) }
      guard TransferFailure.error(status: head.origin.status) == nil else { return true }
      if let coding = head.contentEncoding, !ContentCodings.decodable.contains(coding) {
        failure = .unsupportedFormat(detail: "Content-Encoding \(coding) was not asked for")
      } else if let length = head.contentLength, length > rules.configuration.maximumBytes {
        failure = .sourceTooLarge(limit: rules.configuration.maximumBytes)
      } else {
        progress(received, head.bodyLength ?? -1)
        offerBody()
      }
      return failure == nil
    }
  }

  /// The parsed response, with the responses of previous redirects.
  private var origin: OriginResponse {
    var origin = head.origin
    origin.redirects = redirects
    return origin
  }

  /// Offers the body to readers while it is received, if requested. If that fails, they get the
  /// complete body later.
  private func offerBody() {
    guard let onBody, let file = try? MemoryFile(name: "pictor-body"),
      let growing = try? DownloadBuffer(
        reading: file.descriptor, origin: origin, expected: head.bodyLength)
    else { return }
    body = consume file
    self.growing = growing
    onBody(growing)
  }

  /// Receives a piece of the body. Returns `false` to abort the transfer.
  func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard TransferFailure.error(status: head.origin.status) == nil else {
      discarded += bytes.count
      return discarded <= Self.discardLimit
    }
    guard received + bytes.count <= rules.configuration.settings.maximumBytes else {
      failure = .sourceTooLarge(limit: rules.configuration.maximumBytes)
      return false
    }
    // Readers were told this length and would take more bytes for the end.
    guard received + bytes.count <= head.bodyLength ?? .max else {
      failure = .sourceIncomplete(detail: "more bytes than Content-Length says")
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
      // Withholds the last byte until the digests are verified.
      growing?.grow(to: head.digests.isEmpty ? received : received - 1)
      progress(received, head.bodyLength ?? -1)
      return true
    } catch {
      failure = .internal(detail: "memory file: \(error)")
      return false
    }
  }

  /// Opens a socket if the address is allowed.
  func openSocket(_ address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
    // The operator chose the proxy, so its address is not checked.
    if !usesProxy, let refusal = rules.refusal(of: address, port: target.url.port) {
      refusedAddress = refusal
      return CURL_SOCKET_BAD
    }
    hasOpenedSocket = true
    // Close-on-exec: imaging workers must not inherit connections.
    let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
    return socket(address.pointee.family, kind, address.pointee.protocol)
  }

  // MARK: The end of a hop

  /// Evaluates the end of a hop. Call once per hop, after curl has released the handle.
  func hopEnded(_ code: CURLcode, now: ContinuousClock.Instant) -> Outcome {
    timings.add(easy.timings)
    jar?.receivedAnswer(on: easy)
    wait = .nothing
    do throws(ImageError) {
      if let failure { throw failure }
      if let refusedAddress, !hasOpenedSocket {
        throw refusedAddress
      }
      // The head of an error or redirect is sufficient, even if its body failed.
      if head.isComplete, code != CURLE_OPERATION_TIMEDOUT {
        if let location = head.redirect {
          try follow(target.absolute(location), now: now)
          return .nextHop
        }
        if head.origin.status == 304, validators != nil {
          return .ended(.success(.notModified(origin, timings)))
        }
        let seconds = head.retryAfter.flatMap { RetryPolicy.seconds(ofRetryAfter: $0, now: .now) }
        if let error = TransferFailure.error(status: head.origin.status, retryAfter: seconds) {
          throw error
        }
      }
      guard code == CURLE_OK else {
        throw TransferFailure.error(
          code, detail: easy.detail(of: code), afterHead: head.isComplete, url: target.url)
      }
      // curl accepts a head that was cut off by the end of the connection.
      guard head.isComplete else { throw .sourceUnreachable(detail: "half a head") }
      guard received > 0, let body = body.take() else {
        throw .unsupportedFormat(detail: "empty body")
      }
      let file = try Self.seal(body)
      let download = Download(
        file: file, origin: origin, timings: timings,
        version: growing?.version ?? .random(in: 1...(.max)))
      guard head.digests.isEmpty else { return .unverified(download, head.digests) }
      growing?.end(isWhole: true)
      return .ended(.success(.fetched(download)))
    } catch {
      guard let retry = retryTime(after: code, now: now) else { return .ended(.failure(error)) }
      wait = .retry(at: retry, after: error)
      alarm.set(retry)
      return .retry
    }
  }

  /// Returns when the failed hop is retried, or `nil` for no retry.
  private func retryTime(
    after code: CURLcode, now: ContinuousClock.Instant
  ) -> ContinuousClock.Instant? {
    guard failure == nil else { return nil }
    let kind: RetryPolicy.Failure
    if head.isComplete, code != CURLE_OPERATION_TIMEDOUT {
      kind = .status(head.origin.status, retryAfter: head.retryAfter)
    } else if !head.hasBegun,
      TransferFailure.isOfConnection(code, hasSentRequest: hasSentRequest),
      refusedAddress == nil || hasOpenedSocket
    {
      kind = .connection
    } else {
      return nil
    }
    return rules.retries.delay(
      after: kind, retries: retries, timeLeft: deadline - now, chance: .random(in: 0...1), now: .now
    ).map { now + $0 }
  }

  /// Ends the body with the result of its verification.
  func verified(isRight: Bool) {
    if isRight { growing?.grow(to: received) }
    growing?.end(isWhole: isRight)
  }

  private func follow(_ location: String, now: ContinuousClock.Instant) throws(ImageError) {
    let configuration = rules.configuration
    guard redirects.count < configuration.maximumRedirects else {
      throw .tooManyRedirects(limit: configuration.maximumRedirects)
    }
    redirects.append(head.origin)
    let next = try DownloadTarget(redirect: location, hosts: configuration.hosts)
    try aim(at: next, now: now)
    // Set only now: a redirect that is refused is a failure of the current hop.
    target = next
    forgetHop()
  }
}
