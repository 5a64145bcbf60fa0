// S3TLSTests: the store over TLS, with nginx in front of the bucket.

@testable import Core
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) struct S3TLSTests {
  private let bucket: S3Server
  private let nginx: Nginx

  init() async throws {
    bucket = try S3Server()
    nginx = try await Nginx(passing: ["/": bucket.origin.port])
  }

  /// A store that trusts the authorities of a file.
  private func store(_ endpoint: String, trusting file: String) throws -> S3Bucket {
    var settings = SharedBucketSettings()
    settings.name = "shared"
    settings.access.endpoint = ObjectStore.endpoint(endpoint)
    settings.access.region = S3Server.region
    settings.timeout = .seconds(20)
    settings.caFile = file
    var configuration = try S3Configuration(
      settings,
      credentials: AWSCredentials(accessKey: S3Server.accessKey, secretKey: S3Server.secret))
    configuration.retryInterval = .seconds(600)
    return try S3Bucket(configuration, budget: .unlimited, log: .silent)
  }

  /// Whether an entry is written and read again.
  private func works(_ store: S3Bucket) async -> Bool {
    guard await store.write("v:0123", Array("head".utf8), lifetime: 60),
      case .found(let region) = await store.read("v:0123")
    else { return false }
    return region.bytes == Array("head".utf8)
  }

  @Test func `entries are written and read, signed, with an authority of one's own`() async throws {
    let store = try store("https://localhost:\(nginx.port)", trusting: nginx.certificate)
    #expect(await works(store))
    #expect(store.figures.failures == 0 && bucket.signatureProblems == [])
  }

  @Test(arguments: ["untrusted", "no file", "no certificate", "another name", "no TLS"])
  func `a store that is not proven sends and receives nothing, and its breaker opens`(fault: String)
    async throws
  {
    let folder = try TemporaryFolder()
    try folder.write("empty.pem", bytes: [])
    let store =
      switch fault {
      case "untrusted": try store("https://localhost:\(nginx.port)", trusting: "")
      case "no file": try store("https://localhost:\(nginx.port)", trusting: folder.path + "/none")
      case "no certificate":
        try store("https://localhost:\(nginx.port)", trusting: folder.path + "/empty.pem")
      case "another name":
        try store("https://127.0.0.1:\(nginx.port)", trusting: nginx.certificate)
      default: try store("https://localhost:\(bucket.origin.port)", trusting: nginx.certificate)
      }
    #expect(await !works(store))
    #expect(store.figures.failures == 1 && !store.isReady)
    #expect(bucket.requests == 0)
  }
}
