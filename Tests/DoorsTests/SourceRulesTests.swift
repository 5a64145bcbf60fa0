// SourceRulesTests: no door loads what its operator has not allowed.

import Core
import Testing

@testable import Doors

@Suite struct SourceRulesTests {
  /// Returns what each door makes of a source, written as it is and percent-encoded.
  private func urls(_ source: String, change: (inout DoorOptions) -> Void) -> [String] {
    var options = DoorOptions()
    change(&options)
    let encoded = PercentEncoding.encode(source)
    return Peer.allCases.flatMap { peer -> [String] in
      let door = peer.door(options)
      let addresses: [DoorAddress] = [source, encoded].flatMap { source in
        switch peer {
        case .imgproxy: [DoorAddress(path: "/_/plain/" + source)]
        case .imaginary: [DoorAddress(path: "/fit", query: "width=9&height=9&url=" + source)]
        case .thumbor, .imagor: [DoorAddress(path: "/unsafe/9x9/" + source)]
        case .cloudflare: [DoorAddress(path: "/cdn-cgi/image/w=9/" + source)]
        case .ipx: [DoorAddress(path: "/w_9/" + source)]
        case .imgix: [DoorAddress(path: "/" + source, query: "w=9")]
        case .weserv: [DoorAddress(path: "/", query: "url=" + source)]
        case .nextjs:
          ["", "%2F"].map {
            DoorAddress(path: "/_next/image", query: "w=640&q=75&url=" + $0 + source)
          }
        }
      }
      return addresses.compactMap { (try? door.translate($0))?["url"] }
    }
  }

  /// Whether an origin would find dot segments in a URL, also after decoding once.
  private func hasDots(_ url: String) -> Bool {
    PercentEncoding.decodeLeniently(url.utf8).split { "/\\".utf8.contains($0) }.contains {
      $0.elementsEqual("..".utf8) || $0.starts(with: "..;".utf8)
    }
  }

  @Test(arguments: [
    "../private/a.jpg", "/../private/a.jpg", "x/../../private/a.jpg", "%2e%2e/private/a.jpg",
    "%FF/%2e%2e/%2e%2e/private/a.jpg", "..%5c..%5cprivate/a.jpg", "..;/private/a.jpg",
    "x/%2E%2E%2Fprivate/a.jpg", "-private/a.jpg", "@evil.example/a.jpg", ".evil.example/a.jpg",
    ":8443/a.jpg", "//evil.example/a.jpg",
  ])
  func `a relative source stays below the base`(source: String) throws {
    for url in urls(source, change: { $0.baseURL = "https://h.example/images" }) {
      guard let parsed = try? SourceURL(parsing: url) else { continue }
      // A door of hosts takes a name before a slash for one, unless there is a base.
      #expect(parsed.text.hasPrefix("https://h.example/images/") && !hasDots(url), "\(url)")
    }
    #expect(!urls("a.jpg", change: { $0.baseURL = "https://h.example/images" }).isEmpty)
  }

  @Test(arguments: [
    "https://img.example.evil.net/a.jpg", "https://img.example:8443/a.jpg",
    "https://img.example@evil.net/a.jpg", "https://e.example/public/%2e%2e/private/a.jpg",
    "https://e.example/public/%FF/%2e%2e/%2e%2e/private/a.jpg",
    "https://e.example/public/../private/a.jpg", "https://e.example/publicly/a.jpg",
    "http://img.example/a.jpg", "local:///a.jpg",
  ])
  func `a source that is not allowed is refused`(source: String) {
    let found = urls(source) {
      $0.allowedSources = ["https://img.example", "https://e.example/public/"]
    }
    let loaded = found.compactMap { try? SourceURL(parsing: $0).text }
    #expect(
      loaded.allSatisfy {
        ($0.hasPrefix("https://img.example/") || $0.hasPrefix("https://e.example/public/"))
          && !hasDots($0)
      }, "\(found)")
    let allowed = urls("https://e.example/public/a.jpg") {
      $0.allowedSources = ["https://e.example/public/"]
    }
    #expect(allowed.count >= Peer.allCases.count)
  }

  @Test(arguments: [
    "/media/../two/a.jpg", "/media/%2e%2e/two/a.jpg", "old.example.evil.net/a.jpg",
    "old.example@evil.net/a.jpg", "old.example:8443/a.jpg",
  ])
  func `what is replaced stays below its replacement`(source: String) {
    let found = urls(source) {
      $0.replacements = [
        .init(pattern: "/media/", text: "https://cdn.example/one/"),
        .init(pattern: "old.example", text: "https://new.example"),
      ]
    }
    for url in found {
      let host = (try? SourceURL(parsing: url))?.host
      #expect(host != "new.example.evil.net" && host != "evil.net", "\(url)")
      if host == "cdn.example" { #expect(url.contains("/one/") && !hasDots(url), "\(url)") }
      if host == "new.example" { #expect(!url.contains(":8443")) }
    }
  }

  @Test(arguments: [
    ("a.png", "https://h/base/a.png"), ("/a%20b.png?c=d:e", "https://h/base/a%20b.png?c=d:e"),
    ("http://other/a.png", "http://other/a.png"), ("https:/other/a.png", "https://other/a.png"),
    ("../a.png", nil), ("%2e%2e/a.png", nil), ("s3://b/a.png", "s3://b/a.png"),
    ("local:///a.png", "local:///a.png"), ("img:a/b.png", "https://img.example/x/a/b.png"),
    ("img:../b.png", nil), ("https://old7.example/a", "https://new.example/7/a"), ("", ""),
    ("https://oldevil.net?.example/a", "https://oldevil.net?.example/a"),
  ])
  func `the same rules make the URLs of images`(given: String, url: String?) throws {
    var settings = SourceSettings()
    settings.baseURL = "https://h/base"
    settings.replacements = [
      "img:": "https://img.example/x/", "https://old*.example": "https://new.example/${1}",
    ]
    #expect((try? SourceRules.ofImages(settings)(given, false)) == url)
    settings.allowed = ["https://img.example/public/", "https://other"]
    let allowed = SourceRules.ofImages(settings)
    #expect((try? allowed("https://img.example/public/a.png", false)) != nil)
    for refused in [
      "https://img.example/private/a.png", "https://other.evil/a", "http://other/a", "s3://b/a.png",
      "local:///a.png", "https://img.example/public/%2e%2e/a.png",
    ] {
      #expect(throws: ImageError.self) { try allowed(refused, true) }
    }
  }

  @Test func `the longest prefix is asked first, and doors that have all addresses do not meet`()
    throws
  {
    var doors: [Peer: DoorSettings] = [.imgproxy: DoorSettings(), .cloudflare: DoorSettings()]
    doors[.cloudflare]?.prefix = "/cf"
    let names = try DoorPlace.places(of: doors, environment: [:]).map(\.door.name)
    #expect(names == ["cloudflare", "imgproxy"])
    doors = [.imgproxy: DoorSettings(), .nextjs: DoorSettings()]
    #expect(
      try DoorPlace.places(of: doors, environment: [:]).map(\.door.name) == ["nextjs", "imgproxy"])
    doors[.thumbor] = DoorSettings()
    #expect(throws: ConfigurationError.self) {
      try DoorPlace.places(of: doors, environment: [:])
    }
  }
}
