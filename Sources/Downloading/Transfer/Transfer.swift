// Transfer: one load that is being fetched, hop by hop.

import CCurl
import Glibc
import Model
import Platform

/// A load that is being fetched. Follows redirects itself, so that each target is checked before it
/// is resolved or contacted. Belongs to the transfer thread.
final class Transfer {
  let easy: EasyHandle
  let rules: TransferRules
  let room: BodyRoom
  private let alarm: TransferAlarm
  let refusedNames: RefusedNames
  let validators: Validators?
  /// The client's request fields for the first origin.
  let forwarded: [HeaderField]
  /// The servers that it was asked for through.
  let servers: ServerTrail
  /// The trace that it belongs to.
  let trace: TraceContext?
  let deadline: ContinuousClock.Instant
  private let onAnswer: () -> Void
  private let progress: (_ received: Int, _ expected: Int) -> Void
  private let onHead: (@Sendable (OriginResponse) -> Void)?
  private let onBody: (@Sendable (any StreamingBody) -> Void)?

  var target: DownloadTarget
  var trail: RedirectTrail
  var headers: HeaderList?
  var share: RuleShare?
  /// The lines for curl's table of names.
  var names: HeaderList?
  /// The name that the current hop needs the addresses of.
  var hopName: HopName?
  var hopBegan: ContinuousClock.Instant
  /// The ids of a recorded hop whose span has not begun.
  var hopTrace: TraceContext?
  /// The span of the current hop; `nil` if it is not recorded, has not begun, or has ended.
  var hopSpan: HopSpan?
  /// Recorded hops that have begun.
  var sentHops = 0
  /// How long the current hop's name took.
  var lookUpTime = Duration.zero
  var usesProxy = false
  /// The responses of the redirects so far.
  var redirects: [OriginResponse] = []
  private var retries = 0
  private var head: OriginResponseParser
  /// The body; `nil` before a complete head.
  private var body: IncomingBody?
  private var discarded = 0
  private var timings = Timings()
  /// The local reason for aborting; curl only reports that a callback aborted.
  private var failure: ImageError?
  var refusedAddress: ImageError?
  var hasOpenedSocket = false
  /// When the current hop's response head was complete.
  private(set) var answered: ContinuousClock.Instant?
  /// When the current hop had a connection and its request was sent.
  private var sentAt: ContinuousClock.Instant?
  /// The event that the transfer waits for. `alarm` rings no later than its deadline.
  private(set) var wait = Wait.nothing

  /// Bodies of redirects and errors are read to this many bytes, so that the connection can be used again.
  private static let discardLimit = 64 << 10

  init(
    _ load: PendingDownload, rules: TransferRules, room: BodyRoom, alarm: TransferAlarm,
    refusedNames: RefusedNames, now: ContinuousClock.Instant, onAnswer: @escaping () -> Void,
    progress: @escaping (_ received: Int, _ expected: Int) -> Void
  ) throws(ImageError) {
    target = load.target
    trail = RedirectTrail(load.target)
    validators = load.validators
    forwarded = load.forwarded
    servers = load.trail
    trace = load.trace
    onHead = load.onHead
    onBody = load.onBody
    self.rules = rules
    self.room = room
    self.alarm = alarm
    self.refusedNames = refusedNames
    self.onAnswer = onAnswer
    self.progress = progress
    deadline = now + rules.configuration.timeout
    hopBegan = now
    head = OriginResponseParser(limit: rules.configuration.maximumHeaderBytes)
    timings.queue = now - load.arrived
    easy = try EasyHandle()
    try easy.configure(rules.configuration, for: self)
    try aim(at: target, now: now)
  }

  deinit {
    if let body { room.forget(body) }
    easy.leaveShare()
  }

  /// curl's handle of this transfer.
  var handle: UnsafeMutableRawPointer { easy.pointer }

  /// Host and port of the current hop.
  var host: String { target.hostAndPort }

  /// The URL of the current hop.
  var url: SourceURL { target.url }

  /// Whether the current hop's host sent a complete response head.
  var hasAnswer: Bool { head.isComplete }

  /// Whether the current hop has a connection and its request was sent.
  var hasSentRequest: Bool { sentAt != nil }

  /// Body bytes received.
  var bytes: Int { body?.received ?? 0 }

  /// Whether the body has memory and will not be complete in time at its pace so far.
  func willMissDeadline(_ now: ContinuousClock.Instant) -> Bool {
    guard let answered, let body, body.hasMemory, let expected = body.expected, answered < now
    else { return false }
    let rate = Double(body.received) / ((now - answered) / .seconds(1))
    return Double(expected - body.received) > rate * ((deadline - now) / .seconds(1))
  }

  /// Whether the body has no memory yet.
  var hasNoMemory: Bool { body.map { !$0.hasMemory } ?? false }

  /// Body bytes of the current hop, also of a redirect or an error.
  var hopBytes: Int { bytes + discarded }

  /// Prepares the retry that `wait` was set for.
  func retry(now: ContinuousClock.Instant) throws(ImageError) {
    retries += 1
    forgetHop()
    try aim(at: target, now: now)
  }

