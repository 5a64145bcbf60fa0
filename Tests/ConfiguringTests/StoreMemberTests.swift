// StoreMemberTests: the member s3 of a host rule.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct StoreMemberTests {
  private func rule(_ members: String) throws -> HostRule {
    var configuration = Configuration()
    try configuration.apply(json5: "{ hosts: [{ \(members) }] }", file: "pictor.json5")
    return try #require(configuration.hosts.first)
  }

  @Test func `a bucket is read, written and resolved`() throws {
    let rule = try rule(
      """
      host: "photos", s3: { endpoint: "http://10.0.0.5:9000", region: "eu-west-3", addressing: "path",
      access_key: "AKID", secret_key: "env:SECRET", session_token: "env:TOKEN" }
      """)
    let store = try #require(rule.store)
    #expect(store.endpoint?.text == "http://10.0.0.5:9000/" && store.region == "eu-west-3")
    #expect(store.addressing == .path && store.accessKey == .literal("AKID"))
    let text = Setting.literal(
      of: rule, by: HostRule.members, requiring: "host", unlike: HostRule(host: .all))
    #expect(try self.rule(String(text.dropFirst(2).dropLast(2))).store == store)
    let resolved = try rule.resolved(
      environment: ["SECRET": "hidden", "TOKEN": "t"], at: "hosts: rule 1")
    let wanted = AWSCredentials(accessKey: "AKID", secretKey: "hidden", sessionToken: "t")
    #expect(resolved.storeCredentials == wanted && wanted != nil)
    #expect(!"\(resolved)".contains("hidden"))
    #expect(throws: ConfigurationError.self) {
      try rule.resolved(environment: ["SECRET": "hidden"], at: "hosts: rule 1")
    }
    #expect(throws: ConfigurationError.self) {
      try rule.resolved(environment: ["SECRET": "hidden", "TOKEN": "a b"], at: "hosts: rule 1")
    }
  }

  @Test func `a public bucket at AWS needs no member`() throws {
    let rule = try rule("host: \"photos\", s3: {}")
    #expect(rule.store == ObjectStore())
    #expect(try rule.resolved(environment: [:], at: "").storeCredentials == nil)
  }

  @Test(arguments: [
    "host: '*', s3: {}", "host: '*.photos', s3: {}", "host: 'ab', s3: {}",
    "host: 'photos', s3: true",
    "host: 'photos', s3: { bucket: 'x' }", "host: 'photos', s3: { endpoint: 'ftp://x' }",
    "host: 'photos', s3: { endpoint: 'https://x/path' }",
    "host: 'photos', s3: { endpoint: 'https://x?a' }",
    "host: 'photos', s3: { region: 'a/b' }", "host: 'photos', s3: { addressing: 'dns' }",
    "host: 'photos', s3: { access_key: 'A', secret_key: 'hunter2' }",
    "host: 'photos', s3: { access_key: 'A' }", "host: 'photos', s3: { secret_key: 'env:S' }",
    "host: 'photos', s3: { session_token: 'env:S' }",
    "host: 'photos', s3: { endpoint: 'http://10.0.0.5', addressing: 'virtual' }",
    "host: 'photos', s3: {}, token: 'env:T'",
    "host: 'photos', s3: {}, forward_headers: ['Authorization']",
    "host: 'photos', s3: {}, headers: { 'X-Amz-Acl': 'private' }",
  ])
  func `mistakes are refused without their secrets`(members: String) {
    #expect {
      _ = try rule(members)
    } throws: { error in
      let text = "\(error)"
      return text.contains("rule 1") && !text.contains("hunter2")
    }
  }
}
