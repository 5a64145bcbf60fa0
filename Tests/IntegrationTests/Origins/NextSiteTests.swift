// NextSiteTests: the recipe of docs/moving.md: one rule of nginx in front of a site of Next.js.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class NextSiteTests: OriginSuite {
  @Test func `one proxy rule replaces the optimizer of a site`() async throws {
    origin.serve("/hero.jpg", bytes: try TestImages.jpeg(width: 1_600, height: 800))
    origin.serve("/about", bytes: Array("<img src=/_next/image?url=%2Fhero.jpg&w=640&q=75>".utf8))
    let pictor = try PictorProcess(
      in: folder, ["--doors", "{ nextjs: { base_url: \"http://127.0.0.1:\(origin.port)\" } }"])
    let nginx = try await Nginx(
      passing: ["/": origin.port, "/_next/image": pictor.port])
    /// Asks as a browser does.
    func get(_ path: String, accept: String) throws -> (head: String, body: [UInt8]) {
      let (head, body) = (folder.path + "/head", folder.path + "/body")
      try ChildProcess.run(
        "curl", "-sS", "--cacert", nginx.certificate, "-H", "Accept: " + accept, "-D", head, "-o",
        body, nginx.url(path))
      return (
        String(decoding: try folder.read("head"), as: UTF8.self).lowercased(),
        try folder.read("body")
      )
    }
    let page = try get("/about", accept: "text/html")
    #expect(page.body.starts(with: Array("<img".utf8)))
    let target = "/_next/image?url=%2Fhero.jpg&w=640&q=75"
    for (accept, type, cache) in [
      ("image/webp,*/*", "image/webp", "miss"), ("image/webp,*/*", "image/webp", "hit"),
      ("image/webp,*/*", "image/webp", "hit"), ("image/*", "image/jpeg", "miss"),
    ] {
      let (head, body) = try get(target, accept: accept)
      #expect(head.contains("content-type: \(type)\r\n"), "\(head)")
      #expect(head.contains("x-nextjs-cache: \(cache)\r\n"), "\(head)")
      #expect(head.contains("vary: accept\r\n"))
      #expect(try Pixels(decoding: body).size == PixelSize(width: 640, height: 320))
    }
    let refused = try get("/_next/image?url=%2Fhero.jpg&w=641&q=75", accept: "*/*")
    #expect(refused.head.hasPrefix("http/2 400"))
    #expect(
      String(decoding: refused.body, as: UTF8.self)
        == "\"w\" parameter (width) of 641 is not allowed")
    // Our own address does not have the peer's field, though both share the variant.
    let own = try pictor.get(
      "/image?url=http://127.0.0.1:\(origin.port)/hero.jpg&w=640&q_jpeg=75&q_webp=75&q_avif=55"
        + "&scale=1&pass=animated")
    #expect(own["x-nextjs-cache"] == nil && own["cache-status"]?.contains("hit") == true)
  }
}
