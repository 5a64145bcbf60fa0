// InfoEndpoint: describes sources.

import Model

/// `/info`: size, format and metadata of a source, as JSON. The description is a product of the
/// imaging pipeline like an image, so it is requested, cached and sent as one.
struct InfoEndpoint: Endpoint {
  let path = EndpointPath.exact("/info")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open
  let imageQuery: ImageQuery.Kind? = .info

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    try ImageEndpoint.handle(context)
  }
}
