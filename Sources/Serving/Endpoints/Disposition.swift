// Disposition: what an endpoint decides to do with a request.

import Model
import Platform

/// Asynchronous work that decides how a request ends.
typealias RequestWork = @Sendable () async throws(ImageError) -> Outcome

/// Joins the work of another request, whose outcome is this one's, too. Calls the closure once, on
/// any thread, perhaps before it returns. Returns a function that leaves; `nil` without such work.
typealias JoinedWork =
  @Sendable (LoadClient, @escaping @Sendable (Outcome) -> Void) -> (@Sendable () -> Void)?

/// What an endpoint's handler returns. `RequestContext` carries it out.
enum Disposition {
  /// Sends an image that was available without waiting.
  case image(ImageDelivery)
  /// Sends JSON.
  case json(JSONResponse)
  /// Sends a file of the page.
  case page(PageFile)
  /// Suspends the connection until the work has ended: that of other requests if there is any to
  /// join, or else the request's own.
  case suspend(Admission, RequestWork, joining: JoinedWork? = nil)
  /// Streams the events that `observe` reports, until the client disconnects. `interval` is the
  /// smallest reported step of progress, as a fraction from 0 to 1.
  case events(interval: Double, observe: (ProgressEvents) -> Observation?)

  /// Suspends the connection and sends JSON that is gathered and encoded outside the event loop,
  /// because it may be long. Operators are admitted during overload.
  static func jsonLater(
    _ content: @escaping @Sendable () async throws(ImageError) -> some Encodable & SendableMetatype
  ) -> Disposition {
    .suspend(.always) { () async throws(ImageError) in
      .json(try JSONResponse(try await content()))
    }
  }
}

/// Whether a suspended request counts against the limit of active requests.
enum Admission: Sendable {
  /// The request is refused during overload.
  case limited
  /// The request is admitted during overload.
  case always
}
