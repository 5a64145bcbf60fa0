// RepeatedKeysTests: a file that gives a key twice is refused.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct RepeatedKeysTests {
  @Test(arguments: [
    ("{ server: { port: 1, port: 2 } }", "server.port"),
    ("{ 'log': { level: 'info' }, \"log\": { level: 'debug' } }", "log"),
    ("{ presets: { a: 'w=1', /* a: */ b: '{a:1,', a: 'w=2', }, // presets: {\n }", "presets.a"),
  ])
  func `a key that a file gives twice is refused`(text: String, path: String) throws {
    var configuration = Configuration()
    #expect(
      throws: ConfigurationError(
        at: "f: \(path)", "it is given twice in one object; merge the two")
    ) { try configuration.apply(json5: text, file: "f") }
  }

  @Test func `the same key in two objects, and a suggestion that is key and section, are no pair`()
    throws
  {
    var configuration = Configuration()
    try configuration.apply(
      json5: "{ memory: { limit: '1GiB' }, disk: { limit: '1GiB' }, presets: { w: 'w=1' } }",
      file: "f")
    let error = #expect(throws: ConfigurationError.self) {
      try configuration.apply(json5: "{ preset: 1 }", file: "f")
    }
    #expect(error?.problems == ["f: preset: unknown key; did you mean presets?"])
  }
}
