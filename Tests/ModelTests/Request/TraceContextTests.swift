// Tests of TraceContext: what is read of traceparent and tracestate, and what is passed.

import Testing

@testable import Core

struct TraceContextTests {
  private static let ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

  private func context(_ field: String, state: String = "") -> TraceContext? {
    TraceContext(parent: Array(field.utf8), state: state)
  }

  @Test(arguments: [
    ("00-\(ids)-01", "01"), ("00-\(ids)-00", "00"), ("00-\(ids)-03", "03"), ("00-\(ids)-ff", "03"),
    ("cc-\(ids)-01", "01"), ("cc-\(ids)-01-more-parts", "01"), ("01-\(ids)-01-", "01"),
  ])
  func `the trace and the known flags are passed with a parent of its own`(
    field: String, flags: String
  ) throws {
    let context = try #require(self.context(field))
    #expect(context.traceID == "4bf92f3577b34da6a3ce929d0e0e4736")
    #expect(context.parent == 0x00f0_67aa_0ba9_02b7)
    #expect(context.fields.map(\.name) == ["traceparent"])
    let passed = try #require(context.fields.first).value
    #expect(passed.hasPrefix("00-\(context.traceID)-") && passed.hasSuffix("-" + flags))
    #expect(passed.utf8.count == 55)
    // What is passed is valid, and names this server's span.
    let next = try #require(self.context(passed))
    #expect(next.parent == context.span && next.parent != context.parent)
  }

  @Test(arguments: [
    "", "---", "00-\(ids)", "00-\(ids)-", "00-\(ids)-0", "00-\(ids)-001", "00-\(ids)-01-",
    "00-\(ids)-01-more", "00-\(ids)-01.more", "cc-\(ids)-01.more", "ff-\(ids)-01", "0-\(ids)-01",
    "000-\(ids)-01", " 00-\(ids)-01", "00-\(ids)-0G", "00-\(ids)-0A", "0x-\(ids)-01",
    "00-\(ids)-01,00-\(ids)-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7a-01",
    "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  ])
  func `an invalid traceparent is ignored`(field: String) {
    #expect(context(field) == nil)
  }

  @Test func `each half of an id may be zero`() throws {
    let high = "00-00000000000000010000000000000000-00f067aa0ba902b7-01"
    let low = "00-00000000000000000000000000000001-00f067aa0ba902b7-01"
    #expect(context(high)?.traceID == "00000000000000010000000000000000")
    #expect(context(low)?.traceID == "00000000000000000000000000000001")
  }

  @Test func `a trace of its own is sampled and has no parent`() throws {
    let context = TraceContext()
    #expect(context.isSampled && context.parent == nil && context.flags == 3)
    #expect(context.parentID == nil && context.traceID != TraceContext().traceID)
    #expect(!context.sampled(false).isSampled && context.sampled(false).sampled(true) == context)
    // What an origin gets is valid.
    let field = try #require(context.fields.first).value
    #expect(self.context(field)?.parent == context.span)
  }

  @Test func `a child has the trace of its parent, and an id of its own`() throws {
    let parent = try #require(context("00-\(Self.ids)-01", state: "a=1"))
    let child = parent.child()
    #expect(child.traceID == parent.traceID && child.state == "a=1" && child.isSampled)
    #expect(child.parentID == parent.spanID && child.span != parent.span)
  }

  @Test(arguments: [("01", true), ("00", false), ("03", true), ("02", false), ("0g", nil)])
  func `the sampled flag is read alone`(flags: String, isSampled: Bool?) {
    let field = Array("00-\(Self.ids)-\(flags)".utf8)
    #expect(field.withUnsafeBytes { TraceContext.isSampled(parent: $0) } == isSampled)
  }

  @Test(arguments: [
    ("", ""), ("a=1", "a=1"), (" a=1 ,\tb=2,, ", "a=1,b=2"), ("t@v_-*/0=x y!", "t@v_-*/0=x y!"),
    ("a", ""), ("=1", ""), ("a=", ""), ("A=1", ""), ("a=1=2", ""), ("a=1,b", ""), ("a=1,a=2", ""),
    ("a=\u{1}", ""), ("a=é", ""), ("a b=1", ""), ("a =1", ""), ("a.b=1", ""), ("a= 1", "a= 1"),
    ("1=1", ""), ("_a=1", ""), ("1@a=1", "1@a=1"), ("a@1=1", ""), ("@a=1", ""), ("a@=1", ""),
    ("a@@b=1", ""), ("a@b@c=1", ""),
  ])
  func `a tracestate is passed as a whole if it is valid`(state: String, passed: String) throws {
    #expect(try #require(context("00-\(Self.ids)-01", state: state)).state == passed)
  }

  @Test func `a tracestate is limited in members and length, and loses long members first`() throws
  {
    func passed(_ members: [String]) throws -> String {
      try #require(context("00-\(Self.ids)-01", state: members.joined(separator: ","))).state
    }
    let few = (0..<32).map { "k\($0)=1" }
    #expect(try passed(few) == few.joined(separator: ","))
    #expect(try passed(few + ["k32=1"]).isEmpty)
    #expect(try passed((0..<10_000).map { "k\($0)=1" }).isEmpty)

    let long = "long=" + String(repeating: "x", count: 200)
    let short = (0..<4).map { "s\($0)=" + String(repeating: "y", count: 97) }
    #expect(try passed([long] + short) == short.joined(separator: ","))
    let many = (0..<8).map { "s\($0)=" + String(repeating: "y", count: 97) }
    #expect(try passed(many) == many[..<5].joined(separator: ","))
    #expect(try passed(["a=" + String(repeating: "x", count: 256)]).utf8.count == 258)
    #expect(try passed(["a=" + String(repeating: "x", count: 257)]).isEmpty)
    for (key, isValid) in [
      (String(repeating: "k", count: 256), true), (String(repeating: "k", count: 257), false),
      (String(repeating: "t", count: 241) + "@s", true),
      (String(repeating: "t", count: 242) + "@s", false),
      ("t@" + String(repeating: "s", count: 14), true),
      ("t@" + String(repeating: "s", count: 15), false),
    ] {
      #expect(try passed([key + "=1"]) == (isValid ? key + "=1" : ""))
    }
  }
}
