// Tests of NearestNames: what a mistyped name may have been meant to be.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct NearestNamesTests {
  private let names = [
    "server.port", "server.address", "disk.limit", "memory.limit", "disk.count_limit", "log.level",
    "log.format", "download.ca_file", "hosts",
  ]

  @Test(arguments: [
    ("server.port", ["server.port"]), ("SERVER_PORT", ["server.port"]),
    ("server-port", ["server.port"]), ("port", ["server.port"]),
    ("download.port", ["server.port"]), ("limit", ["disk.limit", "memory.limit"]),
    ("count-limit", ["disk.count_limit"]), ("log", ["log.level", "log.format"]),
    ("prot", ["server.port"]), ("sevrer.port", ["server.port"]), ("addr", ["server.address"]),
    ("host", ["hosts"]), ("file", ["download.ca_file"]), ("zzzz", []), ("", []), ("--", []),
    (String(repeating: "port", count: 20), []),
  ])
  func `the nearest names are returned`(given: String, found: [String]) {
    #expect(NearestNames.of(given, among: names) == found)
  }

  @Test func `at most five names are suggested`() {
    let many = (1...20).map { "section\($0).port" }
    #expect(NearestNames.of("port", among: many).count == 5)
  }

  @Test(arguments: [
    ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abc", 0), ("abc", "acb", 1),
    ("kitten", "sitting", 3), ("ca", "abc", 3), ("port", "prot", 1),
  ])
  func `the edit distance counts insertions, deletions, substitutions and transpositions`(
    left: String, right: String, distance: Int
  ) {
    #expect(NearestNames.distance(left, right) == distance)
    #expect(NearestNames.distance(right, left) == distance)
  }

  @Test func `suggestions form a question`() {
    #expect(NearestNames.question([]).isEmpty)
    #expect(NearestNames.question(["a"]) == "; did you mean a?")
    #expect(NearestNames.question(["a", "b", "c"]) == "; did you mean a, b or c?")
  }
}
