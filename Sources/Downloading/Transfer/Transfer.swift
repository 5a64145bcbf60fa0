// Transfer: one load that is being fetched: a hop, its head, body and end, then the next hop.

import CCurl
import Core
import Glibc
import Requesting

/// A load that is being fetched. Follows redirects itself, to check each target before it is
/// resolved or contacted. Belongs to the transfer thread.
///
/// For each hop: `aim` sets its options, `launch` its addresses, curl reports a socket, a request,
/// a head and a body, and `hopEnded` tells what follows.
final class Transfer {
  /// What the transfer reports to its loop.
  struct Reports {
    /// The head of a response is complete.
    let answered: () -> Void
    /// The addresses of a name are refused.
    let refused: (_ name: String) -> Void
    /// Bytes of the body were received; −1 for an unknown length.
    let received: (_ count: Int, _ expected: Int) -> Void
  }

  /// One request of the load, from its options to the end of its response.
  struct Hop {
    let target: DownloadTarget
    let began: ContinuousClock.Instant
    /// The name that the hop needs the addresses of.
    var name: HopName?
    var usesProxy = false
    /// How long its name took.
    var lookUpTime = Duration.zero
    /// What its name resolves to, once curl has the hop, and whether its times are added up.
    var launched: (addresses: [IPAddress], isTimed: Bool)?
    var refusal: ImageError?
    var hasOpenedSocket = false
    /// When it had a connection and its request was sent.
    var sentAt: ContinuousClock.Instant?
    /// When the response head was complete.
    var answeredAt: ContinuousClock.Instant?
    var head: OriginResponseParser
    /// Bytes of a redirect's or an error's body.
    var discarded = 0
    /// The body of an object store's error, up to `discardLimit`.
    var errorBody: [UInt8] = []

    /// Whether no address of the hop was allowed.
    var isRefused: Bool { refusal != nil && !hasOpenedSocket }
    /// The code in the body of an object store's error.
    var storeCode: String? { AWSErrorCode.find(in: errorBody) }

    /// The response, with its times.
    var response: OriginResponse {
      var response = head.origin
      if let sentAt, let answeredAt {
        response.exchange = Exchange(requestedAt: sentAt, receivedAt: answeredAt)
      }
      return response
    }
  }

  /// The outcome of a hop.
  enum Outcome {
    /// Pass the handle to curl for the next hop.
    case nextHop
    /// Retry the hop when the wait is over.
    case retry(after: ImageError)
    /// The body is complete; the bytes that the origin sent must be verified against its digests.
    case unverified(Download, sent: FileRegion, BodyDigests)
    /// The load has ended.
    case ended(Result<LoadResult, ImageError>)
  }

  /// Events that a transfer waits for and curl does not report.
  enum Wait {
    case nothing
    /// The first byte of a response, with its deadline.
    case firstByte(until: ContinuousClock.Instant)
    /// The time of the next retry, with the error of the failed hop.
    case retry(at: ContinuousClock.Instant, after: ImageError)
  }

  let request: LoadRequest
  let rules: TransferRules
  let easy: EasyHandle
  private let room: BodyRoom
  private let alarm: TransferAlarm
  private let reports: Reports
  private let deadline: ContinuousClock.Instant

  private(set) var hop: Hop
  private var trail: RedirectTrail
  /// The responses of the redirects so far.
  private(set) var redirects: [OriginResponse] = []
  private(set) var retries = 0
  /// The body; `nil` before a complete head.
  private var body: IncomingBody?
  private(set) var timings = Timings()
  /// The local reason for aborting; curl only reports that a callback aborted.
  private var failure: ImageError?
  /// The event that the transfer waits for. `alarm` rings no later than its deadline.
  private(set) var wait = Wait.nothing
  /// What curl keeps pointers to: fields, lines for the table of names, the rule's connections.
  private var pointers: (headers: HeaderList?, names: HeaderList?, share: RuleShare?) = (
    nil, nil, nil
  )
  var spans = HopSpans()

  /// Bodies of redirects and errors are read this far, so that the connection can be used again.
  private static let discardLimit = 64 << 10