  func forgetHop() {
    head = OriginResponseParser(limit: rules.configuration.maximumHeaderBytes)
    discarded = 0
    refusedAddress = nil
    hasOpenedSocket = false
    sentAt = nil
    answered = nil
    wait = .nothing
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
        failure = .sourceUnreachable(detail: "the connection ended before a response")
        return false
      }
      retries += 1
    }
    let now = ContinuousClock.now
    sentAt = now
    let limit = rules.configuration.firstByteTimeout
    guard limit > .zero else { return true }
    let end = now + limit
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
      answered = .now
      onAnswer()
      // The end of this response is unknown, so the connection must be closed (RFC 9112, section
      // 6.3).
      guard !head.hasInvalidLength else {
        failure = .sourceUnreachable(detail: "an invalid Content-Length")
        return false
      }
      if head.redirect == nil { onHead?(origin) }
      guard TransferFailure.error(status: head.origin.status) == nil else { return true }
      let coding = head.contentEncoding.flatMap { ContentCoding(name: $0) }
      if let name = head.contentEncoding, coding == nil {
        failure = .unsupportedFormat(detail: "unsupported Content-Encoding: \(name)")
      } else if let length = head.contentLength, length > rules.configuration.maximumBytes {
        failure = .sourceTooLarge(limit: rules.configuration.maximumBytes)
      } else if let length = head.bodyLength, length > room.limit {
        failure = .sourceTooLarge(
          limit: room.limit, key: "download.maximum_bytes_in_flight")
      } else {
        progress(0, head.bodyLength ?? -1)
        do throws(ImageError) { try beginBody(coding) } catch { failure = error }
      }
      return failure == nil
    }
  }

  /// The current hop's response, with its times.
  var response: OriginResponse {
    var response = head.origin
    if let sentAt, let answered {
      response.exchange = Exchange(requestedAt: sentAt, receivedAt: answered)
    }
    return response
  }

  /// The current hop's response, with the responses of previous redirects.
  private var origin: OriginResponse {
    var origin = response
    origin.redirects = redirects
    return origin
  }

  private func beginBody(_ coding: ContentCoding?) throws(ImageError) {
    let limit = rules.configuration.maximumBytes
    var coded: CodedBody?
    if let coding {
      let lease = head.digests.isExpected ? try room.emptyLease() : nil
      coded = try CodedBody(coding, limit: limit, keepingOn: lease)
    }
    let body = IncomingBody(
      expecting: head.bodyLength, limit: limit, coded: coded,
      withholdsLast: head.digests.isExpected, pausing: easy.pointer)
    self.body = body
    // With little memory left, readers get the complete body later: it can be sent from a file.
    let length = head.bodyLength ?? limit
    if let onBody, room.hasPlenty(for: length) { body.offer(origin, to: onBody) }
    room.ask(for: body)
    // Of a multiplexed body that is kept back, curl would receive up to 32 MiB all the same (7.88).
    if !body.hasMemory, easy.isMultiplexed {
      failure = .overloaded(queue: "download memory", retryAfter: 1)
    }
  }

  /// Receives a piece of the body.
  func receiveBody(_ bytes: UnsafeRawBufferPointer) -> BodyAnswer {
    // A failure while curl delivers a body that it kept back does not end the transfer.
    guard failure == nil else { return .abort }
    guard TransferFailure.error(status: head.origin.status) == nil, let body else {
      discarded += bytes.count
      return discarded <= Self.discardLimit ? .taken : .abort
    }
    switch body.receive(bytes) {
    case .taken:
      progress(body.received, head.bodyLength ?? -1)
      return .taken
    case .wait: return .wait
    case .refused(let error):
      failure = error
      return .abort
    }
  }

  // MARK: The end of a hop

  /// Evaluates the end of a hop. Call once per hop, after curl has released the handle.
  ///
  /// - Parameter unresolved: why curl did not get the handle: the hop's name has no addresses.
  func hopEnded(
    _ code: CURLcode, unresolved: String? = nil, now: ContinuousClock.Instant
  ) -> Outcome {
    if unresolved == nil {
      var hop = easy.timings
      hop.dns = hop.dns.map { $0 + lookUpTime }
      timings.add(hop)
      share?.receivedAnswer(on: easy)
    }
    wait = .nothing
    do throws(ImageError) {
      if let failure { throw failure }
      if body?.isWaiting == true { throw .overloaded(queue: "download memory", retryAfter: 1) }
      if let refusedAddress, !hasOpenedSocket { throw refusedAddress }
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
          code, detail: unresolved ?? easy.detail(of: code), afterHead: head.isComplete,
          url: target.url, timeoutKey: timeoutKey(now))
      }
      // curl accepts a head that was cut off by the end of the connection.
      guard head.isComplete else { throw .sourceUnreachable(detail: "an incomplete response head") }
      guard let (file, sent, version) = try body?.sealed() else {
        throw .unsupportedFormat(detail: "empty body")
      }
      let download = Download(file: file, origin: origin, timings: timings, version: version)
      guard head.digests.isEmpty else { return .unverified(download, sent: sent, head.digests) }
      body?.end(isWhole: true)
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
      refusedAddress == nil || hasOpenedSocket || refusedAddress?.status == 502
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

  /// Ends the body with the result of its verification.
  func verified(isRight: Bool) { body?.end(isWhole: isRight) }
}
