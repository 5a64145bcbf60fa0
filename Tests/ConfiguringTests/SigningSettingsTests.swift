// SigningSettingsTests: tests of signing.keys, signing.mode and server.allow.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct SigningSettingsTests {
  private let secret = String(repeating: "s3cr3t-x", count: 4)

  private func keys(_ text: String) throws -> [SigningSettings.Key] {
    var configuration = Configuration()
    try configuration.apply(option: "signing.keys", value: text)
    return configuration.signing.keys
  }

  @Test func `a key is an id with a secret or a reference to one`() throws {
    let found = try keys("a:\(secret),b-_9:env:KEY, c:file:/run/key,d:\(secret):x")
    #expect(found.map(\.id) == ["a", "b-_9", "c", "d"])
    #expect(
      found.map(\.secret) == [
        .literal(secret), .environment("KEY"), .file("/run/key"), .literal(secret + ":x"),
      ])
    #expect(try keys("").isEmpty)
    #expect(try keys((1...16).map { "k\($0):\(secret)" }.joined(separator: ",")).count == 16)
  }

  @Test func `a list of keys is written as it was read`() throws {
    var configuration = Configuration()
    try configuration.apply(
      json5: "{ signing: { mode: 'options', keys: ['a:\(secret)', 'b:env:KEY'] } }", file: "f")
    var read = Configuration()
    try read.apply(json5: configuration.json5, file: "g")
    #expect(read == configuration && read.signing.keys.count == 2)
    #expect(read.signing.mode == .options)
  }

  @Test func `a message about a key names its place and no part of it`() {
    let many = (1...17).map { "k\($0):\(secret)" }.joined(separator: ",")
    let short = String(secret.dropLast())
    for (text, place) in [
      (secret, 1), ("a:\(short)", 1), ("a:\(secret),a:\(secret)x", 2), (":\(secret)", 1),
      ("a b:\(secret)", 1), ("a.b:\(secret)", 1), ("a:\(secret) x", 1), ("a:\(secret)é", 1),
      ("a:env:", 1), ("a:file:relative", 1), (many, 17), ("env:\(secret)", 1),
      ("file:/run/secrets/s3cr3t-of-the-signatures", 1),
      ("a:" + String(repeating: "s3cr3t", count: 100), 1),
      (String(repeating: "i", count: 33) + ":\(secret)", 1),
    ] {
      let said = complaint { _ = try keys(text) }
      #expect(said.hasPrefix("--signing.keys, item \(place): not allowed: id:secret, "), "\(text)")
      #expect(!said.contains("s3cr3t"), "\(said)")
    }
    for wrong in ["{ signing: { keys: 's3cr3t' } }", "{ signing: { keys: ['a', 5] } }"] {
      let said = complaint {
        var configuration = Configuration()
        try configuration.apply(json5: wrong, file: "f")
      }
      #expect(!said.contains("s3cr3t") && said.contains("signing.keys"), "\(said)")
    }
  }

  @Test func `secrets are read from the environment and from files`() throws {
    let folder = try TemporaryFolder()
    try folder.write("key", bytes: Array("\(secret)file\n".utf8))
    var settings = SigningSettings()
    settings.keys = try keys("a:\(secret),b:env:KEY,c:file:\(folder.path)/key")
    let found = try settings.secrets(environment: ["KEY": secret + "env"])
    #expect(found.map(\.id) == ["a", "b", "c"])
    #expect(found.map(\.secret) == [secret, secret + "env", secret + "file"])
  }

  @Test func `each secret that cannot be used is reported by its key's id`() throws {
    var settings = SigningSettings()
    settings.keys = try keys("a:env:NONE,b:env:SHORT,c:env:BLANK,d:file:/nonexistent")
    let said = complaint {
      _ = try settings.secrets(environment: ["SHORT": "s3cr3t", "BLANK": secret + " " + secret])
    }
    let lines = said.split(separator: "\n")
    #expect(lines.count == 4 && !said.contains("s3cr3t"))
    for (line, id) in zip(lines, ["a", "b", "c", "d"]) {
      #expect(line.hasPrefix("signing.keys, \(id): "), "\(line)")
    }
  }

  @Test func `server.allow is auto or a list of options`() throws {
    func allow(_ text: String) throws -> Set<ClientOption>? {
      var configuration = Configuration()
      configuration.server.allow = [.retry]
      try configuration.apply(option: "server.allow", value: text)
      return configuration.server.allow
    }
    #expect(Configuration().server.allow == nil)
    #expect(try allow("auto") == nil)
    #expect(try allow("") == [])
    #expect(try allow("refresh,cache=bypass,retry,detach,store,priority=high") == .all)
    for wrong in ["refresh,refresh", "none", "bypass", "refresh,auto", "priority=low"] {
      #expect(throws: ConfigurationError.self, "\(wrong)") { try allow(wrong) }
    }
    var configuration = Configuration()
    configuration.server.allow = [.store, .refresh]
    #expect(configuration.json5.contains(#"allow: ["refresh", "store"],"#))
  }
}
