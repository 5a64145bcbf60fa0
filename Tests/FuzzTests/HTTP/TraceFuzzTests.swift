// TraceFuzzTests: traceparent and tracestate against regular expressions of their grammar.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct TraceFuzzTests {
  private static let versions = ["00", "01", "cc", "ff", "fF", "0", "000", ""]
  private static let ids = [
    "4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000010000000000000000", "00f067aa0ba902b7",
    "0000000000000001", "00000000000000000000000000000000", "0000000000000000", "00F067AA0BA902B7",
    "+0f067aa0ba902b7", "é",
  ]
  private static let ends = ["", "", "-", "-more", "x", " ", ",", "-é"]
  private static let words = [
    "a=1", "b=2", "t@s=3", "a", "b", "1", "@", "=", "=", ",", ",", ", ", " ", "\t", "_", "-", "*",
    "/", "A", "é", "1@x=y z", ";", String(repeating: "k", count: 130) + "=v",
    String(repeating: "t", count: 241) + "@s=1", "v=" + String(repeating: "x", count: 256),
  ]

  /// Makes a field whose parts are sound more often than not.
  private static func makeParent(_ generator: inout SeededGenerator) -> String {
    func part(_ values: [String], sound: Int, from first: Int = 0) -> String {
      let range = generator.isOne(of: 6) ? values.indices : first..<first + sound
      return values[range].randomElement(using: &generator) ?? ""
    }
    let parts = [
      part(versions, sound: 3), part(ids, sound: 2), part(ids, sound: 2, from: 2),
      generator.pick("00", "01", "03", "ff", "0g", "1", "001"),
    ]
    return parts.joined(separator: generator.isOne(of: 20) ? "_" : "-") + part(ends, sound: 5)
  }

  @Test func `a traceparent is accepted by its grammar alone`() throws {
    // Regular expressions are not Sendable, so they are made here.
    let grammar =
      /(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?/
    var (accepted, refused) = (0, 0)
    try Fuzz.texts(
      "traceparent", usual: 4_000, make: Self.makeParent,
      check: { text in
        let match = text.wholeMatch(of: grammar)
        let isValid = match.map { $0.output.1 != "00" || $0.output.2 == nil } ?? false
        let context = TraceContext(parent: Array(text.utf8))
        try hold((context != nil) == isValid, "\(text): \(String(describing: context))")
        guard let context else { return refused += 1 }
        accepted += 1
        let passed = context.fields.first?.value ?? ""
        let next = TraceContext(parent: Array(passed.utf8))
        try hold(
          next?.traceID == context.traceID && next?.parent == context.span, "\(text): \(passed)")
      })
    #expect(accepted > 50 && refused > 50)
  }

  @Test func `a tracestate is passed by its grammar alone, within its limits`() throws {
    let member =
      /([a-z][a-z0-9_*\/\-]{0,255}|[a-z0-9][a-z0-9_*\/\-]{0,240}@[a-z][a-z0-9_*\/\-]{0,13})=[ -+\--<>-~]{1,256}/
    var (passed, left) = (0, 0)
    try Fuzz.texts(
      "tracestate", usual: 3_000, make: { $0.sentence(of: Self.words, most: 8) },
      check: { text in
        let members = text.split(separator: ",")
          .map { $0.drop { " \t".contains($0) } }
          .map { String($0.reversed().drop { " \t".contains($0) }.reversed()) }
          .filter { !$0.isEmpty }
        let keys = members.map { $0.prefix { $0 != "=" } }
        let isValid =
          members.allSatisfy { $0.wholeMatch(of: member) != nil }
          && Set(keys).count == keys.count && members.count <= TraceState.most
        let state = TraceState.passed(text)
        let kept = state.split(separator: ",").map(String.init)
        try hold(isValid || kept.isEmpty, "\(text) is passed as \(state)")
        try hold(state.utf8.count <= TraceState.longest, "\(state) is too long")
        try hold(kept.filter(members.contains) == kept, "\(text) is passed as \(state)")
        try hold(TraceState.passed(state) == state, "\(state) is not passed on")
        let isShort = members.joined(separator: ",").utf8.count <= TraceState.longest
        try hold(!isValid || !isShort || kept == members, "\(text) is passed as \(state)")
        if kept.isEmpty { left += 1 } else { passed += 1 }
      })
    #expect(passed > 50 && left > 50)
  }
}
