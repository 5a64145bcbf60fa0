// Transfer+End: evaluates the end of a hop: a redirect, a retry, or the result of the load.

import CCurl
import Model
import Platform

extension Transfer {
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
          throw target.object == nil ? error : ObjectRequest.error(error, code: storeCode)
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
      // Object stores tell a client to slow down without saying for how long.
      let isSlowDown = target.object != nil && head.origin.status == 503
      kind = .status(
        head.origin.status, retryAfter: head.retryAfter ?? (isSlowDown ? "0" : nil))
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
