// FallbackRequest: what a client gets in place of an image that failed.

import CMicrohttpd
import Core

/// The request for a fallback image in place of an image that cannot be had.
struct FallbackRequest: Sendable {
  /// The name in the configuration.
  let name: String
  /// The request. It is plain: its own failure has no fallback.
  let request: ImageRequest

  /// How long a client waits for a fallback after its image has failed.
  static let patience = Duration.seconds(5)

  /// Returns `nil` for a request without a fallback image.
  ///
  /// The fallback has the request's size, effects, format and quality. What the request selects of
  /// its own source, and its watermark, mean nothing for another image.
  init?(for original: ImageRequest) {
    guard case .fallback(let image) = original.options.onFailure else { return nil }
    var transform = original.transform
    transform.selection = Selection()
    transform.sizing.focalPoint = nil
    transform.watermark = nil
    transform.output.passed = []
    var options = LoadOptions()
    options.priority = original.options.priority
    options.isFreeForm = original.options.isFreeForm
    options.trail = original.options.trail
    options.trace = original.options.trace
    name = image.name
    request = ImageRequest(
      source: image.source, transform: transform, options: options, keyURL: image.keyURL)
  }

  /// Returns the fallback image if it is available without waiting.
  func deliveryAtOnce(by provider: any ImageProvider) -> ImageDelivery? {
    if let variant = provider.cachedVariant(for: request.key) {
      return ImageDelivery(variant: variant, cacheStatus: .hit(.memory), timings: Timings())
    }
    return provider.deliveryAtOnce(for: request)
  }

  /// Returns the fallback image, or `nil` if it cannot be had within `patience`.
  func delivery(
    by provider: any ImageProvider, within patience: Duration = Self.patience
  ) async -> ImageDelivery? {
    if let atOnce = deliveryAtOnce(by: provider) { return atOnce }
    return await withTaskGroup(of: ImageDelivery?.self) { group in
      group.addTask { [request] in try? await provider.variant(for: request) }
      group.addTask {
        // Cancelled as soon as the image is there.
        try? await Task.sleep(for: patience)
        return nil
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      return first
    }
  }
}

/// A fallback image, and the failure that it stands for.
struct FallbackDelivery: Sendable {
  /// The name in the configuration.
  let name: String
  let delivery: ImageDelivery
  let error: ImageError
}

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
    head.add("Content-Security-Policy", value: ResponseHead.contentSecurityPolicy)
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
