// DoorFuzzTests: addresses of all peers, of their own options and of any bytes.

import TestSupport
import Testing

@testable import Core
@testable import Doors
@testable import Serving

@Suite(.onOwnThreads) struct DoorFuzzTests {
  /// Whole addresses of each peer, which are taken apart and damaged.
  private static let seeds: [Peer: [String]] = [
    .nextjs: [
      "/_next/image?url=%2Fa.jpg%3Fv%3D2&w=640&q=75", "/_vercel/image?url=/a.jpg&w=16&q=75",
      "/.netlify/images?url=/a.jpg&w=50&h=40&fit=cover&position=left&fm=webp&q=80",
      "/_next/image?url=https%3A%2F%2Fbase.example%2Fb.jpg&w=3840&q=75",
    ],
    .imgproxy: [
      "/_/rs:fill:300:200/g:fp:0.1:0.9/wm:0.5:soea:10:10:0.2/plain/https://h/a.jpg@webp",
      "/_/pd:1:2:3:4/trim:10:ff00ff/aHR0cHM6Ly9oL2EuanBn.png", "/_/p/plain/local:///a.jpg",
      "/_/rs:fit:300:0:0:1:so:0:5/c:0.5:0:soea:10:0.25/pix:8/exar:1:no::5/plain/local:///a.jpg",
      "/_/mrd-400/dpr-2/fn-cMOkcA-1/skp-gif-png/plain/https://base.example/logo%403x.png",
    ],
    .thumbor: [
      "/unsafe/trim:bottom-right:9/1x2:3x4/fit-in/-300x200/left/top/smart/filters:blur(3):rotate(90)/h/a.jpg",
      "/unsafe/meta/300x0/https%3A%2F%2Fh%2Fa.jpg",
      "/unsafe/300x100/filters:focal(0x0:20x20):fill(auto,1):proportion(.5)/a.jpg",
      "/unsafe/origx100/filters:watermark(w.png,10p,-20p,30,15.5):round_corner(20|40,0,0,0,1)/a.jpg",
    ],
    .imagor: [
      "/unsafe/fit-in/300x200/1:2/3:4/filters:fill(auto):round_corner(9)/b64:aGVsbG8",
      "/unsafe/0.1x0.2:1.0x1.0/-100x30/10x20:15x3/filters:focal(0.3x0.5):expire(9):page(3)/a.jpg",
      "/unsafe/filters:watermark(b64:dy5wbmc,left,bottom,30):attachment(a%20b):hue(290):trim(9)/a",
    ],
    .cloudflare: [
      "/cdn-cgi/image/width=80,fit=crop,gravity=0.5x0.2,onerror=redirect/https://h/a",
      "/cdn-cgi/image/fit=pad,w=500,h=400,background=rgb(1,2,3),trim=1;0;0;2/a.jpg?v=1",
      "/cdn-cgi/image/background=hsla(120deg%20100%25%2050%25),f=webp,flip=h,rotate=90,dpr=1.5/a",
      "/cdn-cgi/imagedelivery/acc/dir/id/w=128,sharpen=1", "/cdn-cgi/imagedelivery/acc/id/p",
    ],
    .weserv: [
      "/?url=h/a.jpg&w=300&h=300&fit=cover&a=focal-0.1-0.2&mask=circle&output=webp",
      "/?url=ssl:b.example/a.jpg&crop=1,2,3,4&precrop&trim=10&ro=45&rbg=red&mask=ellipse&dpr=2",
      "/images?url=https://b.example/a&con=25&mod=2,0.5,90&sharp=3&tint=5CCC&maxage=31d&n=-1&page=2",
    ],
    .ipx: [
      "/w_200,h_100,fit_cover,pos_top,extract_1_2_3_4/https://h/a.jpg", "/_ipx/_/a.jpg",
      "/_ipx/extend_1_2_3_4&rotate_45&trim_10&crop_1_2_3_4&modulate_2_1_90/dir/a.jpg",
      "/w_9,s_200x100,b_00ff00,sharpen_2_1_2,gamma_2,tint_red,flip,f_webp/https:/h/b.jpg",
    ],
    .imgix: [
      "/a.jpg?w=300&h=200&fit=crop&crop=focalpoint&fp-x=0.1&mark64=aHR0cHM6Ly9oL2E&s=0",
      "/http%3A%2F%2Fh%2Fa.png?fit=crop&h=9&max-w=8&min-w=3&rect=center,0.1,full,5&rot=90&orient=5",
      "/a.jpg?pad=9&pad-top=3&w=99&mask=corners&corner-radius=9&trim=color&trim-tol=9&blur=50&usm=9",
      "/a.jpg?auto=compress,format&fm=jpg&dl=a.png&expires=15&mark=/l.png&mark-w=0.2&bg=80FF6600",
    ],
    .imaginary: [
      "/pipeline?operations=[{\"operation\":\"fit\",\"params\":{\"width\":9,\"height\":\"9\"}}]&key=k",
      "/resize?width=300&height=200&url=https://h/a.jpg", "/extract?top=1&areawidth=3&areaheight=4",
      "/convert?type=webp&quality=70&background=1,2,3",
    ],
  ]