  init(
    _ load: PendingDownload, rules: TransferRules, room: BodyRoom, alarm: TransferAlarm,
    now: ContinuousClock.Instant, reports: Reports
  ) throws(ImageError) {
    request = load.request
    self.rules = rules
    self.room = room
    self.alarm = alarm
    self.reports = reports
    deadline = now + rules.configuration.timeout
    trail = RedirectTrail(load.target)
    timings.queue = now - load.arrived
    hop = Hop(target: load.target, began: now, head: rules.head)
    easy = try EasyHandle()
    try easy.configure(rules.configuration, for: self)
    if let location = rules.configuration.dryRun?.location() {
      try follow(location, now: now)
    } else {
      try aim(at: load.target, now: now)
    }
  }

  deinit {
    if let body { room.forget(body) }
    easy.leaveShare()
  }

  /// curl's handle of this transfer.
  var handle: UnsafeMutableRawPointer { easy.pointer }
  /// Host and port of the current hop.
  var host: String { hop.target.hostAndPort }
  /// The circuit of the current hop.
  var circuit: String { hop.target.circuit }
  /// Body bytes received.
  var bytes: Int { body?.received ?? 0 }
  /// Body bytes of the current hop, also of a redirect or an error.
  var hopBytes: Int { bytes + hop.discarded }
  /// Whether the body has no memory yet.
  var hasNoMemory: Bool { body?.hasMemory == false }
  /// Whether the body has memory and will not be complete in time at its pace so far.
  func willMissDeadline(_ now: ContinuousClock.Instant) -> Bool {
    guard let answered = hop.answeredAt, let body, body.hasMemory, let expected = body.expected,
      answered < now
    else { return false }
    let rate = Double(body.received) / ((now - answered) / .seconds(1))
    return Double(expected - body.received) > rate * ((deadline - now) / .seconds(1))
  }

  // MARK: A hop

  /// Sets the options of a hop or a retry, which is the current hop from then on. All share one
  /// deadline.
  private func aim(at target: DownloadTarget, now: ContinuousClock.Instant) throws(ImageError) {
    let entry = rules.hosts[target]
    let proxy = rules.proxy(entry?.rule)
    if proxy != nil, let refusal = rules.refusal(byProxy: target.host) {
      throw .refused(refusal, isNamed: false)
    }
    pointers.share = entry?.share
    try easy.configure(entry, proxy: proxy)
    let told = rules.configuration.tells(traceOfHop(now: now), to: target)
    let headers = try rules.headers(
      of: entry?.rule, forwarded: trail.isFirst(target) ? request.forwarded : [],
      hasSecrets: sendsSecrets(of: entry?.rule, to: target), validators: request.validators,
      isRedirected: !redirects.isEmpty, trail: request.trail, trace: told,
      signature: ObjectRequest.signature(for: target, of: entry?.rule))
    // curl reads the list until it gets another one.
    try easy.set(CURLOPT_HTTPHEADER, pointer: headers.pointer)
    pointers.headers = headers
    try easy.set(CURLOPT_URL, to: target.url.text)
    // The URL is in canonical form, and is what rules, keys and a signature cover.
    try easy.set(CURLOPT_PATH_AS_IS, to: true)
    // Over TLS, ALPN tells whether a connection can be multiplexed, so waiting is worthwhile.
    // Without TLS only the first response tells, and all transfers would wait for a slow one.
    try easy.set(CURLOPT_PIPEWAIT, to: target.url.scheme == .https)
    // With little memory left, bodies may have to wait, and only an own connection can make its
    // host wait.
    let version = room.hasPlenty(for: 0) ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
    try easy.set(CURLOPT_HTTP_VERSION, to: version)
    // Only now: what is refused until here is a failure of the hop before.
    hop = Hop(target: target, began: now, head: rules.head)
    hop.name = proxy.map { HopName(proxy: $0) } ?? HopName(target)
    hop.usesProxy = proxy != nil
    wait = .nothing
  }

