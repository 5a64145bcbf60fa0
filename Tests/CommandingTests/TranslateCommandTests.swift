// TranslateCommandTests: what people read of the URLs of another image server.

import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct TranslateCommandTests {
  private let printed = Printed()

  private func run(
    _ urls: String..., door: String? = nil, doors: [Peer: DoorSettings] = [:]
  ) throws -> CInt {
    var command = try TranslateCommand(
      urls, of: door, doors: doors, environment: ["KEY": "6b6579"])
    command.console = printed.console()
    return command.run()
  }

  @Test func `a URL becomes a query, with a line for what is not exact`() throws {
    let status = try run(
      "https://images.example/_/rs:fill:300:200/g:sm/plain/https://h.example/a.jpg",
      door: "imgproxy")
    let output = printed.output
    #expect(status == 0)
    #expect(output.hasPrefix("/image?url=https%3A%2F%2Fh.example%2Fa.jpg&"))
    #expect(output.contains("fit=cover") && output.contains("\n  near gravity: "))
  }

  @Test func `a refused URL is named, and the others are translated`() throws {
    let status = try run(
      "/_/no-such-option:1/plain/https://h.example/a.jpg", "/_/w:9/plain/https://h.example/a.jpg",
      "https://images.example", door: "imgproxy")
    #expect(status == 1)
    #expect(printed.errors.contains("no-such-option"))
    #expect(printed.errors.contains("not found"))
    #expect(printed.output.contains("w=9"))
  }

  @Test func `the configuration's doors have their prefixes and keys`() throws {
    var door = DoorSettings()
    door.prefix = "/img"
    (door.keys, door.salts) = ([.environment("KEY")], [.literal("73616c74")])
    let unsigned = "/img/_/w:9/plain/https://h.example/a.jpg"
    #expect(try run(unsigned, doors: [.imgproxy: door]) == 1)
    #expect(printed.errors.contains("signature"))
    door.keys = [.environment("NONE")]
    #expect(throws: ConfigurationError.self) { try run(unsigned, doors: [.imgproxy: door]) }
    #expect(throws: ConfigurationError.self) { try run(unsigned) }
  }
}
