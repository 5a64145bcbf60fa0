// ActionEndpoint: the endpoints that do one thing and have no parameters.

import Core

/// `POST` does what the path says.
struct ActionEndpoint: Endpoint {
  let path: EndpointPath
  let methods: [Method] = [.post]
  private let scope: OperatorScope
  private let perform: @Sendable (AdminServices) throws(ImageError) -> Disposition

  /// `/admin/cache/clean` removes what expired, and what exceeds the limits.
  static let clean = ActionEndpoint("/admin/cache/clean", .purge) { services in
    .jsonLater { await services.cache.clean() }
  }
  /// `/admin/cancel` cancels all downloads and rendering (SDWebImage's cancelAll).
  static let cancel = ActionEndpoint("/admin/cancel") { services throws(ImageError) in
    .json(try JSONResponse(["cancelled": services.manager.cancelAll()]))
  }
  /// `/admin/pause` keeps queued downloads from starting.
  static let pause = ActionEndpoint("/admin/pause") { services throws(ImageError) in
    services.downloads.pause()
    return .json(try JSONResponse(["paused": true]))
  }
  /// `/admin/resume` starts paused downloads.
  static let resume = ActionEndpoint("/admin/resume") { services throws(ImageError) in
    services.downloads.resume()
    return .json(try JSONResponse(["paused": false]))
  }

  private init(
    _ path: String, _ scope: OperatorScope = .write,
    perform: @escaping @Sendable (AdminServices) throws(ImageError) -> Disposition
  ) {
    self.path = .exact(path)
    self.scope = scope
    self.perform = perform
  }

  func scope(for method: Method) -> OperatorScope { scope }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try AdminQuery(context.query)
    return try perform(context.services)
  }
}