  /// Returns whether a hop gets its rule's secrets, and records the hop.
  private func sendsSecrets(of rule: HostRule?, to target: DownloadTarget) -> Bool {
    let isOfTrail = trail.enter(target)
    // The operator chose the endpoint, and no redirect leads to or from it.
    if target.object != nil { return true }
    return isOfTrail && rule?.sendsCredentials(to: target.url.scheme, port: target.url.port) == true
  }

  /// When the current hop must have a connection.
  var connectDeadline: ContinuousClock.Instant {
    min(deadline, hop.began + rules.configuration.connectTimeout)
  }

  /// Sets what the hop's name resolves to and the time left, before curl gets the handle.
  ///
  /// - Parameters:
  ///   - addresses: those of its name; for a look-up of its own, curl would start a thread.
  ///   - time: how long the name took ahead of the queue.
  func launch(_ addresses: [IPAddress], lookedUpIn time: Duration, now: ContinuousClock.Instant)
    throws(ImageError)
  {
    guard deadline > now else {
      throw .sourceTimeout(detail: "no time left for another request", key: "download.timeout")
    }
    hop.lookUpTime = now - hop.began + time
    timings.queue = timings.queue.map { $0 - time }
    hop.launched = (addresses, isTimed: false)
    let names = try HeaderList(hop.name?.lines(addresses) ?? [])
    try easy.set(CURLOPT_RESOLVE, pointer: names.pointer)
    pointers.names = names
    try easy.set(CURLOPT_TIMEOUT_MS, to: (deadline - now).wholeMilliseconds)
    let connecting = max(connectDeadline - now, .milliseconds(1))
    try easy.set(CURLOPT_CONNECTTIMEOUT_MS, to: connecting.wholeMilliseconds)
  }

  /// Opens a socket if the address is allowed.
  func openSocket(_ address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
    // The operator chose the proxy, so its address is not checked.
    if !hop.usesProxy, let refusal = rules.refusal(of: address, for: hop.target) {
      hop.refusal = refusal
      if let name = hop.name { reports.refused(name.name) }
      return CURL_SOCKET_BAD
    }
    if let dryRun = rules.configuration.dryRun {
      dryRun.report(
        hop.usesProxy ? "a proxy for \(host)" : rules.text(of: address, for: hop.target))
      hop.refusal = .sourceUnreachable(detail: "a dry run connects to nothing")
      return CURL_SOCKET_BAD
    }
    hop.hasOpenedSocket = true
    return Curl.socket(for: address)
  }

  /// Records that the request is about to be sent on a connection. Returns `false` to abort the
  /// transfer.
  ///
  /// curl resends a request if a reused connection ends before the first byte of a response. This
  /// counts as a retry.
  func sendsRequest(to address: IPAddress?) -> Bool {
    // A kept connection may be older than the rules.
    if !hop.usesProxy, let address, let refusal = rules.refusal(of: address, for: hop.target) {
      failure = refusal
      return false
    }
    if hop.sentAt != nil {
      guard retries < rules.retries.limit else {
        failure = .sourceUnreachable(detail: "the connection ended before a response")
        return false
      }
      retries += 1
    }
    let now = ContinuousClock.now
    hop.sentAt = now
    let limit = rules.configuration.firstByteTimeout
    guard limit > .zero else { return true }
    let end = now + limit
    wait = .firstByte(until: end)
    alarm.set(end)
    return true
  }

  // MARK: The head

