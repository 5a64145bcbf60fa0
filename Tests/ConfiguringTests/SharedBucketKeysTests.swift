// SharedBucketKeysTests: the keys of the shared tier's bucket, and what they need of each other.

import Testing

@testable import Core

@Suite struct SharedBucketKeysTests {
  /// Returns a configuration with options, whose names follow `fleet.`.
  private func configuration(_ options: KeyValuePairs<String, String>) throws -> Configuration {
    var configuration = Configuration()
    for (name, value) in options {
      try configuration.apply(option: "fleet." + name, value: value)
    }
    return configuration
  }

  @Test func `members are read in a section of their own`() throws {
    var configuration = Configuration()
    try configuration.apply(
      json5: """
        { fleet: { redis: "redis://h", s3: {
          endpoint: "http://10.0.0.5:9000", region: "eu-west-3", bucket: "shared", prefix: "a/b/",
          access_key: "AKID", secret_key: "env:SECRET", session_token: "file:/token",
          addressing: "path", ca_file: "/ca.pem" } } }
        """, file: "x")
    let bucket = configuration.fleet.bucket
    #expect(bucket.access.endpoint?.text == "http://10.0.0.5:9000/")
    #expect(
      bucket.access.region == "eu-west-3" && bucket.name == "shared" && bucket.prefix == "a/b/")
    #expect(bucket.access.accessKey == .literal("AKID"))
    #expect(bucket.access.secretKey == .environment("SECRET"))
    #expect(bucket.access.sessionToken == .file("/token") && bucket.access.addressing == .path)
    #expect(bucket.caFile == "/ca.pem")
    #expect(bucket.conflict(hasRedis: true) == nil)
    // What is printed is read back.
    var again = Configuration()
    try again.apply(json5: configuration.json5, file: "x")
    #expect(again == configuration)
  }

  @Test func `without a bucket there is no store and no conflict`() {
    let bucket = Configuration().fleet.bucket
    #expect(!bucket.isOn && bucket.conflict(hasRedis: false) == nil)
  }

  @Test func `a bucket needs Redis, since purges arrive by its stream`() throws {
    let bucket = try configuration(["s3.bucket": "shared"]).fleet.bucket
    #expect(bucket.conflict(hasRedis: false)?.problem.contains("fleet.redis") == true)
    #expect(bucket.conflict(hasRedis: true) == nil)
  }

  @Test(
    arguments: [
      (["s3.endpoint": "http://h"], "fleet.s3.bucket"),
      (["s3.ca_file": "/ca.pem"], "fleet.s3.bucket"),
      (["s3.bucket": "shared", "s3.access_key": "a"], "fleet.s3.access_key"),
      (["s3.bucket": "shared", "s3.secret_key": "env:A"], "fleet.s3.access_key"),
      (["s3.bucket": "shared", "s3.session_token": "env:A"], "fleet.s3.session_token"),
      (
        ["s3.bucket": "shared", "s3.endpoint": "http://10.0.0.5", "s3.addressing": "virtual"],
        "fleet.s3.addressing"
      ),
    ] as [([String: String], String)])
  func `keys that belong together are missed by name`(options: [String: String], key: String) throws
  {
    var configuration = Configuration()
    for (name, value) in options {
      try configuration.apply(option: "fleet." + name, value: value)
    }
    #expect(configuration.fleet.bucket.conflict(hasRedis: true)?.key == key)
  }

  @Test(arguments: [
    ("endpoint", "ftp://h"), ("endpoint", "http://h/path"), ("region", ""), ("region", "a b"),
    ("bucket", "Upper"), ("bucket", "a"), ("bucket", "10.0.0.1"), ("prefix", "/a"),
    ("prefix", "a//b"), ("prefix", "../a"), ("prefix", "a/./b"), ("prefix", "a b"),
    ("prefix", "a%2f"), ("prefix", String(repeating: "x", count: 257)), ("addressing", "dns"),
    ("entry_limit", "1KiB"), ("access_key", "a/b"),
    ("secret_key", "literal"), ("session_token", "literal"), ("secret_key", "file:relative"),
  ])
  func `anything else is refused`(name: String, value: String) {
    #expect(throws: ConfigurationError.self) { try configuration(["s3." + name: value]) }
  }

  @Test(arguments: [
    ("access_key", "hunter2/hunter2"), ("secret_key", "hunter2"), ("session_token", "hunter2"),
    ("endpoint", "http://u:hunter2@h"),
  ])
  func `messages do not repeat a secret`(name: String, value: String) {
    let said = complaint { _ = try configuration(["s3." + name: value]) }
    #expect(said != "nothing" && !said.contains("hunter2"))
  }

  @Test func `secrets are read from where they are named`() throws {
    let bucket = try configuration([
      "s3.bucket": "shared", "s3.access_key": "AKID", "s3.secret_key": "env:SECRET",
    ]).fleet.bucket
    let credentials = try bucket.credentials(environment: ["SECRET": "s"])
    #expect(credentials?.accessKey == "AKID" && credentials?.secretKey == "s")
    let error = #expect(throws: ConfigurationError.self) {
      try bucket.credentials(environment: [:])
    }
    #expect(error?.problems.joined().contains("fleet.s3.secret_key") == true)
    #expect(try Configuration().fleet.bucket.credentials(environment: [:]) == nil)
  }
}
