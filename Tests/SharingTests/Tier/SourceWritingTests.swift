// SourceWritingTests: which sources are shared, and which are removed again.

import Caching
import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) final class SourceWritingTests: SourceMachines {
  @Test func `a removed source is gone for all, and its version does not come back here`()
    async throws
  {
    let (a, b) = (try await machine(leases: false), try await machine(leases: false))
    try await share(a, try source())
    #expect(await b.find(key).name == "shared")
    b.fleet.sources?.remove(key, version: 5)
    try await eventually { await a.find(key).name == "none" }
    // Another machine writes it again, as after a 304: this one does not take it.
    try await share(a, try source())
    #expect(await a.find(key).name == "shared")
    #expect(await b.find(key).name == "none")
    #expect(b.figures.refused == 1)
    // Nor does it share it. Another version is as before.
    try b.share(try source())
    try await eventually { b.figures.dropped == 1 }
    try await share(b, try source(version: 6))
    #expect(await b.find(key).source?.version == 6)
  }

  @Test func `a source that is removed while it waits to be written is not written`() async throws {
    let (a, b) = (try await machine(leases: false), try await machine(leases: false))
    let gate = Gate()
    store.gate.withLock { $0 = gate }
    try a.share(try source())
    try await eventually { gate.waiting == 1 }
    a.fleet.sources?.remove(key, version: 5)
    gate.open()
    try await eventually { a.figures.dropped == 1 }
    #expect(await b.find(key).name == "none")
    #expect(try server.command("KEYS", "pictor:s:*") == "*0\r\n")
  }

  @Test func `a source that is not fresh is not shared`() async throws {
    let a = try await machine(leases: false)
    let stale = Source(
      key: key, file: try FileRegion.sealed(bytes), origin: OriginResponse(status: 200),
      freshness: Freshness(receivedAt: .now, lifetime: 0), version: 5)
    try a.share(stale)
    try await share(a, try source(try Self.key("/b.jpg")))
    #expect(a.figures.stores == 1 && a.figures.dropped == 0)
    #expect(await a.find(key).name == "none")
  }

  @Test func `a source larger than the queue is shared, and one behind it is dropped`() async throws
  {
    let a = try await machine(leases: false)
    let gate = Gate()
    store.gate.withLock { $0 = gate }
    let large = Source(
      key: key, file: try FileRegion.sealed([UInt8](repeating: 1, count: 33 << 20)),
      origin: OriginResponse(status: 200),
      freshness: Freshness(receivedAt: .now, lifetime: 600), version: 5)
    try a.share(large)
    try a.share(try source(try Self.key("/b.jpg")))
    #expect(a.figures.dropped == 1)
    gate.open()
    try await eventually { a.figures.stores == 1 }
  }

  @Test func `behind slow writes a source has no lease, so others load it`() async throws {
    let (a, b) = (try await machine(), try await machine())
    // Given a write that takes longer than others should wait
    let gate = Gate()
    store.gate.withLock { $0 = gate }
    try a.share(try source(try Self.key("/first.jpg")))
    try await eventually { gate.waiting == 1 }
    try await Task.sleep(for: .milliseconds(1_100))
    gate.open()
    try await eventually { a.figures.stores == 1 }
    // When four are written and four wait
    let next = Gate()
    store.gate.withLock { $0 = next }
    for number in 0..<8 {
      let other = Source(
        key: try Self.key("/\(number).jpg"), file: try FileRegion.sealed([UInt8(number)]),
        origin: OriginResponse(status: 200),
        freshness: Freshness(receivedAt: .now, lifetime: 600), version: 1)
      try a.share(other)
    }
    let lease = try await a.take(key)
    let calls = try server.calls(of: "eval")
    let wait = Task { [key] in await b.find(key) { $0.lifetime == 601 } }
    try await eventually("it waits") { try server.calls(of: "eval") >= calls + 2 }
    try a.share(try source())
    lease.end(admitting: nil)
    // Then the end of the load ends the wait, though nothing is written yet
    #expect(await wait.value.name == "none")
    next.open()
  }
}
