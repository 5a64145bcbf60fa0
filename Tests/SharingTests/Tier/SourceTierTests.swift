// SourceTierTests: how machines share sources.

import Caching
import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) final class SourceTierTests: SourceMachines {
  @Test(arguments: [true, false])
  func `another machine gets the bytes, the response and the version`(leases: Bool) async throws {
    let (a, b) = (try await machine(leases: leases), try await machine(leases: leases))
    try await share(a, try source())
    let found = try #require(await b.find(key).source)
    var read = [UInt8](repeating: 0, count: found.file.count)
    _ = pread(found.file.descriptor, &read, read.count, off_t(found.file.offset))
    #expect(read == bytes && found.version == 5 && found.generation == 7)
    #expect(found.origin.etag == "\"e\"" && found.freshness.lifetime == 600)
    #expect(b.figures.hits == 1)
    // No lease is left.
    try await eventually { try server.command("KEYS", "pictor:l:*") == "*0\r\n" }
  }

  @Test func `of three machines one loads, and the others wait for what it shares`() async throws {
    let (a, b, c) = (try await machine(), try await machine(), try await machine())
    let lease = try await a.take(key)
    let calls = try server.calls(of: "eval")
    let waits = [b, c].map { machine in Task { [key] in await machine.find(key) } }
    try await eventually("both wait") { try server.calls(of: "eval") >= calls + 4 }
    try a.share(try source())
    lease.end(admitting: nil)
    for wait in waits { #expect(await wait.value.name == "shared") }
    #expect(store.writes.value == 1)
    try await eventually { try server.command("KEYS", "pictor:[lwn]:*") == "*0\r\n" }
  }

  @Test func `a load without a source to share lets others load`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    let calls = try server.calls(of: "eval")
    let wait = Task { [key] in await b.find(key) }
    try await eventually("it waits") { try server.calls(of: "eval") >= calls + 2 }
    lease.end(admitting: nil)
    #expect(await wait.value.name == "none")
  }

  @Test func `a load that fails is told to those that wait`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    let calls = try server.calls(of: "eval")
    let wait = Task { [key] in await b.find(key) }
    try await eventually("it waits") { try server.calls(of: "eval") >= calls + 2 }
    a.fleet.share(
      SharedFailure(
        key: key, error: .sourceNotFound(status: 404), seconds: 60, clientSeconds: 60),
      since: try #require(a.fleet.mark))
    lease.end(admitting: nil)
    #expect(await wait.value.name == "failed")
  }

  @Test func `a store that refuses ends the lease`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    let gate = Gate()
    store.gate.withLock { $0 = gate }
    try a.share(try source())
    lease.end(admitting: nil)
    let calls = try server.calls(of: "eval")
    let wait = Task { [key] in await b.find(key) }
    try await eventually("it waits") { try server.calls(of: "eval") >= calls + 2 }
    store.isUp.withLock { $0 = false }
    gate.open()
    #expect(await wait.value.name == "none")
    try await eventually { a.figures.dropped == 1 }
  }

  @Test func `a store that is away costs neither lease nor wait`() async throws {
    let a = try await machine()
    store.isUp.withLock { $0 = false }
    #expect(await a.find(key).name == "none")
    try a.share(try source())
    #expect(a.figures.dropped == 1 && store.reads.value == 0)
    #expect(try server.command("KEYS", "pictor:[ls]:*") == "*0\r\n")
  }

  @Test func `a purge on one machine covers the source on all`() async throws {
    let (a, b) = (try await machine(), try await machine())
    try await share(a, try source())
    let url = try SourceURL(parsing: "http://origin/a.jpg")
    try await b.fleet.publish(.url(url), number: b.fleet.beginPurge(.url(url)), isDurable: true)
    try await eventually("a has read it") { a.fleet.figures.purgesApplied == 1 }
    for machine in [a, b] {
      let outcome = await machine.find(key)
      #expect(outcome.name == "held" && machine.figures.refused == 1)
      if case .held(let lease) = outcome { lease.end(admitting: nil) }
      try await eventually { try server.command("KEYS", "pictor:l:*") == "*0\r\n" }
    }
    #expect(store.reads.value == 0)
  }

  @Test func `damaged, short and lost bytes are no source, and are sent again`() async throws {
    let (a, b) = (try await machine(leases: false), try await machine(leases: false))
    try await share(a, try source())
    let name = try #require(store.entries.withLock { $0.keys.first })
    var damaged = bytes
    damaged[100] ^= 1
    for (bad, counts) in [
      (damaged, (refused: 1, misses: 0)), (Array(bytes.dropLast()), (refused: 2, misses: 0)),
      (nil, (refused: 2, misses: 1)),
    ] {
      store.entries.withLock { $0[name] = bad }
      #expect(await b.find(key).name == "none")
      #expect(b.figures.refused == counts.refused && b.figures.misses == counts.misses)
    }
    try await share(b, try source())
    #expect(await b.find(key).name == "shared" && store.entries.withLock { $0[name] } == bytes)
  }

  @Test func `garbage in Redis is no source`() async throws {
    let a = try await machine(leases: false)
    try await share(a, try source())
    let entry = "pictor:" + LeaseName(.source, of: key).entry
    let mark = try #require(a.fleet.mark)
    let other = SourceEntry(
      digest: SharedEntry.digest(bytes[...]), count: bytes.count,
      metadata: StoredSourceCoding().encode(try source(try Self.key("/b.jpg"))))
    let contents = [
      other.bytes, SourceEntry(digest: other.digest, count: 1 << 40, metadata: []).bytes,
      Array(other.bytes.prefix(71)), [UInt8](repeating: 0xff, count: 200),
    ]
    for (number, content) in contents.enumerated() {
      let parts = [Array("SET".utf8), Array(entry.utf8), SharedEntry.bytes(mark, content)]
      _ = try await a.fleet.client.send([RedisCommand(parts)])
      #expect(await a.find(key).name == "none")
      #expect(a.figures.refused == number + 1)
    }
    #expect(store.reads.value == 0)
  }

  @Test func `a source that is too old is not fetched`() async throws {
    let (a, b) = (try await machine(), try await machine())
    try await share(a, try source())
    let outcome = await b.find(key) { _ in false }
    #expect(outcome.name == "held" && store.reads.value == 0)
    if case .held(let lease) = outcome { lease.end(admitting: nil) }
  }

  @Test func `equal bytes are sent once, and a renewed source not again`() async throws {
    let a = try await machine()
    try await share(a, try source())
    try await share(a, try source(version: 5))
    try await share(a, try source(try Self.key("/copy.jpg"), version: 6))
    #expect(store.writes.value == 1)
    #expect(await a.find(try Self.key("/copy.jpg")).source?.version == 6)
  }

  @Test func `an upload is not decoded`() throws {
    var origin = OriginResponse(status: 200)
    origin.isUploaded = true
    let coding = StoredSourceCoding()
    let upload = Source(
      key: key, file: try FileRegion.sealed(bytes), origin: origin,
      freshness: Freshness(receivedAt: .now, lifetime: 600))
    let decoded = coding.encode(upload).withUnsafeBytes {
      coding.decode($0, as: key, generation: 0)
    }
    #expect(decoded == nil)
  }
}
