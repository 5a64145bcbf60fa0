// RequestContext+Redirect: redirects `auto` to what it stands for, for caches without Vary.

import CMicrohttpd
import Core

extension RequestContext {
  /// Whether this request is answered with a redirect.
  var isRedirected: Bool {
    policy.rules.redirectsAuto && client.target?.isAdaptive == true
  }

  /// Whether memory has the image that the redirected request will ask for.
  func isCachedNamed(_ delivery: ImageDelivery, of request: ImageRequest) -> Bool {
    guard client.target?.isNegotiated == true else {
      return handler.provider.isCached(request.key)
    }
    guard let image = delivery.variant.info.image else { return false }
    return handler.provider.isCached(request.naming(image.format).key)
  }

  /// Returns the image, and caches it for the redirected request so that it is not rendered twice.
  ///
  /// - Parameters:
  ///   - isNegotiated: whether the redirect adds the format. Its numbers add nothing to the key.
  ///   - atOnce: the image, if it was available without waiting.
  static func named(
    _ request: ImageRequest, isNegotiated: Bool, atOnce: ImageDelivery?,
    by provider: any ImageProvider
  ) async throws(ImageError) -> ImageDelivery {
    var found = atOnce
    if found == nil { found = try await provider.variant(for: request) }
    guard let delivery = found else { throw .internal(detail: "no image to redirect to") }
    if isNegotiated { await provider.keepNamed(delivery.variant, of: request) }
    return delivery
  }

  /// Redirects to the URL that names the delivered format. Uses 302 (RFC 9110, section 15.4.3),
  /// because another client, or a changed source, may get another format.
  ///
  /// `private` keeps the redirect out of shared caches, which would give every client the first
  /// client's format.
  func redirect(to delivery: ImageDelivery) -> MHD_Result {
    let info = delivery.variant.info
    guard let target = client.target, let image = info.image,
      case .success(let request)? = target.request
    else {
      return refuse(.internal(detail: "a redirect without a target or an image"))
    }
    let location = target.location(
      naming: image.format, sizing: adapted(request, of: target).transform.sizing,
      signer: policy.rules.signing.signer)
    // A longer location would be refused as a target, and may not fit into the response's head.
    guard location.utf8.count < RequestFraming.longestTarget else {
      return refuse(.targetTooLong(limit: RequestFraming.longestTarget))
    }
    let now = Clock.now()
    let microseconds = client.elapsedMicroseconds
    let cacheStatus = delivery.cacheStatus
    var head = ResponseHead(date: now, id: client.requestID)
    head.add(delivery.timings, total: microseconds)
    head.addAge(of: info.freshness, at: now, isPrivate: true, until: target.expiry)
    head.add("Location", value: location)
    head.add("Cache-Status", value: cacheStatus.headerValue)
    addCommon(to: &head, vary: target.vary)
    record(delivery, microseconds: microseconds)
    return respond(302, head: head, cacheStatus: cacheStatus)
  }
}
