// AWSSignerTests: AWS's published signatures.

import TestSupport
import Testing

@testable import Core

@Suite struct AWSSignerTests {
  /// A request of AWS's Signature Version 4 test suite, or of the S3 documentation.
  struct Vector: Sendable, CustomTestStringConvertible {
    let name: String
    var method = "GET"
    var path = "/"
    var query: [(String, String)] = []
    var fields: [(String, String)] = []
    var body = ""
    var signed = "host;x-amz-date"
    let signature: String

    var testDescription: String { name }

    func request(host: String) throws -> AWSRequest {
      AWSRequest(
        method: method, host: host, path: PercentEncoding.encodePath(path),
        query: query.map { (name: $0.0, value: $0.1) },
        fields: try fields.map { try #require(HeaderField($0.0, value: $0.1)) },
        payload: body.isEmpty ? .empty : .bytes(Array(body.utf8)))
    }
  }

  private static let unreserved =
    "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

  /// AWS's "Signature Version 4 test suite" (aws4_testsuite), for 2015-08-30 12:36 UTC. Those that
  /// normalize paths do not apply: S3 does not.
  static let suite = [
    Vector(
      name: "get-vanilla",
      signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    Vector(
      name: "get-unreserved", path: "/" + unreserved,
      signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
    Vector(
      name: "get-utf8", path: "/\u{1234}",
      signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
    Vector(
      name: "get-space", path: "/example space/",
      signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
    Vector(
      name: "get-vanilla-empty-query-key", query: [("Param1", "value1")],
      signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
    Vector(
      name: "get-vanilla-query-order-key-case",
      query: [("Param2", "value2"), ("Param1", "value1")],
      signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    Vector(
      name: "get-vanilla-query-unreserved", query: [(unreserved, unreserved)],
      signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
    Vector(
      name: "get-vanilla-utf8-query", query: [("\u{1234}", "bar")],
      signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
    Vector(
      name: "get-header-key-duplicate",
      fields: [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")],
      signed: "host;my-header1;x-amz-date",
      signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
    Vector(
      name: "get-header-value-order",
      fields: [
        ("My-Header1", "value4"), ("My-Header1", "value1"), ("My-Header1", "value3"),
        ("My-Header1", "value2"),
      ], signed: "host;my-header1;x-amz-date",
      signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
    Vector(
      name: "get-header-value-trim",
      fields: [("My-Header1", "value1"), ("My-Header2", "\"a   b   c\"")],
      signed: "host;my-header1;my-header2;x-amz-date",
      signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    Vector(
      name: "post-vanilla", method: "POST",
      signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    Vector(
      name: "post-header-key-sort", method: "POST", fields: [("My-Header1", "value1")],
      signed: "host;my-header1;x-amz-date",
      signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
    Vector(
      name: "post-vanilla-empty-query-value", method: "POST", query: [("Param1", "value1")],
      signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
    Vector(
      name: "post-x-www-form-urlencoded", method: "POST",
      fields: [("Content-Type", "application/x-www-form-urlencoded")], body: "Param1=value1",
      signed: "content-type;host;x-amz-date",
      signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
  ]

  @Test(arguments: suite)
  func `the signatures are those of AWS's test suite`(vector: Vector) throws {
    let credentials = try #require(
      AWSCredentials(
        accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
    let signer = AWSSigner(credentials, region: "us-east-1", service: "service")
    let fields = signer.fields(
      for: try vector.request(host: "example.amazonaws.com"), at: UnixTime(seconds: 1_440_938_160))
    #expect(fields.map(\.name) == ["X-Amz-Date", "Authorization"])
    #expect(fields.first?.value == "20150830T123600Z")
    #expect(
      fields.last?.value
        == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        + "SignedHeaders=\(vector.signed), Signature=\(vector.signature)")
  }

  /// "Signature Calculations for the Authorization Header" of Amazon S3, for 2013-05-24.
  static let documentation = [
    Vector(
      name: "GET object", path: "/test.txt", fields: [("Range", "bytes=0-9")],
      signed: "host;range;x-amz-content-sha256;x-amz-date",
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Vector(
      name: "PUT object", method: "PUT", path: "/test$file.text",
      fields: [
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
      ], body: "Welcome to Amazon S3.",
      signed: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Vector(
      name: "GET bucket lifecycle", query: [("lifecycle", "")],
      signed: "host;x-amz-content-sha256;x-amz-date",
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Vector(
      name: "GET bucket", query: [("max-keys", "2"), ("prefix", "J")],
      signed: "host;x-amz-content-sha256;x-amz-date",
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test(arguments: documentation)
  func `the signatures are those of the documentation of S3`(vector: Vector) throws {
    let fields = try Self.documented().fields(
      for: try vector.request(host: "examplebucket.s3.amazonaws.com"),
      at: UnixTime(seconds: 1_369_353_600))
    #expect(fields.map(\.name) == ["X-Amz-Date", "X-Amz-Content-Sha256", "Authorization"])
    #expect(
      fields.last?.value
        == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        + "SignedHeaders=\(vector.signed), Signature=\(vector.signature)")
  }

  private static func documented(token: String? = nil) throws -> AWSSigner {
    AWSSigner(
      try #require(
        AWSCredentials(
          accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
          sessionToken: token)), region: "us-east-1")
  }

  /// "Examples of how to derive a signing key", AWS General Reference.
  @Test func `the key of a day is that of the documentation`() throws {
    let credentials = try #require(
      AWSCredentials(
        accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
    let key = AWSSigner(credentials, region: "us-east-1", service: "iam").key(for: "20120215")
    #expect(
      key.map { $0.hexadecimal(2) }.joined()
        == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d")
  }

  @Test func `a session token is sent and signed`() throws {
    let request = AWSRequest(host: "examplebucket.s3.amazonaws.com", path: "/test.txt")
    let time = UnixTime(seconds: 1_369_353_600)
    let fields = try Self.documented(token: "one").fields(for: request, at: time)
    let others = try Self.documented(token: "two").fields(for: request, at: time)
    #expect(fields.contains { $0.name == "X-Amz-Security-Token" && $0.value == "one" })
    let authorization = try #require(fields.last?.value)
    #expect(
      authorization.contains(
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"))
    #expect(authorization != others.last?.value)
  }

  @Test(arguments: [
    (0, "19700101T000000Z"), (951_782_399, "20000228T235959Z"), (951_782_400, "20000229T000000Z"),
    (951_868_800, "20000301T000000Z"), (1_735_689_599, "20241231T235959Z"),
    (-1, "19691231T235959Z"),
  ])
  func `times are those of the calendar`(seconds: Int, text: String) {
    let date = AWSDate(UnixTime(seconds: seconds))
    #expect(date.text == text)
    #expect(date.day == String(text.prefix(8)))
  }

  @Test(arguments: ["", "a b", "a\nb", "AKID/x", "AKID,x", "a=b", "é"])
  func `an access key that no field can carry is refused`(key: String) {
    #expect(AWSCredentials(accessKey: key, secretKey: "s") == nil)
  }

  @Test func `secrets are in no text`() throws {
    let signer = try Self.documented(token: "the-token")
    var text = "\(signer) \(String(reflecting: signer))"
    dump(signer, to: &text)
    #expect(!text.contains("wJalr"))
    #expect(!text.contains("the-token"))
    #expect(AWSCredentials(accessKey: "A", secretKey: "") == nil)
    #expect(AWSCredentials(accessKey: "A", secretKey: "s", sessionToken: "a\r\nb") == nil)
  }
}
