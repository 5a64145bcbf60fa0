// CrossOriginTests: tests of CORS fields on hits, misses, errors and preflights.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct CrossOriginTests {
  private static let several = ["https://a.example", "https://longer.b.example:8443"]

  /// A provider with one image in memory.
  private func provider() throws -> TestProvider {
    let provider = TestProvider { request throws(ImageError) in
      guard !request.source.text.contains("missing") else {
        throw .sourceNotFound(status: 404)
      }
      return makeDelivery(makeVariant(request.key))
    }
    provider.keep(makeVariant(try makeRequest().key))
    return provider
  }

  /// A hit, a miss, an error of each kind, statistics, and an unknown path.
  private static let targets = [
    imageTarget, "/image?url=https://example.org/miss", "/image?url=https://example.org/missing",
    "/image?url=ftp://h/a", "/image", "/stats", "/nowhere", "/admin/failed",
  ]

  @Test(
    arguments: [
      ([], nil, ["*"]), (["10.0.0.0/8"], nil, []), (["10.0.0.0/8"], ["*"], ["*"]),
      ([], [], []), (["10.0.0.0/8"], ["https://a.example"], ["https://a.example"]),
    ] as [([String], [String]?, [String])])
  func `beside allowed networks no page may read responses, unless origins are configured`(
    networks: [String], configured: [String]?, origins: [String]
  ) {
    var server = ServerSettings()
    server.corsOrigins = configured
    var download = DownloadSettings()
    download.allowNetworks = networks
    #expect(ServerConfiguration(server, download: download).corsOrigins == origins)
  }

  @Test(arguments: ["*", "https://a.example"])
  func `a single allowed origin is sent with every response`(origin: String) async throws {
    try await withClient(try provider(), configure: { $0.corsOrigins = [origin] }) { client in
      for target in Self.targets {
        let answer = try client.get(target, headers: ["Origin": "https://other.example"])
        #expect(answer["Access-Control-Allow-Origin"] == origin, "\(target)")
        #expect(answer["Timing-Allow-Origin"] == origin, "\(target)")
        #expect(answer["Cross-Origin-Resource-Policy"] == "cross-origin", "\(target)")
        let exposed = answer["Access-Control-Expose-Headers"] ?? ""
        for name in [
          "ETag", "Cache-Status", "Server-Timing", "X-Frames-Dropped", "X-Request-ID",
          "X-Scaled-Down",
        ] {
          #expect(exposed.contains(name), "\(target)")
        }
        #expect(answer["Vary"]?.contains("Origin") != true, "\(target)")
      }
    }
  }

  @Test func `with several allowed origins, each page receives only its own`() async throws {
    let pages: [(sent: String?, told: String?)] = [
      (Self.several[0], Self.several[0]), (Self.several[1], Self.several[1]), (nil, nil),
      ("https://a.example.evil", nil), ("https://A.example", nil), ("null", nil),
      ("https://a.example, https://evil", nil), (Self.several[1], Self.several[1]),
    ]
    try await withClient(try provider(), configure: { $0.corsOrigins = Self.several }) { client in
      for target in Self.targets {
        for (sent, told) in pages {
          let field = sent.map { "Origin: \($0)\r\n" } ?? ""
          try client.send("GET \(target) HTTP/1.1\r\nHost: t\r\n\(field)\r\n")
          let answer = try client.readAnswer()
          #expect(answer["Access-Control-Allow-Origin"] == told, "\(target) \(sent ?? "-")")
          #expect(answer["Vary"]?.contains("Origin") == true, "\(target)")
          #expect(answer["Timing-Allow-Origin"] == Self.several.joined(separator: ", "))
        }
      }
    }
  }

  @Test func `without allowed origins no CORS header is sent`() async throws {
    try await withClient(try provider(), configure: { $0.corsOrigins = [] }) { client in
      for method in ["GET", "OPTIONS"] {
        for target in Self.targets {
          let answer = try client.request(
            method, target: target, headers: ["Origin": "https://a.example"])
          let names = answer.headers.map { $0.name.lowercased() }
          #expect(!names.contains { $0.hasPrefix("access-control-") || $0.hasPrefix("timing-") })
          #expect(!names.contains("cross-origin-resource-policy"))
        }
      }
    }
  }

  @Test(arguments: [
    ("/image?url=https://h/a", "GET, HEAD, OPTIONS"), ("/image", "GET, HEAD, OPTIONS"),
    ("/info", "GET, HEAD, OPTIONS"), ("/stats", "GET, HEAD, OPTIONS"),
    ("/nowhere", "GET, HEAD, OPTIONS"), ("*", "GET, HEAD, OPTIONS"),
    ("/admin/cache", "GET, HEAD, PUT, DELETE, OPTIONS"), ("/admin/pause", "POST, OPTIONS"),
  ])
  func `a preflight of any path is answered 204 with the allowed methods and headers`(
    target: String, methods: String
  ) async throws {
    try await withClient(
      try provider(), configure: { $0.operatorTokens = ["0123456789abcdef"] }
    ) { client in
      for _ in 0..<2 {
        let answer = try client.request(
          "OPTIONS", target: target,
          headers: [
            "Origin": "https://a.example", "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "x-operation-key",
          ])
        #expect(answer.status == 204 && answer["Content-Length"] == nil)
        #expect(answer["Allow"] == methods)
        #expect(answer["Access-Control-Allow-Methods"] == methods)
        #expect(answer["Access-Control-Allow-Origin"] == "*")
        #expect(answer["Access-Control-Max-Age"] == "7200")
        let fields = answer["Access-Control-Allow-Headers"] ?? ""
        #expect(fields.contains("X-Operation-Key") && fields.contains("Priority"))
        #expect(fields.contains("Authorization") == target.hasPrefix("/admin"))
      }
    }
  }

  @Test func `a preflight allows the headers that a host rule forwards`() async throws {
    let rule = HostRule(
      host: try #require(HostPattern("example.org")),
      forwardedHeaders: ["Authorization", "priority"])
    try await withClient(
      try provider(), configure: { $0.keyFilter = CacheKeyFilter(rules: [rule]) }
    ) { client in
      let fields = try client.request("OPTIONS", target: imageTarget)[
        "Access-Control-Allow-Headers"]
      #expect(fields?.hasSuffix(", Authorization") == true)
      let others = try client.request("OPTIONS", target: "/image?url=https://h/a")
      #expect(others["Access-Control-Allow-Headers"]?.contains("Authorization") == false)
    }
  }
}
