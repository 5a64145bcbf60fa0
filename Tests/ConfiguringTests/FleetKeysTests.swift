// FleetKeysTests: the keys of a fleet, and addresses of Redis.

import Testing

@testable import Core

@Suite struct FleetKeysTests {
  @Test func `addresses are read in all their parts`() throws {
    let whole = try #require(RedisAddress("redis://a%20b:c%3Ad@[::1]:7000/3"))
    #expect(whole.place == .host("::1", port: 7_000))
    #expect(whole.user == "a b" && whole.password == "c:d" && whole.database == 3)
    let short = try #require(RedisAddress("redis://redis.example"))
    #expect(
      short.place == .host("redis.example", port: 6_379) && short.password == nil
        && short.database == 0)
    #expect(RedisAddress("redis://:secret@h")?.password == "secret")
    #expect(RedisAddress("redis://:secret@h")?.user == nil)
    #expect(RedisAddress("redis://secret@h/")?.password == "secret")
    #expect(RedisAddress("unix:/run/redis.sock")?.place == .unix("/run/redis.sock"))
  }

  @Test(arguments: [
    "", "redis:", "redis://", "rediss://h", "http://h", "h:6379", "redis://h:0", "redis://h:65536",
    "redis://h:",
    "redis://h/x", "redis://h/-1", "redis://h/1/2", "redis://h?db=1", "redis://a:@h",
    "redis://a%2:b@h", "redis://a b@h",
    "redis://[::1", "redis://h]:1", "unix:", "unix:relative", "redis://user:%ff@h",
    "unix:/" + String(repeating: "a", count: 120),
  ]) func `anything else is no address`(text: String) { #expect(RedisAddress(text) == nil) }

  @Test func `a literal address has no password, and messages do not repeat it`() throws {
    var configuration = Configuration()
    try configuration.apply(option: "fleet.redis", value: "redis://127.0.0.1/1")
    #expect(configuration.fleet.redis == .literal("redis://127.0.0.1/1"))
    try configuration.apply(option: "fleet.redis", value: "env:REDIS_URL")
    #expect(configuration.fleet.redis == .environment("REDIS_URL"))
    let error = #expect(throws: ConfigurationError.self) {
      try configuration.apply(option: "fleet.redis", value: "redis://a:hunter2@h")
    }
    #expect(error.map { !$0.problems.joined().contains("hunter2") } == true)
    try configuration.apply(option: "fleet.redis", value: "")
    #expect(configuration.fleet.redis == nil)
  }

  @Test(arguments: ["", "a b", "a\n", String(repeating: "x", count: 65)])
  func `a prefix is short and plain`(text: String) {
    var configuration = Configuration()
    #expect(throws: ConfigurationError.self) {
      try configuration.apply(option: "fleet.key_prefix", value: text)
    }
  }
}
