// PageEndpoint: sends the page for people, and its files.

import CMicrohttpd
import Model
import Telemetry

/// `/`: the page on which people try a URL and watch the server.
struct PageEndpoint: Endpoint {
  let path = EndpointPath.exact("/")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    try context.page(PageFiles.index)
  }
}

/// `/page/…`: the style, the scripts and the description of the parameters.
struct PageFileEndpoint: Endpoint {
  let path = EndpointPath.item(under: "/page/")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    try context.page(context.name)
  }
}

extension RequestContext {
  /// Returns a file of the page.
  ///
  /// - Throws: `notFound`.
  fileprivate func page(_ name: String) throws(ImageError) -> Disposition {
    guard let file = policy.page?[name] else { throw notFound }
    return .page(file)
  }

  /// Responds with a file of the page. Browsers ask each time whether it has changed, because an
  /// update of the server changes all files at once.
  func respond(with file: PageFile) -> MHD_Result {
    let isKnown = handler.isNotModified(etag: file.etag, on: connection)
    let status = isKnown ? 304 : file.bytes.count > 0 ? 200 : 204
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", value: file.type.description)
    head.add("Cache-Control", value: "no-cache")
    head.add("ETag", value: file.etag.description)
    head.add("Content-Security-Policy", value: PageFile.contentSecurityPolicy)
    head.add("Referrer-Policy", value: "no-referrer")
    addCommon(to: &head, vary: nil)
    do throws(ImageError) {
      let response = try Response(
        head: head, style: policy.configuration.headStyle, body: .memory(file.bytes),
        closes: handler.closesConnections)
      log(status: status, bytes: file.bytes.count)
      return queue(response, status: status, bytes: file.bytes.count)
    } catch {
      return refuse(error)
    }
  }
}
