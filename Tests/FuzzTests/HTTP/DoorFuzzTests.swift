// DoorFuzzTests: addresses of all peers, of their own options and of any bytes.

import TestSupport
import Testing

@testable import Core
@testable import Doors
@testable import Serving

@Suite(.onOwnThreads) struct DoorFuzzTests {
  /// Whole addresses of each peer, which are taken apart and damaged.
  private static let seeds: [Peer: [String]] = [
    .nextjs: ["/_next/image?url=%2Fa.jpg&w=640&q=75", "/.netlify/images?url=/a.jpg&fit=cover&w=9"],
    .imgproxy: [
      "/_/rs:fill:300:200/g:fp:0.1:0.9/wm:0.5:soea:10:10:0.2/plain/https://h/a.jpg@webp",
      "/_/pd:1:2:3:4/trim:10:ff00ff/aHR0cHM6Ly9oL2EuanBn.png",
    ],
    .thumbor: [
      "/unsafe/trim:bottom-right:9/1x2:3x4/fit-in/-300x200/left/top/smart/filters:blur(3):rgb(1,2,3)/h/a.jpg",
      "/unsafe/meta/300x0/https%3A%2F%2Fh%2Fa.jpg",
    ],
    .imagor: ["/unsafe/fit-in/300x200/1:2/3:4/filters:fill(auto):round_corner(9)/b64:aGVsbG8"],
    .cloudflare: ["/cdn-cgi/image/width=80,fit=crop,gravity=0.5x0.2,onerror=redirect/https://h/a"],
    .weserv: ["/?url=h/a.jpg&w=300&h=200&fit=cover&a=focal-0.1-0.2&mask=circle&output=webp"],
    .ipx: ["/w_200,h_100,fit_cover,pos_top,extract_1_2_3_4/https://h/a.jpg", "/_ipx/_/a.jpg"],
    .imgix: ["/a.jpg?w=300&h=200&fit=crop&crop=focalpoint&fp-x=0.1&mark64=aHR0cHM6Ly9oL2E&s=0"],
    .imaginary: [
      "/pipeline?operations=[{\"operation\":\"fit\",\"params\":{\"width\":9,\"height\":\"9\"}}]&key=k",
      "/resize?width=300&height=200&url=https://h/a.jpg", "/extract?top=1&areawidth=3&areaheight=4",
    ],
  ]

  private static let words = [
    "/", "//", "?", "&", "=", ",", ":", ";", "(", ")", "_", "-", "*", "@", "#", "+", "%", "%00",
    "%2F", "%zz", "%25", "..", ".", "-1", "0", "1e999", "nan", "inf", "0x10", "1.5", "99999999999",
    "http://", "https:/", "local:///", "s3://b/", "b64:", "url=", "plain", "filters:", "\"", "\\",
    "[", "{", "}", "]", "é", "ﬀ", "\u{0}", "true", "ff00ff", "h/a.jpg",
  ]

  private static func door(_ peer: Peer) -> any Door {
    var options = DoorOptions()
    options.baseURL = "https://base.example"
    options.replacements = [.init(pattern: "img:", text: "https://img.example/")]
    options.presets = ["p": "width:9"]
    return peer.door(options)
  }

  @Test(arguments: Peer.allCases)
  func `no address stops a door, and what it asks for can be read`(peer: Peer) throws {
    let seeds = Self.seeds[peer] ?? []
    let names = peer.rows.flatMap(\.names)
    let words = (Self.words + names).map { Array($0.utf8) }
    let door = Self.door(peer)
    var configuration = ServerConfiguration()
    configuration.sources.bodies = .all
    let rules = RequestRules(configuration)
    let endpoints = EndpointTable.everyone.with([DoorPlace(door)])
    try Fuzz.run(
      "door-\(peer.rawValue)", usual: 1_500,
      make: { generator in
        var bytes = Array((seeds.randomElement(using: &generator) ?? "/").utf8)
        if generator.isOne(of: 3) {
          bytes += Array(generator.sentence(of: names + Self.words, most: 8).utf8)
        }
        Damage.apply(to: &bytes, words: words, using: &generator)
        return bytes
      },
      check: { bytes in
        let targets = (0..<2).map { _ in
          RequestTarget(raw: bytes, rules: rules, endpoints: endpoints)
        }
        guard targets[0].door != nil else { return }
        try hold(
          targets[0].key == targets[1].key && targets[0].path == targets[1].path,
          "two readings differ")
        switch targets[0].request {
        case .success(let request):
          try hold(CacheKey(text: request.key.text) == request.key, "the key is not canonical")
          try hold(
            request.source.scheme != .body || door.takesBodies, "a source that nobody named")
        case .failure(.refusedAtDoor(let answer)):
          // thumbor's have no body, and its health check is none.
          try hold(
            200...599 ~= answer.status && !answer.reason.isEmpty, "a refusal without a reason")
        // What only `/image` knows: URLs that are none, and values that do not fit each other.
        case .failure(let error):
          let known = ["invalid_url", "invalid_parameter", "missing_parameter", "forbidden_source"]
          try hold(known.contains(error.code), error.message)
        case nil: throw Fault(description: "an address without a request")
        }
      })
  }
}
