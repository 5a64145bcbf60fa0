// Samples: spans for tests.

import Core

/// Returns a span with a number in its name.
func makeSpan(_ number: Int = 0, attributes: [SpanAttribute] = []) -> Span {
  Span(
    TraceContext(), .server, name: "GET /\(number)", start: 1_000, end: 2_000, isError: false,
    attributes: attributes)
}
