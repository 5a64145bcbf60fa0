// HopSpan: one request to an origin as an exported span, by OpenTelemetry's semantic conventions
// for HTTP clients.

import Core

/// The spans of a transfer's hops.
struct HopSpans {
  /// The ids of a recorded hop whose span has not begun.
  var next: TraceContext?
  /// The ids of the current hop's span, which the origin's `traceparent` names, and its start: the
  /// look-up of the target's name. `nil` if the hop is not recorded, has not begun, or has ended.
  var current: (context: TraceContext, since: ContinuousClock.Instant)?
  /// Recorded hops that have begun.
  var begun = 0
}

extension Transfer {
  /// Returns the trace that a hop's origin may be told, and ends the span of the hop before. A
  /// recorded hop has ids of its own; its span begins with `beginSpan`.
  func traceOfHop(now: ContinuousClock.Instant) -> TraceContext? {
    endSpan(after: nil, now: now)
    let isRecorded = request.trace?.isSampled == true && rules.configuration.spans != nil
    spans.next = isRecorded ? request.trace?.child() : nil
    return spans.next ?? request.trace
  }

  /// Begins the span of a recorded hop. Call it when the look-up of the hop's name begins, or curl
  /// gets the hop: a hop that is refused before has no span.
  func beginSpan(now: ContinuousClock.Instant) {
    guard let context = spans.next.take() else { return }
    spans.current = (context, now)
    spans.begun += 1
  }

  /// Forgets the span of a hop of which nothing was sent.
  func discardSpan() {
    if spans.current.take() != nil { spans.begun -= 1 }
  }

  /// Exports the span of the current hop, unless that was done, or its address was refused.
  ///
  /// - Parameter error: why the hop failed.
  func endSpan(after error: ImageError?, now: ContinuousClock.Instant) {
    if hop.isRefused { return discardSpan() }
    guard let (context, since) = spans.current.take() else { return }
    let url = hop.target.url
    var attributes = [
      SpanAttribute("http.request.method", "GET"),
      // Neither query nor user information, which may be secrets.
      SpanAttribute("url.full", SecretMask.masked("\(url.scheme.rawValue)://\(host)\(url.path)")),
      SpanAttribute("server.address", hop.target.host), SpanAttribute("server.port", url.port),
      SpanAttribute("http.response.body.size", hopBytes),
    ]
    let status = hop.head.isComplete ? hop.response.status : nil
    if let status { attributes.append(SpanAttribute("http.response.status_code", status)) }
    if spans.begun > 1 {
      attributes.append(SpanAttribute("http.request.resend_count", spans.begun - 1))
    }
    let isError = error != nil || (status ?? 0) >= 400
    if isError {
      attributes.append(SpanAttribute("error.type", error?.code ?? "\(status ?? 0)"))
    }
    let end = WallClock.nanoseconds
    let time = ContinuousClock.now - since
    // The part of the time after `now` is not the hop's.
    let rest = ContinuousClock.now - now
    rules.configuration.spans?.add(
      Span(
        context, .client, name: "GET", start: end - time.wholeNanoseconds,
        end: end - rest.wholeNanoseconds, isError: isError, attributes: attributes))
  }
}
