// SecretsTests: marked secrets are placed in every input of clients, operators and origins, and
// searched for in every output.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class SecretsTests: OriginSuite {
  /// Marks by their place. They consist of letters and digits, so no encoding hides them.
  private enum Mark {
    static let user = "usr4mark"
    static let query = "qry4mark"
    static let header = "hdr4mark"
    static let operators = "opr4mark"
    static let all = [user, query, header, operators]
  }

  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 40, height: 30))
    origin.route(
      "/text", to: .ok(Array("no image".utf8), headers: ["Set-Cookie: s=\(Mark.header)"]))
    origin.route("/broken", to: .status(503, headers: ["WWW-Authenticate: Basic \(Mark.header)"]))
    origin.route("/cut", to: .truncated([1, 2, 3], declaring: 9))
    origin.route("/reset", to: .resetBeforeHead)
    for (number, location) in [
      "http://me:\(Mark.user)@127.0.0.1/", "http://me:\(Mark.user)/x@127.0.0.1/",
      "ftp://me:\(Mark.user)@h/", "//me:\(Mark.user)@h/a", "http://127.0.0.1:1/?sig=\(Mark.query)",
      "http://10.1.1.1/?X-Amz-Signature=\(Mark.query)", "\\\\me:\(Mark.user)@h/a",
      "http://h:bad/?token=\(Mark.query)",
    ].enumerated() {
      origin.route("/to/\(number)", to: .redirect(to: location))
    }
  }

  /// URLs that contain secrets, valid and invalid.
  private var urls: [String] {
    let base = "127.0.0.1:\(origin.port)"
    let paths = ["/a.jpg", "/absent", "/text", "/broken", "/cut", "/reset"]
    let names = ["sig", "X-Amz-Signature", "access_token", "key", "PASSWORD", "X-Goog-Credential"]
    let withQuery = paths.flatMap { path in
      names.map { "http://\(base)\(path)?\($0)=\(Mark.query)&w=1" }
    }
    let withUser = [
      "http://me:\(Mark.user)@\(base)/a.jpg", "http://\(Mark.user)@\(base)/a.jpg",
      "https://me:\(Mark.user)@\(base)/a.jpg", "http://me:\(Mark.user)/x@\(base)/a.jpg",
      "http://me:\(Mark.user)?x@\(base)/a.jpg", "http://me:\(Mark.user)%40x@\(base)/a.jpg",
      "ftp://me:\(Mark.user)@h/a.jpg", "me:\(Mark.user)@\(base)/a.jpg",
      "//me:\(Mark.user)@\(base)/",
      "http:\\\\me:\(Mark.user)@\(base)/a", "http:/me:\(Mark.user)@\(base)/a.jpg",
      "http://me:\(Mark.user) x@\(base)/a.jpg", "http://me:\(Mark.user)\n@\(base)/a.jpg",
      "http://me:" + String(repeating: Mark.user, count: 40) + "@\(base)/a.jpg",
      "http://me:" + String(repeating: Mark.user, count: 1_100) + "@\(base)/a.jpg",
      "http://\(base)/absent?u=http://me:\(Mark.user)@h/&w=1",
    ]
    return withQuery + withUser + (0..<8).map { "http://\(base)/to/\($0)" }
  }

  /// Targets that contain `url`, valid and invalid.
  private func targets(_ url: String) -> [String] {
    let once = encoded(url)
    let twice = encoded(encoded(url))
    let plain = url.utf8.allSatisfy { $0 > 0x20 } ? ["/image?url=\(url)"] : []
    return plain + [
      "/image?url=\(once)", "/image?url=\(once)&w=0", "/info?url=\(once)&w=10",
      "/image?url=\(twice)", "/image?w=10&url=\(once)&retry=1", "/image?\(once)=1",
      "/image?url=http%3A%2F%2Fh%2F&watermark=\(once)", "/\(once)", "/image?url=\(once)%zz",
      "/image?w=\(once)", "/image?url=\(once)&url=\(once)", "/admin/failed?url=\(once)",
      "/admin/cache?url=\(once)", "/admin/cache?prefix=\(once)",
    ]
  }

  private let headers: KeyValuePairs<String, String> = [
    "Authorization": "Bearer \(Mark.header)", "Cookie": "session=\(Mark.header)",
    "Proxy-Authorization": "Basic \(Mark.header)", "X-Api-Key": Mark.header,
    "Accept": Mark.header, "Referer": "http://h/\(Mark.header)", "Priority": Mark.header,
  ]

  @Test(arguments: ["json", "text"])
  func `secrets appear only where they are needed`(format: String) throws {
    let port = "'http:\(origin.port)'"
    let hosts = """
      [{ host: 'localhost', token: 'env:ORIGIN_TOKEN', tags: ['x'], credentials_to: [\(port)] },
       { host: '127.0.0.1', user: 'me', password: 'env:ORIGIN_PASSWORD', credentials_to: [\(port)] },
       { host: 'proxied.example', proxy: 'env:PROXY' }]
      """
    let pictor = try PictorProcess(
      in: folder,
      ["--log.level", "debug"] + (format == "json" ? [] : ["--log.requests", "all"])
        + ["--admin.tokens", Mark.operators + "-of-the-admin", "--download.timeout", "2s"]
        // Clients send wrong tokens until their address is refused. Operators have another.
        + ["--server.trusted_proxies", "127.0.0.0/8"],
      environment: [
        "PICTOR_HOSTS": hosts, "ORIGIN_TOKEN": Mark.operators, "ORIGIN_PASSWORD": Mark.operators,
        "PROXY": "http://me:\(Mark.operators)@127.0.0.1:1",
      ])
    var told: [(place: String, text: String)] = []
    var requests = 0
    var failures = 0
    func ask(_ method: String, target: String, headers: KeyValuePairs<String, String>) throws {
      // One connection each, because a target that is too long ends its connection.
      let answer = try pictor.connect().request(method, target: target, headers: headers)
      requests += 1
      guard answer.status >= 400 else { return }
      failures += 1
      told.append(("\(method) \(target)", answer.text))
    }
    // When clients send all targets, in complete and broken requests
    for url in urls + ["http://proxied.example/a.jpg", "http://localhost:\(origin.port)/absent"] {
      for target in targets(url) { try ask("GET", target: target, headers: headers) }
      let broken = ["\r\nHost: h\r\n", "\r\nX : y\r\n", "\nHost: h\r\n"]
      for (url, broken) in broken.flatMap({ [(encoded(url), $0), (url, $0)] }) {
        let client = try pictor.connect()
        try client.send(
          "GET /image?url=\(url) HTTP/1.1\r\nHost: h\r\nCookie: \(Mark.header)" + broken
            + "\r\n")
        told.append(("broken \(url)", (try? client.readAnswer().text) ?? ""))
      }
    }
    try ask("GET", target: "/admin/failed?token=\(Mark.query)", headers: headers)
    try ask("POST", target: "/admin/cache/clear", headers: headers)
    try ask("GET", target: "/metrics", headers: headers)
    // When operators send them
    let operators: KeyValuePairs = [
      "Authorization": "Bearer \(Mark.operators)-of-the-admin", "X-Forwarded-For": "198.51.100.9",
    ]
    for url in urls {
      for path in ["failed?url", "cache?url", "cache?prefix", "cache?host", "cache?tier"] {
        try ask("DELETE", target: "/admin/\(path)=\(encoded(url))", headers: operators)
      }
    }
    let list = urls.filter { !$0.contains("\n") }.joined(separator: "\n")
    let prefetch = try pictor.connect().request(
      "POST", target: "/admin/prefetch", headers: operators, body: Array(list.utf8))
    #expect(prefetch.status == 202)
    var lists = ""
    for _ in 0..<400 where !lists.contains("\"finished\"") && !lists.contains("\"done\"") {
      lists = try pictor.connect().get("/admin/prefetch", headers: operators).text
      usleep(50_000)
      if !lists.contains("\"running\"") { break }
    }
    for path in ["/admin/failed", "/admin/downloads", "/admin/prefetch"] {
      lists += try pictor.connect().get(path, headers: operators).text
    }
    told.append(("/stats", try pictor.get("/stats").text))
    // Then
    for (place, text) in told {
      for mark in Mark.all { #expect(!text.contains(mark), "\(mark) at \(place.prefix(200))") }
    }
    // Operators' lists contain complete sources, because they are purged and retried by URL.
    for mark in [Mark.user, Mark.header, Mark.operators] {
      #expect(!lists.contains(mark), "\(mark) in lists")
    }
    #expect(try pictor.end() == 0)
    for line in pictor.log.split(separator: "\n") {
      for mark in Mark.all { #expect(!line.contains(mark), "\(mark) in \(line.prefix(1_000))") }
    }
    // The search covered every output.
    #expect(requests > 1_000 && failures > 500 && lists.contains("127.0.0.1:\(origin.port)"))
    #expect(pictor.log.components(of: "***") > 200)
  }
}

extension String {
  fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
