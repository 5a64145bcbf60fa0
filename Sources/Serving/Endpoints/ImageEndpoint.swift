// ImageEndpoint: serves images and descriptions that memory has no fresh response for.

import Core

/// `/image`: an image, transformed as the query says. `/info`: size, format and metadata of a
/// source as JSON, which is a product of the imaging pipeline, and cached and sent as an image.
struct ImageEndpoint: Endpoint {
  let path: EndpointPath
  let access = EndpointAccess.open
  let imageQuery: ImageQuery.Kind?
  var methods: [Method] = [.get, .head]

  init(_ path: String, _ kind: ImageQuery.Kind) {
    self.path = .exact(path)
    imageQuery = kind
  }

  func operation(for method: Method) -> Operation? {
    let body = method == .post ? "application/octet-stream" : nil
    return imageQuery == .info
      ? Operation(summary: "Size, format and metadata of a source", body: body)
      : Operation(
        summary: "An image: loaded once, turned upright, resized, encoded, cached",
        body: body, answers: ["image/*"])
  }

  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    method == .post && methods.contains(method)
      ? .file(limit: configuration.download.maximumBytes) : .discard
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let trail = try context.trail()
    guard !context.handler.isDraining else { throw .draining }
    let request = try Self.request(of: context, trail: trail)
    guard request.source.scheme != .body else { return try Self.brought(request, in: context) }
    let provider = context.handler.provider
    let isRedirected = context.isRedirected
    let atOnce = Self.deliveryAtOnce(for: request, in: context)
    if let atOnce, !isRedirected || context.isCachedNamed(atOnce, of: request) {
      return .image(atOnce)
    }
    // With HTTP/1.0, a client cannot distinguish a truncated response from a complete one.
    let takesStream =
      request.transform.output.isProgressive && context.client.method == .get
      && context.client.isHTTP11
    let isNegotiated = context.client.target?.isNegotiated == true
    let work: RequestWork = { () async throws(ImageError) in
      if isRedirected {
        return .image(
          try await RequestContext.named(
            request, isNegotiated: isNegotiated, atOnce: atOnce, by: provider))
      }
      guard takesStream else { return .image(try await provider.variant(for: request)) }
      return switch try await provider.answer(to: request) {
      case .whole(let delivery): .image(delivery)
      case .coming(let delivery): .streaming(delivery)
      }
    }
    guard let fallback = FallbackRequest(for: request) else {
      let joining: JoinedWork = { client, completion in
        provider.follow(request, for: client) { result in
          switch result {
          case .success(let delivery): completion(.image(delivery))
          case .failure(let error): completion(.failure(error))
          }
        }
      }
      return .suspend(.limited, work, joining: isRedirected || takesStream ? nil : joining)
    }
    return .suspend(.limited) { () async throws(ImageError) in
      do throws(ImageError) {
        return try await work()
      } catch {
        guard error.isOfImage, let delivery = await fallback.delivery(by: provider) else {
          throw error
        }
        return .fallback(FallbackDelivery(name: fallback.name, delivery: delivery, error: error))
      }
    }
  }

  /// Handles a request that brings its source along.
  ///
  /// - Throws: `missingParameter` for a GET, `unauthorized`.
  private static func brought(
    _ request: ImageRequest, in context: RequestContext
  ) throws(ImageError) -> Disposition {
    guard context.client.method == .post else { throw .missingParameter("url") }
    guard context.mayBringSource else { throw .unauthorized }
    let body = context.client.takeBody()
    let (provider, threads) = (context.handler.provider, context.handler.fileReaders)
    return .suspend(.limited) { () async throws(ImageError) in
      let file = try body.file()
      // A large body takes a while, which is no event loop's.
      let digest = try? await threads.value {
        (try? ImageBytes(contentsOf: file))?.withUnsafeBytes { HMAC.hexSHA256(of: $0) }
      }
      guard let digest = digest ?? nil else {
        throw .overloaded(queue: "request bodies", retryAfter: 1)
      }
      return .image(try await provider.variant(for: request.loading(file, named: digest)))
    }
  }

  /// Returns the target's request with what the request fields add: options, negotiated formats and
  /// forwarded fields. Ends an earlier request with the same operation key.
  private static func request(
    of context: RequestContext, trail: ServerTrail
  ) throws(ImageError) -> ImageRequest {
    if let secret = context.client.target?.secret, !context.hasSecret {
      throw .refusedAtDoor(secret.refusal)
    }
    let target = try context.entitledTarget()
    guard let parsed = target.request else {
      throw .internal(detail: "a target without a request")
    }
    var request: ImageRequest
    switch parsed {
    case .success(let success): request = success
    case .failure(let error): throw error
    }
    guard context.client.method != .post || request.source.scheme == .body else {
      throw .invalidParameter(
        name: "url", value: displayable(request.source.text),
        allowed: "nothing: the source of a POST is its body")
    }
    RequestCacheControl(on: context.connection).apply(to: &request.options, rights: target.rights)
    request.options.trail = trail
    request.options.trace = context.trace
    context.handler.supersededRequests.supersede(
      by: context.handler.operation(of: context.client, on: context.connection))
    request = context.adapted(request, of: target)
    if let forwarding = target.forwarding {
      request = forwarding.apply(to: request, on: context.connection)
    }
    return request
  }

  /// Returns the image if it is available without waiting. Asks memory if the key depends on more
  /// than the target; for others, `RequestHandler.respondFromMemory` did, unless heads are sent
  /// field by field.
  private static func deliveryAtOnce(
    for request: ImageRequest, in context: RequestContext
  ) -> ImageDelivery? {
    let options = request.options
    let provider = context.handler.provider
    let isAsked =
      context.client.target?.key != nil && context.policy.configuration.headStyle == .block
    if !isAsked, options.cache == .normal || options.cache == .only,
      options.age == AgeDemands(), let variant = provider.cachedVariant(for: request.key)
    {
      return ImageDelivery(variant: variant, cacheStatus: .hit(.memory), timings: Timings())
    }
    return provider.deliveryAtOnce(for: request)
  }
}
