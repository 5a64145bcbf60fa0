// UnaskedFileEndpoint: the files that browsers and crawlers ask of every server.

import Core

/// `/robots.txt` (RFC 9309) and `/favicon.ico`: routine requests are no errors in the log.
struct UnaskedFileEndpoint: Endpoint {
  let path: EndpointPath
  let access = EndpointAccess.open
  let isRoutine = true
  private let file: PageFile

  /// Crawlers may index images, and nothing else.
  static let robots = UnaskedFileEndpoint(
    "/robots.txt", type: "text/plain; charset=utf-8",
    text: "User-agent: *\nAllow: /image\nDisallow: /\n")
  /// The server has no icon: 204.
  static let icon = UnaskedFileEndpoint("/favicon.ico", type: "image/x-icon", text: "")

  private init(_ path: String, type: StaticString, text: String) {
    self.path = .exact(path)
    file = PageFile(Array(text.utf8).withUnsafeBytes { ImageBytes(copying: $0) }, type: type)
  }

  func handle(_ context: RequestContext) -> Disposition { .page(file) }
}