  private static let words = [
    "/", "//", "?", "&", "=", ",", ":", ";", "(", ")", "_", "-", "*", "@", "#", "+", "%", "%00",
    "%2F", "%zz", "%25", "..", ".", "-1", "0", "1e999", "nan", "inf", "0x10", "1.5", "99999999999",
    "http://", "https:/", "local:///", "s3://b/", "b64:", "url=", "plain", "filters:", "\"", "\\",
    "[", "{", "}", "]", "é", "ﬀ", "\u{0}", "true", "ff00ff", "h/a.jpg",
  ]

  /// Doors that are open, strict, and for presets alone.
  private static func doors(_ peer: Peer) -> [any Door] {
    let changes: [(inout DoorOptions) -> Void] = [
      { _ in },
      { options in
        options.allowedSources = ["https://base.example/", "*://*.*/*a*"]
        (options.allowsLimits, options.separator) = (true, "-")
        options.secrets = [Array("k".utf8)]
      },
      { ($0.presetsOnly, $0.baseURL) = (true, "") },
    ]
    return changes.map { change in
      var options = DoorOptions()
      options.baseURL = "https://base.example"
      options.replacements = [.init(pattern: "img:", text: "https://img.example/")]
      options.presets = ["p": peer == .imgproxy ? "width:9" : "w=9"]
      change(&options)
      return peer.door(options)
    }
  }

  /// Checks what a door asks for, or its refusal.
  private static func check(
    _ reading: Result<DoorTranslation, DoorAnswer>, of door: any Door, peer: Peer
  ) throws(Fault) {
    switch reading {
    case .success(let translation):
      try hold(translation.parameters.allSatisfy(\.isRead), translation.query)
      try hold(translation["url"] != nil || door.takesBodies, "no source is named")
      try hold(translation["scale"] != nil || translation["pass"] == "all", "the density counts")
      try hold(
        translation.parameters.allSatisfy { !$0.value.isEmpty || $0.name == "filename" },
        "an empty value: \(translation.query)")
      try hold(peer != .imgproxy || !translation.query.contains("%00"), translation.query)
    case .failure(let answer):
      try hold(!answer.reason.isEmpty, "a refusal without a reason")
      // thumbor's have no body, and its health check is none.
      let isThumbor = [.thumbor, .imagor].contains(peer)
      try hold((isThumbor ? 200 : 400)...599 ~= answer.status, "the status \(answer.status)")
      try hold(isThumbor || !answer.body.isEmpty, "a refusal without a body")
    }
  }

  @Test(arguments: seeds)
  func `a door serves what is damaged here`(peer: Peer, seeds: [String]) {
    for seed in seeds {
      let parts = seed.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1).map(Array.init)
      let isServed = Self.doors(peer).contains { door in
        let address = DoorPlace(door).address(path: parts[0], query: parts.dropFirst().first ?? [])
        return address.map { (try? door.translate($0)) != nil } ?? false
      }
      #expect(isServed, "\(seed)")
    }
  }

  @Test(arguments: Peer.allCases)
  func `no address stops a door, and what it asks for can be read`(peer: Peer) throws {
    let seeds = Self.seeds[peer] ?? []
    let names = peer.rows.flatMap(\.names)
    let words = (Self.words + names).map { Array($0.utf8) }
    var configuration = ServerConfiguration()
    configuration.sources.bodies = .all
    let rules = RequestRules(configuration)
    let places = Self.doors(peer).map { door in
      let place = DoorPlace(door)
      return (place, EndpointTable.everyone.with([place]))
    }
    try Fuzz.run(
      "door-\(peer.rawValue)", usual: 3_000,
      make: { generator in
        var bytes = Array((seeds.randomElement(using: &generator) ?? "/").utf8)
        if generator.isOne(of: 3) {
          bytes += Array(generator.sentence(of: names + Self.words, most: 8).utf8)
        }
        Damage.apply(to: &bytes, words: words, using: &generator)
        return bytes
      },
      check: { bytes in
        // Most often the open one.
        let (place, endpoints) = places[max(bytes.count % 5 - 2, 0)]
        let target = RequestTarget(raw: bytes, rules: rules, endpoints: endpoints)
        let parts = bytes.split(
          separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        let query = parts.count > 1 ? parts[1] : []
        guard target.door != nil, let address = place.address(path: parts[0], query: query)
        else { return }
        let readings = (0..<2).map { _ in
          Result { () throws(DoorAnswer) in try place.door.translate(address) }
        }
        try hold(readings[0] == readings[1], "two readings differ")
        try Self.check(readings[0], of: place.door, peer: peer)
        switch target.request {
        case .success(let request):
          try hold(CacheKey(text: request.key.text) == request.key, "the key is not canonical")
          try hold(request.source.scheme != .body || place.door.takesBodies, "a body for another")
        case .failure(.refusedAtDoor(let answer)):
          try hold(readings[0] == .failure(answer), "another refusal")
        // What only `/image` knows: URLs that are none, and values that do not fit each other.
        case .failure(let error):
          let known = ["invalid_url", "invalid_parameter", "missing_parameter", "forbidden_source"]
          try hold(known.contains(error.code), error.message)
        case nil: throw Fault(description: "an address without a request")
        }
      })
  }
}
