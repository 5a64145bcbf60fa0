// DownloaderObjectTests: objects of S3 from a server that recomputes each signature.

@testable import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderObjectTests {
  private let origin: Origin
  private let bytes: [UInt8] = Array("image".utf8)
  private static let secret = "the-secret"

  init() throws { origin = try Origin() }

  private func rule(
    token: String? = nil, isSigned: Bool = true, change: (inout ObjectStore) -> Void = { _ in }
  ) throws -> HostRule {
    var rule = HostRule(host: try #require(HostPattern("photos")))
    var store = ObjectStore()
    store.endpoint = try SourceURL(parsing: origin.url("/"))
    store.region = "eu-west-3"
    change(&store)
    rule.store = store
    if isSigned {
      rule.storeCredentials = AWSCredentials(
        accessKey: "AKID", secretKey: Self.secret, sessionToken: token)
    }
    return rule
  }

  /// Recomputes the signature of a request from its received head alone.
  private func expectSigned(_ request: Origin.Request) {
    let check = AWSSignatureCheck(accessKey: "AKID", secret: Self.secret, region: "eu-west-3")
    #expect(check.problem(in: request) == nil)
  }

  @Test(arguments: [
    ("a.jpg", "a.jpg"), ("a b.jpg", "a%20b.jpg"), ("a+b.jpg", "a%2Bb.jpg"),
    ("a%2Bb.jpg", "a%2Bb.jpg"), ("100%25.jpg", "100%25.jpg"), ("d//e.jpg", "d//e.jpg"),
    ("/e.jpg", "/e.jpg"), ("~x.jpg", "~x.jpg"), ("q%3Fa=b&c.jpg", "q%3Fa%3Db%26c.jpg"),
    ("\u{e9}\u{1234}.jpg", "%C3%A9%E1%88%B4.jpg"), ("!'()*.jpg", "%21%27%28%29%2A.jpg"),
    ("@2x.png", "%402x.png"), ("folder/", "folder/"),
    (String(repeating: "\u{1234}", count: 341), String(repeating: "%E1%88%B4", count: 341)),
  ])
  func `each key is sent and signed as S3 writes it`(key: String, sent: String) async throws {
    origin.serve("/photos/\(sent)", bytes: bytes)
    let rules = [try rule()]
    let downloader = try makeDownloader { $0.hostRules = rules }
    let download = try await downloader.load("s3://photos/\(key)")
    #expect(download.origin.status == 200)
    expectSigned(try #require(origin.received(at: "/photos/\(sent)").first))
  }

  @Test func `the bucket may be in the host`() async throws {
    origin.serve("/a.jpg", bytes: bytes)
    let endpoint = try SourceURL(parsing: origin.url("/", host: "localhost"))
    let rules = [
      try rule {
        $0.addressing = .virtual
        $0.endpoint = endpoint
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load("s3://photos/a.jpg")
    let request = try #require(origin.received(at: "/a.jpg").first)
    #expect(request.headers["host"] == "photos.localhost:\(origin.port)")
    expectSigned(request)
  }

  @Test func `a session token is sent, and a bucket without credentials is asked unsigned`()
    async throws
  {
    origin.serve("/photos/a.jpg", bytes: bytes)
    let temporary = [try rule(token: "a/token+=")]
    _ = try await makeDownloader { $0.hostRules = temporary }.load("s3://photos/a.jpg")
    let signed = try #require(origin.received(at: "/photos/a.jpg").first)
    #expect(signed.headers["x-amz-security-token"] == "a/token+=")
    expectSigned(signed)
    let open = [try rule(isSigned: false)]
    _ = try await makeDownloader { $0.hostRules = open }.load("s3://photos/a.jpg")
    let unsigned = try #require(origin.received(at: "/photos/a.jpg").last)
    #expect(unsigned.headers["authorization"] == nil && unsigned.headers["x-amz-date"] == nil)
  }

  @Test func `a bucket without a rule is refused and nothing is sent`() async throws {
    var ordinary = HostRule(host: try #require(HostPattern("*")))
    ordinary.credentialOrigins = []
    let rules = [ordinary, try rule()]
    let downloader = try makeDownloader { $0.hostRules = rules }
    let failure = await downloader.failure(of: "s3://others/a.jpg")
    #expect(failure?.code == "forbidden_source" && failure?.decidingKey == "hosts")
    #expect(origin.totalRequests == 0)
  }

  @Test func `a web server with the bucket's name or at the endpoint gets no signature`()
    async throws
  {
    origin.serve("/photos/a.jpg", bytes: bytes)
    let rules = [try rule()]
    let downloader = try makeDownloader {
      $0.hostRules = rules
      $0.lookUp = { _ in .success([.v4(0x7f00_0001)]) }
    }
    _ = try await downloader.load(origin.url("/photos/a.jpg"))
    _ = try await downloader.load(origin.url("/photos/a.jpg", host: "photos"))
    let requests = origin.received(at: "/photos/a.jpg")
    #expect(requests.count == 2)
    for request in requests { #expect(request.headers["authorization"] == nil) }
  }

  @Test func `an object is revalidated by its ETag`() async throws {
    origin.route("/photos/a.jpg") { request in
      request.headers["if-none-match"] == "\"v1\""
        ? .status(304, headers: ["ETag: \"v1\""]) : .ok(Array("image".utf8))
    }
    let rules = [try rule()]
    let downloader = try makeDownloader { $0.hostRules = rules }
    let answer = try await downloader.revalidate(
      "s3://photos/a.jpg", with: try validators(etag: "\"v1\""))
    #expect(answer?.status == 304)
    expectSigned(try #require(origin.received(at: "/photos/a.jpg").last))
  }

  private static func xml(_ code: String) -> [UInt8] {
    Array("<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>m</Message></Error>".utf8)
  }

  @Test func `missing objects and refusals are what they are for other origins`() async throws {
    origin.route("/photos/gone", to: .status(404, body: Self.xml("NoSuchKey")))
    origin.route("/photos/secret", to: .status(403, body: Self.xml("AccessDenied")))
    origin.route("/photos/late", to: .status(403, body: Self.xml("RequestTimeTooSkewed")))
    let rules = [try rule()]
    let downloader = try makeDownloader { $0.hostRules = rules }
    #expect(await downloader.failure(of: "s3://photos/gone") == .sourceNotFound(status: 404))
    let refused = await downloader.failure(of: "s3://photos/secret")
    #expect(refused?.status == 502 && refused?.code == "source_error")
    #expect(refused?.logDetail?.contains("AccessDenied") == true)
    #expect(refused?.message.contains("AccessDenied") == false)
    let late = await downloader.failure(of: "s3://photos/late")
    #expect(late?.logDetail?.contains("clock") == true)
  }

  @Test(arguments: [
    Array("<Code>".utf8), Array("<Code></Code>".utf8), Array("<Code>a b\r\n</Code>".utf8),
    [0xff, 0xfe, 0x00], Array(String(repeating: "<Code>", count: 30_000).utf8),
    Array("<Code>\(String(repeating: "x", count: 100_000))</Code>".utf8),
  ])
  func `an error without a usable code has no detail`(body: [UInt8]) async throws {
    origin.route("/photos/a", to: .status(403, body: body))
    let rules = [try rule()]
    let downloader = try makeDownloader { $0.hostRules = rules }
    #expect(await downloader.failure(of: "s3://photos/a") == .sourceError(status: 403))
  }

  @Test func `a store that is busy is asked again, and each attempt is signed`() async throws {
    origin.route("/photos/a.jpg") { request in
      request.number == 1 ? .status(503, body: Self.xml("SlowDown")) : .ok(Array("image".utf8))
    }
    let rules = [try rule()]
    let downloader = try makeDownloader {
      $0.hostRules = rules
      $0.retries = 1
    }
    _ = try await downloader.load("s3://photos/a.jpg")
    let requests = origin.received(at: "/photos/a.jpg")
    #expect(requests.count == 2)
    for request in requests { expectSigned(request) }
  }

  @Test func `a redirect of a store is not followed`() async throws {
    origin.serve("/elsewhere", bytes: bytes)
    origin.route(
      "/photos/a.jpg",
      to: .status(
        307, body: Self.xml("TemporaryRedirect"), headers: ["Location: \(origin.url("/elsewhere"))"]
      ))
    let rules = [try rule()]
    let downloader = try makeDownloader { $0.hostRules = rules }
    let failure = await downloader.failure(of: "s3://photos/a.jpg")
    #expect(failure?.code == "source_error")
    #expect(failure?.logDetail?.contains("TemporaryRedirect") == true)
    #expect(origin.requests(to: "/elsewhere") == 0)
  }

  @Test func `the endpoint's address is checked, and the lists of hosts are not about it`()
    async throws
  {
    origin.serve("/photos/a.jpg", bytes: bytes)
    let rules = [try rule()]
    let checked = try makeDownloader {
      $0.hostRules = rules
      $0.allowedNetworks = []
    }
    #expect(await checked.failure(of: "s3://photos/a.jpg")?.code == "forbidden_source")
    #expect(origin.totalRequests == 0)
    let denied = try [#require(SourcePattern("127.0.0.1"))]
    let listed = try makeDownloader {
      $0.hostRules = rules
      $0.hosts = HostPolicy(denied: denied)
    }
    #expect(await listed.failure(of: origin.url("/photos/a.jpg"))?.code == "forbidden_source")
    _ = try await listed.load("s3://photos/a.jpg")
  }
}
