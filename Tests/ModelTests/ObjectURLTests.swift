// ObjectURLTests: s3 URLs: one URL for each object, and none for what is no object.

@testable import Core
import Testing

@Suite struct ObjectURLTests {
  @Test(arguments: [
    ("s3://photos/a.jpg", "s3://photos/a.jpg"), ("S3://photos/A.jpg", "s3://photos/A.jpg"),
    ("s3://photos/a b", "s3://photos/a%20b"), ("s3://photos/a%20b", "s3://photos/a%20b"),
    ("s3://photos/%61", "s3://photos/a"), ("s3://photos/a%2fb", "s3://photos/a/b"),
    ("s3://photos//a//b/", "s3://photos//a//b/"), ("s3://photos/a+b", "s3://photos/a%2Bb"),
    ("s3://photos/é", "s3://photos/%C3%A9"), ("s3://my.photos-1/a...b", "s3://my.photos-1/a...b"),
    ("s3://photos/logo@2x.png", "s3://photos/logo%402x.png"),
  ])
  func `spellings of a key are one URL`(text: String, canonical: String) throws {
    let url = try SourceURL(parsing: text)
    #expect(url.text == canonical)
    #expect(try SourceURL(parsing: canonical) == url)
    #expect(url.scheme == .s3 && url.port == 0)
    #expect("s3://" + url.host + url.path == canonical)
    #expect(url.density == (text.contains("@2x") ? 2 : 1))
  }

  @Test(arguments: [
    "s3://photos", "s3://photos/", "s3:photos/a", "s3:///a", "s3://ab/a", "s3://Photos/a",
    "s3://a..b/a", "s3://-abc/a", "s3://abc./a", "s3://10.0.0.1/a", "s3://photos:80/a",
    "s3://user@photos/a", "s3://photos/a?versionId=1", "s3://photos/a#b", "s3://photos/a%",
    "s3://photos/%zz", "s3://photos/%00", "s3://photos/%ff", "s3://photos/../others/a",
    "s3://photos/%2e%2e/others/a", "s3://photos/..%2fothers/a", "s3://photos/..%5cothers/a",
    "s3://photos/a/.", "s3://photos/../%CC%81others", "s3://photos/../\u{301}others",
    "s3://photos/./a", "s3://ph%6ftos/a",
    "s3://photos/" + String(repeating: "a", count: 1_025),
    "s3://" + String(repeating: "a", count: 64) + "/a",
  ])
  func `what names no object is refused`(text: String) {
    #expect { try SourceURL(parsing: text) } throws: { ($0 as? ImageError)?.code == "invalid_url" }
  }

  @Test(
    arguments: [
      (nil, nil, "photos", "https://photos.s3.eu-west-3.amazonaws.com/a%2Bb"),
      (nil, nil, "my.photos", "https://s3.eu-west-3.amazonaws.com/my.photos/a%2Bb"),
      (nil, .path, "photos", "https://s3.eu-west-3.amazonaws.com/photos/a%2Bb"),
      ("http://10.0.0.1:9000", nil, "photos", "http://10.0.0.1:9000/photos/a%2Bb"),
      ("https://minio", .virtual, "photos", "https://photos.minio/a%2Bb"),
      ("http://[::1]:9000", nil, "photos", "http://[::1]:9000/photos/a%2Bb"),
    ] as [(String?, ObjectStore.Addressing?, String, String)])
  func `an object is requested at its endpoint`(
    endpoint: String?, addressing: ObjectStore.Addressing?, bucket: String, url: String
  ) throws {
    var store = ObjectStore()
    store.region = "eu-west-3"
    store.endpoint = try endpoint.map { try SourceURL(parsing: $0) }
    store.addressing = addressing
    let object = try SourceURL(parsing: "s3://\(bucket)/a+b")
    #expect(try store.url(of: object).text == url)
  }

  @Test func `rules for buckets and for hosts do not mix`() throws {
    var bucket = HostRule(host: try #require(HostPattern("photos")), tags: ["bucket"])
    bucket.store = ObjectStore()
    let everything = HostRule(host: try #require(HostPattern("*")), tags: ["hosts"])
    let filter = CacheKeyFilter(rules: [bucket, everything])
    #expect(filter.tags(of: try SourceURL(parsing: "s3://photos/a")) == ["bucket"])
    #expect(filter.tags(of: try SourceURL(parsing: "http://photos/a")) == ["hosts"])
    #expect(filter.tags(of: try SourceURL(parsing: "s3://others/a")) == [])
  }

  @Test func `credentials of a host and an s3 scheme do not mix`() {
    #expect(HostRule.CredentialOrigin("s3") == nil)
    #expect(HostRule.CredentialOrigin("s3:443") == nil)
  }
}
