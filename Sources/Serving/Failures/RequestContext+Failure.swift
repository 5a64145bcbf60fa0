// RequestContext+Failure: responds with a fallback image or redirect for a failed image.

import CMicrohttpd
import Core

extension RequestContext {
  /// The most seconds for which clients may store a fallback image, the JSON in its place, or a
  /// redirect to the source. The image may come back at any time.
  private static let longestLifetime = 60

  /// Responds to a request whose work has failed: with a redirect to the source or a fallback image
  /// at hand, if the request takes one, else with JSON.
  func respond(toFailure error: ImageError) -> MHD_Result {
    guard error.isOfImage, let target = client.target, case .success(let request)? = target.request
    else { return refuse(error) }
    switch request.options.onFailure {
    case .error: return refuse(error)
    case .redirect:
      return error.allowsRedirect && request.source.scheme.isHTTP
        ? redirect(to: request.source, after: error) : refuse(error)
    case .fallback:
      // The task of a request that met its deadline is cancelled, so nothing else can wait.
      guard let fallback = FallbackRequest(for: adapted(request, of: target)),
        let delivery = fallback.deliveryAtOnce(by: handler.provider)
      else {
        handler.figures.fallbacks.add("unavailable")
        // The fallback may come back at any time, too.
        return refuse(error, limit: Self.longestLifetime)
      }
      return respond(
        with: FallbackDelivery(name: fallback.name, delivery: delivery, error: error))
    }
  }

  /// Responds with a fallback image. Without validators, so that no cache confirms it.
  func respond(with fallback: FallbackDelivery) -> MHD_Result {
    let error = fallback.error
    let variant = fallback.delivery.variant
    guard let image = variant.info.image else {
      return refuse(.internal(detail: "a fallback without an image"))
    }
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", value: variant.info.content.mediaType)
    head.add("Content-DPR", value: ResponseHead.decimal(image.density))
    head.add(fallback.delivery.timings, total: client.elapsedMicroseconds)
    head.add("X-Fallback", value: fallback.name)
    // Caches in front of a server that redirects ignore `Vary`.
    addFailure(error, to: &head, isPrivate: isRedirected)
    head.add(
      "Content-Disposition",
      value: "inline; filename=\"\(fallback.name).\(image.format.fileExtension)\"")
    head.add("Content-Security-Policy", value: "default-src 'none'; sandbox")
    let status = policy.configuration.fallbackStatus == .ok ? 200 : error.status
    countFallback("image", after: error)
    return respond(
      status, head: head, body: variant.body, insteadOf: (error: error, name: fallback.name))
  }

  /// Redirects to the URL of a source that the client may load itself.
  private func redirect(to source: SourceURL, after error: ImageError) -> MHD_Result {
    // A longer location may not fit into the response's head.
    guard source.text.utf8.count < RequestFraming.longestTarget else { return refuse(error) }
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Location", value: source.text)
    addFailure(error, to: &head, isPrivate: false)
    countFallback("redirect", after: error)
    return respond(302, head: head, insteadOf: (error: error, name: "redirect"))
  }

  /// Adds what a fallback and a redirect say of the failure.
  private func addFailure(_ error: ImageError, to head: inout ResponseHead, isPrivate: Bool) {
    head.add("X-Error-Code", value: error.code)
    _ = addCaching(of: error, to: &head, limit: Self.longestLifetime, isPrivate: isPrivate)
    addCommon(to: &head, vary: client.target?.vary)
  }

  /// Counts a failure with what was sent in its place.
  private func countFallback(_ answer: String, after error: ImageError) {
    count(error)
    handler.figures.fallbacks.add(answer)
  }
}
