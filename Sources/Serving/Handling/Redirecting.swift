// Redirecting: requests that leave the format open are sent on to those that name it, for caches that do not heed Vary.

import CMicrohttpd
import Model
import Telemetry

extension RequestContext {
  /// Whether what is asked for here is answered with the place where it is.
  var isRedirected: Bool {
    handler.rules.redirectsAuto && client.target?.isNegotiated == true
  }

  /// Whether memory has what the client asks for next.
  func isKeptNamed(_ delivery: ImageDelivery, of request: ImageRequest) -> Bool {
    let named = request.naming(delivery.variant.info.format)
    return handler.provider.isCached(named.key)
  }

  /// The image, kept as what its client asks for next, so that it is not made twice.
  ///
  /// - Parameter atOnce: the image, where it was there without waiting.
  static func named(
    _ request: ImageRequest, _ atOnce: ImageDelivery?, by provider: any ImageProvider
  ) async throws(ImageError) -> ImageDelivery {
    var found = atOnce
    if found == nil { found = try await provider.variant(for: request) }
    guard let delivery = found else { throw .internal(detail: "no image to be sent on to") }
    await provider.keepNamed(delivery.variant, of: request)
    return delivery
  }

  /// Sends the client on to what was delivered, by the name of its format: 302 (RFC 9110, section 15.4.3), since another
  /// client, or the same source tomorrow, may lead to another.
  ///
  /// `private` keeps it out of the caches that it is made for: they would give everybody the first client's format.
  func redirect(to delivery: ImageDelivery) -> MHD_Result {
    guard let target = client.target else {
      return refuse(.internal(detail: "a redirection without a target"))
    }
    let info = delivery.variant.info
    let location = target.location(naming: info.format)
    // Nobody could follow it, and there may be no room for it.
    guard location.utf8.count < RequestFraming.longestTarget else {
      return refuse(.targetTooLong(limit: RequestFraming.longestTarget))
    }
    let (now, microseconds) = (Clock.now(), client.elapsedMicroseconds)
    var timings = delivery.timings
    timings.total = .microseconds(microseconds)
    var head = ResponseHead(date: now, id: client.requestID)
    head.add("Server-Timing", timings.headerValue)
    head.addAge(of: info.freshness, at: now, isPrivate: true)
    head.add("Location", location)
    head.add("Cache-Status", delivery.cacheStatus.headerValue)
    addCommon(to: &head, vary: target.vary)
    do throws(ImageError) {
      let nothing = [UInt8]().withUnsafeBytes { ImageBytes(copying: $0) }
      let response = try Response(
        head: head, style: handler.configuration.headStyle, body: .memory(nothing),
        closes: handler.isDraining)
      record(delivery.cacheStatus, microseconds)
      log(302, 0, delivery.cacheStatus.headerValue, error: nil)
      return queue(response, status: 302, bytes: 0)
    } catch {
      return refuse(error)
    }
  }
}
