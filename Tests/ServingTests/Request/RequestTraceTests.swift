// RequestTraceTests: which requests have a trace for origins.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestTraceTests {
  private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  /// Returns the trace that the manager is told for a request with these fields.
  private func trace(
    _ headers: KeyValuePairs<String, String>, isOn: Bool = true
  ) async throws -> TraceContext? {
    let provider = TestProvider.making()
    try await withClient(provider, configure: { $0.propagatesTraces = isOn }) { client throws in
      #expect(try client.get(imageTarget, headers: headers).status == 200)
    }
    let told = provider.requests.withLock { $0.map(\.options.trace) }
    #expect(told.count == 1)
    return told.first ?? nil
  }

  @Test func `a valid traceparent is the trace, with the lines of tracestate as one list`()
    async throws
  {
    let trace = try #require(
      try await trace(["Traceparent": Self.parent, "tracestate": "a=1", "TraceState": "b=2"]))
    #expect(trace.traceID == "4bf92f3577b34da6a3ce929d0e0e4736" && trace.flags == 1)
    #expect(trace.state == "a=1,b=2")
  }

  @Test func `without a valid traceparent, with two, and by default there is no trace`()
    async throws
  {
    #expect(try await trace([:]) == nil)
    #expect(try await trace(["tracestate": "a=1"]) == nil)
    #expect(try await trace(["traceparent": "00-1-2-01", "tracestate": "a=1"]) == nil)
    #expect(try await trace(["traceparent": Self.parent, "Traceparent": Self.parent]) == nil)
    // Joined, these two would be one field of a later version with a part more.
    let later = "01\(Self.parent.dropFirst(2))-x"
    #expect(try await trace(["traceparent": later]) != nil)
    #expect(try await trace(["traceparent": later, "Traceparent": later]) == nil)
    #expect(try await trace(["traceparent": Self.parent], isOn: false) == nil)
  }
}
