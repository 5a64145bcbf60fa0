// Transfer: one load that is being fetched, hop by hop.

import CCurl
import Glibc
import Model
import Platform
import Signing

/// A load that is being fetched. Follows redirects itself, so that each target is checked before it
/// is resolved or contacted. Belongs to the transfer thread.
final class Transfer {
  let easy: EasyHandle
  let rules: TransferRules
  let room: BodyRoom
  let alarm: TransferAlarm
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
  var retries = 0
  var head: OriginResponseParser
  /// The body; `nil` before a complete head.
  var body: IncomingBody?
  private var discarded = 0
  /// The body of an object store's error, up to `discardLimit`.
  private var errorBody: [UInt8] = []
  var timings = Timings()
  /// The local reason for aborting; curl only reports that a callback aborted.
  var failure: ImageError?
  var refusedAddress: ImageError?
  var hasOpenedSocket = false
  /// When the current hop's response head was complete.
  private(set) var answered: ContinuousClock.Instant?
  /// When the current hop had a connection and its request was sent.
  private var sentAt: ContinuousClock.Instant?
  /// The event that the transfer waits for. `alarm` rings no later than its deadline.
  var wait = Wait.nothing

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
  /// The circuit of the current hop.
  var circuit: String { target.circuit }

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
    errorBody = []
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
  func sendsRequest(to address: IPAddress?) -> Bool {
    // A kept connection may be older than the rules.
    let isProbe = rules.configuration.dryRun?.isOrigin(target.url) == true
    if !usesProxy, !isProbe, let address, let refusal = rules.refusal(of: address, for: target) {
      failure = refusal
      return false
    }
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

  /// The code in the body of an object store's error.
  var storeCode: String? { AWSErrorCode.find(in: errorBody) }

  /// The current hop's response, with its times.
  var response: OriginResponse {
    var response = head.origin
    if let sentAt, let answered {
      response.exchange = Exchange(requestedAt: sentAt, receivedAt: answered)
    }
    return response
  }

  /// The current hop's response, with the responses of previous redirects.
  var origin: OriginResponse {
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
      expecting: head.bodyLength, limit: limit, coded: coded, pausing: easy.pointer)
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
      if target.object != nil {
        errorBody += bytes.prefix(max(Self.discardLimit - errorBody.count, 0))
      }
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
}