  /// Receives a line of the head or the trailers. Returns `false` to abort the transfer.
  func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    wait = .nothing
    switch hop.head.receive(line) {
    case .more: return true
    case .tooLarge:
      failure = .sourceUnreachable(
        detail: "more than \(rules.configuration.maximumHeaderBytes) bytes of headers")
    case .complete:
      hop.answeredAt = .now
      reports.answered()
      do throws(ImageError) { try takeHead() } catch { failure = error }
    }
    return failure == nil
  }

  private func takeHead() throws(ImageError) {
    let head = hop.head
    // The end of this response is unknown, so the connection must be closed (RFC 9112, section
    // 6.3).
    guard !head.hasInvalidLength else {
      throw .sourceUnreachable(detail: "an invalid Content-Length")
    }
    if head.redirect == nil { request.onHead?(origin) }
    guard TransferFailure.error(status: head.origin.status) == nil else { return }
    let coding = head.contentEncoding.flatMap { ContentCoding(name: $0) }
    if let name = head.contentEncoding, coding == nil {
      throw .unsupportedFormat(detail: "unsupported Content-Encoding: \(name)")
    }
    let limit = rules.configuration.maximumBytes
    if let length = head.contentLength, length > limit { throw .sourceTooLarge(limit: limit) }
    if let length = head.bodyLength, length > room.limit {
      throw .sourceTooLarge(limit: room.limit, key: "memory.budget")
    }
    reports.received(0, head.bodyLength ?? -1)
    try beginBody(coding, limit: limit)
  }

  /// The current hop's response, with the responses of previous redirects.
  private var origin: OriginResponse {
    var origin = hop.response
    origin.redirects = redirects
    return origin
  }

  // MARK: The body

  private func beginBody(_ coding: ContentCoding?, limit: Int) throws(ImageError) {
    let head = hop.head
    var coded: CodedBody?
    if let coding {
      let lease = head.digests.isExpected ? try room.emptyLease() : nil
      coded = try CodedBody(coding, limit: limit, keepingOn: lease)
    }
    let body = IncomingBody(
      expecting: head.bodyLength, limit: limit, coded: coded, pausing: easy.pointer)
    self.body = body
    // With little memory left, readers get the complete body later: it can be sent from a file.
    let length = head.bodyLength ?? limit
    if let onBody = request.onBody, room.hasPlenty(for: length) { body.offer(origin, to: onBody) }
    room.ask(for: body)
    // Of a multiplexed body that is kept back, curl would receive up to 32 MiB all the same (7.88).
    if !body.hasMemory, easy.isMultiplexed {
      throw .overloaded(queue: "download memory", retryAfter: 1)
    }
  }

  /// Receives a piece of the body. Returns curl's answer: the number of bytes, or to keep the piece
  /// back, or an error.
  func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    let abort = Int(CURL_WRITEFUNC_ERROR)
    // A failure while curl delivers a body that it kept back does not end the transfer.
    guard failure == nil else { return abort }
    guard TransferFailure.error(status: hop.head.origin.status) == nil, let body else {
      hop.discarded += bytes.count
      if hop.target.object != nil {
        hop.errorBody += bytes.prefix(max(Self.discardLimit - hop.errorBody.count, 0))
      }
      return hop.discarded <= Self.discardLimit ? bytes.count : abort
    }
    switch body.receive(bytes) {
    case .taken:
      reports.received(body.received, hop.head.bodyLength ?? -1)
      return bytes.count
    case .wait: return Int(CURL_WRITEFUNC_PAUSE)
    case .refused(let error):
      failure = error
      return abort
    }
  }

  // MARK: The end

  /// Evaluates the end of a hop. Call once per hop, after curl has released the handle.
  ///
  /// - Parameter unresolved: why curl did not get the handle: the hop's name has no addresses.
  func hopEnded(
    _ code: CURLcode, unresolved: String? = nil, now: ContinuousClock.Instant
  ) -> Outcome {
    if unresolved == nil {
      timings.add(hopTimings)
      hop.launched?.isTimed = true
      pointers.share?.receivedAnswer(on: easy)
    }
    wait = .nothing
    do throws(ImageError) {
      if let failure { throw failure }
      if body?.isWaiting == true { throw .overloaded(queue: "download memory", retryAfter: 1) }
      if hop.isRefused, let refusal = hop.refusal { throw refusal }
      // The head of an error or redirect is sufficient, even if its body failed.
      if hop.head.isComplete, code != CURLE_OPERATION_TIMEDOUT, let outcome = try headOutcome(now) {
        return outcome
      }
      guard code == CURLE_OK else {
        throw TransferFailure.error(
          code, detail: unresolved ?? easy.detail(of: code), afterHead: hop.head.isComplete,
          url: hop.target.url, timeoutKey: timeoutKey(now))
      }
      return try bodyOutcome()
    } catch {
      guard let retry = retryTime(after: code, now: now) else { return .ended(.failure(error)) }
      wait = .retry(at: retry, after: error)
      alarm.set(retry)
      return .retry(after: error)
    }
  }

  /// Follows a redirect, or ends with a status that has no body; `nil` if the body counts.
  private func headOutcome(_ now: ContinuousClock.Instant) throws(ImageError) -> Outcome? {
    let head = hop.head
    if let location = head.redirect {
      try follow(location, now: now)
      return .nextHop
    }
    if head.origin.status == 304, request.validators != nil {
      return .ended(.success(.notModified(origin, timings)))
    }
    let seconds = head.retryAfter.flatMap { RetryPolicy.seconds(ofRetryAfter: $0, now: .now) }
    if let error = TransferFailure.error(status: head.origin.status, retryAfter: seconds) {
      throw hop.target.object == nil ? error : ObjectRequest.error(error, code: hop.storeCode)
    }
    return nil
  }

  private func bodyOutcome() throws(ImageError) -> Outcome {
    // curl accepts a head that was cut off by the end of the connection.
    guard hop.head.isComplete else {
      throw .sourceUnreachable(detail: "an incomplete response head")
    }
    guard let (file, sent, version) = try body?.sealed() else {
      throw .unsupportedFormat(detail: "empty body")
    }
    let result = Download(file: file, origin: origin, timings: timings, version: version)
    guard hop.head.digests.isEmpty else { return .unverified(result, sent: sent, hop.head.digests) }
    body?.end(isWhole: true)
    return .ended(.success(.fetched(result)))
  }

  /// Ends the body with the result of its verification.
  func verified(isRight: Bool) { body?.end(isWhole: isRight) }

  /// Aims at the target of a redirect's `Location`.
  ///
  /// - Throws: the error of a refused redirect.
  private func follow(_ location: String, now: ContinuousClock.Instant) throws(ImageError) {
    let configuration = rules.configuration
    // The signature is for this endpoint, and a redirect tells of a wrong region or endpoint.
    if hop.target.object != nil {
      throw .sourceError(
        status: hop.response.status,
        detail: "a redirect of an object store is not followed"
          + (hop.storeCode.map { ": \($0)" } ?? ""))
    }
    guard redirects.count < configuration.maximumRedirects else {
      throw .tooManyRedirects(limit: configuration.maximumRedirects)
    }
    redirects.append(hop.response)
    let next = try DownloadTarget(
      redirect: hop.target.absolute(location), hosts: configuration.hosts)
    try aim(at: next, now: now)
  }

  /// Prepares the retry that `wait` was set for.
  func retry(now: ContinuousClock.Instant) throws(ImageError) {
    retries += 1
    try aim(at: hop.target, now: now)
  }

  /// Returns when the failed hop is retried, or `nil` for no retry.
  private func retryTime(
    after code: CURLcode, now: ContinuousClock.Instant
  ) -> ContinuousClock.Instant? {
    guard failure == nil else { return nil }
    let kind: RetryPolicy.Failure
    if hop.head.isComplete, code != CURLE_OPERATION_TIMEDOUT {
      // Object stores tell a client to slow down without saying for how long.
      let isSlowDown = hop.target.object != nil && hop.head.origin.status == 503
      kind = .status(
        hop.head.origin.status, retryAfter: hop.head.retryAfter ?? (isSlowDown ? "0" : nil))
    } else if !hop.head.hasBegun,
      TransferFailure.isOfConnection(code, hasSentRequest: hop.sentAt != nil),
      !hop.isRefused || hop.refusal?.status == 502
    {
      // A refused name is retried as one that does not exist, so that both take the same time.
      kind = .connection
    } else {
      return nil
    }
    return rules.retries.delay(
      after: kind, retries: retries, timeLeft: deadline - now, chance: .random(in: 0...1), now: .now
    ).map { now + $0 }
  }

  /// Returns the configuration key behind a time-out that curl reports at `now`.
  private func timeoutKey(_ now: ContinuousClock.Instant) -> String {
    // curl counts whole milliseconds, so it may report the deadline a little early.
    if now + .milliseconds(2) >= deadline { return "download.timeout" }
    return hop.sentAt != nil ? "download.timeout" : "download.connect_timeout"
  }
}
