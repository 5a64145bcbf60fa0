// ExplainEndpointTests: tests of `GET /admin/explain`.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ExplainEndpointTests {
  private let services = TestServices()

  private func explain(
    _ query: String, status: Int = 200,
    fields: KeyValuePairs<String, String> = operatorHeader,
    configure: @escaping (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> String {
    var text = ""
    try await withOperators(services, configure: configure) { client, _ in
      let answer = try client.get("/admin/explain?" + query, headers: fields)
      #expect(answer.status == status, "\(answer.text)")
      text = answer.text
    }
    return text
  }

  @Test func `the query is understood as /image would, with its preset and its rule`() async throws
  {
    let other = try #require(HostPattern("other"))
    let own = try #require(HostPattern("h"))
    let text = try await explain("url=https%3A%2F%2Fh%2Fa.jpg&preset=card&h=40") {
      $0.presets = ["card": "w=300&fit=cover"]
      $0.keyFilter = CacheKeyFilter(rules: [
        HostRule(host: other), HostRule(host: own, tags: ["shop"]),
      ])
    }
    for part in [
      #""number" : 2"#, #""hosts" : "h""#, #""w" : "300""#, #""h" : "40""#, #""fit" : "cover""#,
      #""allowed" : true"#, #""memory" : null"#, #""would""#,
    ] {
      #expect(text.contains(part), "\(part) in \(text)")
    }
    let request = try #require(services.explained.withLock { $0.last })
    #expect(request.transform.width == 300)
    #expect(request.transform.height == 40)
  }

  @Test func `the format is negotiated for the request's Accept, or for the parameter`()
    async throws
  {
    let bearer = "Bearer " + operatorToken
    _ = try await explain(
      "url=https%3A%2F%2Fh%2Fa.jpg", fields: ["Authorization": bearer, "Accept": "image/webp"])
    _ = try await explain(
      "url=https%3A%2F%2Fh%2Fa.jpg&accept=image%2Favif%2Cimage%2Fwebp",
      fields: ["Authorization": bearer, "Accept": "image/webp"])
    let explained = services.explained.withLock { $0.map(\.transform.output.accepted) }
    #expect(explained == [[.webp], [.avif, .webp]])
  }

  @Test func `Cache-Control counts as it does for an image`() async throws {
    _ = try await explain(
      "url=https%3A%2F%2Fh%2Fa.jpg",
      fields: ["Authorization": "Bearer " + operatorToken, "Cache-Control": "only-if-cached"])
    #expect(services.explained.withLock { $0.last }?.options.cache == .only)
  }

  @Test func `client hints count as they do for an image`() async throws {
    let query = "url=https%3A%2F%2Fh%2Fa.jpg&w=auto&dpr=auto&format=webp"
    let fields: KeyValuePairs = [
      "Authorization": "Bearer " + operatorToken, "Sec-CH-DPR": "2", "Sec-CH-Width": "600",
      "Save-Data": "on",
    ]
    let varied = try await explain(query, fields: fields) { $0.imaging.saveDataReduction = 20 }
    #expect(varied.contains(#""redirects" : false"#))
    let redirected = try await explain(query, fields: fields) {
      $0.imaging.saveDataReduction = 20
      $0.redirectsAuto = true
    }
    #expect(redirected.contains(#""redirects" : true"#))
    let explained = services.explained.withLock { $0.map(\.transform.canonicalText) }
    #expect(
      explained == [
        "scale=2&w=320&format=webp&q_webp=59", "scale=2&w=320&format=webp",
      ])
  }

  @Test func `errors are those of /image, and what clients may not is told`() async throws {
    let missing = try await explain("w=10", status: 400)
    #expect(missing.contains("missing_parameter"))
    _ = try await explain("url=https%3A%2F%2Fh%2Fa.jpg&w=0", status: 400)
    _ = try await explain("url=https%3A%2F%2Fh%2Fa.jpg&accept=a&accept=b", status: 400)
    #expect(services.explained.withLock { $0.isEmpty })
    let refused = try await explain("url=https%3A%2F%2Fh%2Fa.jpg&w=10") { $0.presetsOnly = true }
    #expect(refused.contains(#""allowed" : false"#))
    #expect(refused.contains("forbidden_parameter"))
  }
}
