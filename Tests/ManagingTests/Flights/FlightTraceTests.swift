// FlightTraceTests: whose trace a shared download and a background revalidation have.

import Core
import TestSupport
import Testing

@testable import Managing

final class FlightTraceTests: StaleTests {
  private func traced(_ number: Int) throws -> ImageRequest {
    var request = try request()
    let field = "00-4bf92f3577b34da6a3ce929d0e0e473\(number)-00f067aa0ba902b7-01"
    let trace = try #require(TraceContext(parent: Array(field.utf8)))
    request.options.trace = trace
    return request
  }

  @Test func `requests of different traces share a flight, which has the first one's trace`()
    async throws
  {
    let (first, second) = (try traced(1), try traced(2))
    #expect(FlightKey(first) == FlightKey(second) && first.key == second.key)
    #expect(SourceFlightKey(first) == SourceFlightKey(second))
    let deliveries = [asking(first)]
    try await eventually { [loader] in loader.started.value == 1 }
    let joined = asking(second)
    openAll()
    for delivery in deliveries + [joined] { _ = try await delivery.value }
    #expect(loader.requests.withLock { $0.map(\.trace) } == [first.options.trace])
  }

  @Test func `a background revalidation has no trace of a client`() async throws {
    try await makeStale(whileRevalidate: 10)
    let request = try traced(1)
    _ = try #require(manager.deliveryAtOnce(for: request))
    try await eventually { [loader] in loader.started.value == 2 }
    #expect(loader.requests.withLock { $0.map(\.trace) } == [nil, nil])
    try await waitUntilFresh(request)
  }
}
