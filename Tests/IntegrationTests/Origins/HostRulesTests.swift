// Host rules: one download for two URLs, variants by client header, credentials for their host.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class HostRulesTests: OriginSuite {
  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 40, height: 30))
  }

  @Test func `each value of a forwarded header has its own variant, also on disk`() throws {
    let red = try TestImages.jpeg(width: 40, height: 30)
    let blue = try TestImages.jpeg(width: 20, height: 10)
    origin.route("/b.jpg") { request in
      let image = request.headers["authorization"] == "Bearer red" ? red : blue
      return .ok(image, headers: ["Cache-Control: public"])
    }
    let options = ["--hosts", "[{ host: '*', forward_headers: ['Authorization'] }]"]
    func answers(_ pictor: PictorProcess) throws -> [HTTPAnswer] {
      let client = try pictor.connect()
      return try ["red", "blue"].map {
        try client.get(origin.target("/b.jpg"), headers: ["Authorization": "Bearer \($0)"])
      } + [client.get(origin.target("/b.jpg"))]
    }
    var pictor = try PictorProcess(in: folder, options)
    let first = try answers(pictor)
    #expect(try Pixels(decoding: first[0].body).size.width == 40)
    #expect(try Pixels(decoding: first[1].body).size.width == 20)
    for answer in first {
      #expect(answer["vary"] == "Authorization, Accept")
      #expect(answer["cache-control"]?.hasPrefix("private, ") == true)
    }
    #expect(origin.requests(to: "/b.jpg") == 3)
    for (answer, earlier) in zip(try answers(pictor), first) {
      #expect(answer["cache-status"] == "pictor; hit; detail=memory")
      #expect(answer.body == earlier.body)
    }
    #expect(try pictor.end() == 0)
    for path in TemporaryFolder.files(below: folder.path) {
      #expect(!contents(of: path).contains("Bearer"), "\(path)")
    }
    pictor = try PictorProcess(in: folder, options)
    for (answer, earlier) in zip(try answers(pictor), first) {
      #expect(answer.body == earlier.body)
    }
    #expect(origin.requests(to: "/b.jpg") == 3)
  }

  @Test func `a response to a forwarded Authorization is stored only if its origin permits it`()
    throws
  {
    // Given (RFC 9111, section 3.5)
    let pictor = try PictorProcess(
      in: folder, ["--hosts", "[{ host: '*', forward_headers: ['Authorization', 'X-Tenant'] }]"])
    let image = try TestImages.jpeg(width: 40, height: 30)
    func ask(_ path: String, _ headers: KeyValuePairs<String, String>) throws -> HTTPAnswer {
      try pictor.connect().get(origin.target(path), headers: headers)
    }
    for (number, (control, isKept)) in [
      ("max-age=600", false), ("max-age=600, public", true), ("s-maxage=600", true),
      ("max-age=600, must-revalidate", true), ("max-age=600, proxy-revalidate", false),
      ("public, private", false), ("immutable, max-age=600", false),
    ].enumerated() {
      let fields = ["Cache-Control: \(control)"]
      origin.serve("/\(number).jpg", bytes: image, headers: fields)
      origin.route("/\(number).none", to: .status(404, headers: fields))
      for (path, status) in [("/\(number).jpg", 200), ("/\(number).none", 404)] {
        // When
        let answers = try (0..<2).map { _ in try ask(path, ["Authorization": "Bearer x"]) }
        // Then
        #expect(answers.allSatisfy { $0.status == status })
        #expect(origin.requests(to: path) == (isKept ? 1 : 2), "\(path) \(control)")
        let told = answers[0]["cache-control"] ?? ""
        #expect(
          isKept ? told.hasPrefix("private, max-age=") : told == "no-store", "\(path) \(control)")
      }
      // Responses with another header or none are stored, because the key contains the header.
      for headers in [["X-Tenant": "a"], [:]] as [KeyValuePairs<String, String>]
      where !control.contains("private") {
        let before = origin.requests(to: "/\(number).jpg")
        for _ in 0..<2 { _ = try ask("/\(number).jpg", headers) }
        #expect(origin.requests(to: "/\(number).jpg") == before + 1, "\(control)")
      }
    }
  }

  @Test func `credentials come from the environment or a file and are never shown`() throws {
    try folder.write("token", bytes: Array("t0ken-s3cret\n".utf8))
    let port = "'http:\(origin.port)'"
    let hosts = """
      [{ host: 'localhost', token: 'file:\(folder.path)/token', credentials_to: [\(port)] },
       { host: '127.0.0.1', user: 'me', password: 'env:ORIGIN_PASSWORD', credentials_to: [\(port)] }]
      """
    let environment = ["PICTOR_HOSTS": hosts, "ORIGIN_PASSWORD": "open sesame"]
    let pictor = try PictorProcess(
      in: folder, ["--log.level", "debug"], environment: environment)
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    let byName = encoded("http://localhost:\(origin.port)/a.jpg")
    #expect(try pictor.get("/image?url=\(byName)").status == 200)
    #expect(
      origin.received(at: "/a.jpg").map { $0.headers["authorization"] }
        == ["Basic bWU6b3BlbiBzZXNhbWU=", "Bearer t0ken-s3cret"])
    let stats = try pictor.get("/stats").text
    let printed = try PictorProcess(
      in: folder, ["--print-config"], environment: environment, isServer: false)
    #expect(try printed.end(0) == 0)
    #expect(printed.log.contains("env:ORIGIN_PASSWORD"))
    for text in [pictor.log, stats, printed.log] {
      #expect(!text.contains("s3cret") && !text.contains("sesame") && !text.contains("bWU6"))
    }
  }

  @Test(arguments: [
    ("[{ host: 'a', token: 'env:NOT_SET' }]", "rule 1, token: the environment variable NOT_SET"),
    ("[{ host: 'b' }, { host: 'a', token: 'literal' }]", "rule 2, token: not allowed: env:NAME"),
    ("[{ host: 'a', headers: { 'X-A': 'env:PATH' } }]", nil),
    ("[{ host: 'a', proxy: 'env:PATH' }]", "rule 1, proxy: env:PATH is not http://"),
  ])
  func `invalid host rules are reported by the configuration check`(
    hosts: String, problem: String?
  ) throws {
    let check = try PictorProcess(
      in: folder, ["--check-config", "--hosts", hosts], isServer: false)
    #expect(try check.end(0) == (problem == nil ? 0 : 1))
    #expect(check.log.contains(problem ?? "the configuration is valid"), "\(check.log)")
  }

  @Test func `hosts without certificate verification cause a warning at the start`() throws {
    let pictor = try PictorProcess(
      in: folder,
      [
        "--hosts", "[{ host: '*.local.example', allow_invalid_certificates: true }, { host: 'b' }]",
        // Few enough for any limit of open files, which else has a warning of its own.
        "--server.connections", "16",
      ])
    // A sanitized or an older machine's program also warns of its workers.
    let warnings = pictor.log.split(separator: "\n").filter {
      $0.contains("\"warning\"") && !$0.contains("imaging workers are not sealed")
    }
    #expect(warnings.count == 1)
    #expect(warnings.first?.contains("certificates are not verified") == true)
    #expect(warnings.first?.contains("\"hosts\":\"*.local.example\"") == true)
  }
}
