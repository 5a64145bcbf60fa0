// SharedFailuresTests: failed URLs that machines share through a real Redis.

import Caching
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Sharing

/// A machine that shares failures.
private final class Machine: Sendable {
  let fleet: Fleet

  init(_ server: RedisServer, limits: String, change: (inout FleetSettings) -> Void) throws {
    var settings = FleetSettings()
    settings.timeout = .seconds(10)
    settings.retryInterval = .milliseconds(20)
    settings.leaseWait = .seconds(60)
    change(&settings)
    let address = try #require(RedisAddress(server.address))
    var configuration = FleetConfiguration(address: address, settings: settings, folder: nil)
    configuration.limits = limits
    configuration.leaseTiming.poll = .seconds(60)
    fleet = try Fleet(
      configuration, coding: StoredVariantCoding(memory: .unlimited),
      sourceCoding: StoredSourceCoding(), log: .silent)
    fleet.start { _ in }
  }

  deinit { Task { [fleet] in await fleet.stop() } }

  var figures: FleetFigures { fleet.figures }

  func failure(of key: CacheKey) async -> SharedFailure? {
    await fleet.look(for: key, generation: 0, withFailure: true, takingLease: false).failure
  }
}

@Suite(.onOwnThreads) struct SharedFailuresTests {
  private let server: RedisServer
  private let url: SourceURL
  private let variant: CacheKey

  init() throws {
    server = try RedisServer()
    url = try SourceURL(parsing: "http://origin/a.jpg")
    var transform = Transform()
    transform.scale = 0.5
    variant = CacheKey(source: url, transform: transform)
  }

  private func machine(
    limits: String = "", change: (inout FleetSettings) -> Void = { _ in }
  ) async throws -> Machine {
    let machine = try Machine(server, limits: limits, change: change)
    try await eventually("the machine has read the stream") {
      machine.fleet.isSynchronised && machine.figures.isConnected
        && (machine.fleet.leases == nil || machine.fleet.client.isReady(.notices))
    }
    return machine
  }

  private func share(
    _ error: ImageError = .sourceNotFound(status: 404), seconds: Int = 600, from machine: Machine
  ) async throws {
    let count = machine.figures.failedURLsShared
    machine.fleet.share(
      SharedFailure(key: variant.source, error: error, seconds: seconds, clientSeconds: 200),
      since: try #require(machine.fleet.mark))
    try await eventually { machine.figures.failedURLsShared == count + 1 }
  }

  /// The name of the only entry.
  private func name() throws -> String {
    try #require(
      try server.command("KEYS", "pictor:f:*").split(separator: "\r\n").last.map(String.init))
  }

  @Test(arguments: [
    ImageError.sourceNotFound(status: 404), .sourceNotFound(status: 410),
    .sourceTooLarge(limit: 1_000, key: "hosts"), .unsupportedFormat(detail: "text"),
    .undecodable(detail: "the end is missing: é"), .tooManyPixels(pixels: 3 << 40, limit: 2),
    .tooManyFrames(frames: 3, limit: 2),
  ])
  func `another machine finds a failure, also one without shared variants`(error: ImageError)
    async throws
  {
    let (a, b) = (try await machine(), try await machine { $0.variantLimit = 0 })
    #expect(await b.failure(of: variant) == nil)
    try await share(error, from: a)
    let found = try #require(await b.failure(of: variant))
    #expect(found.error == error && found.key == variant.source)
    #expect((1...600).contains(found.seconds))
    #expect(found.clientSeconds == 200 - (600 - found.seconds))
    #expect(b.figures.failedURLsFound == 1 && b.figures.misses == 0)
  }

  @Test func `the time that is left is Redis'`() async throws {
    let (a, b) = (try await machine(), try await machine())
    try await share(from: a)
    try server.command("PEXPIRE", try name(), "500500")
    let found = try #require(await b.failure(of: variant))
    #expect((400...501).contains(found.seconds))
    #expect(found.clientSeconds == max(200 - (600 - found.seconds), 0))
  }

  @Test(arguments: [
    ImageError.ofVariant(.undecodable(detail: "two workers crashed")), .tooCostly(reason: "memory"),
    .outOfMemory(detail: ""), .overloaded(queue: "imaging", retryAfter: 1), .draining, .revoked,
    .cancelled, .sourceUnreachable(detail: ""), .sourceTimeout(detail: ""), .sourceTLS(detail: ""),
    .sourceIncomplete(detail: ""), .sourceError(status: 503), .internal(detail: ""),
    .deadlineExceeded, .imagingTimeout, .notCached, .tooManyRedirects(limit: 1),
    .forbiddenSource(reason: "", detail: ""), .watermark(.sourceNotFound(status: 404)),
  ])
  func `what may be one machine's own failure is not shared`(error: ImageError) throws {
    let failure = SharedFailure(
      key: variant.source, error: error, seconds: 600, clientSeconds: 600)
    #expect(SharedFailureCoding.encode(failure, since: mark) == nil)
  }

  @Test func `a purge on either machine, and removal on either, end a failure`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let host = try #require(HostPattern("origin"))
    let scopes: [PurgeScope] = [
      .url(url), .prefix(try SourceURL(parsing: "http://origin/a")), .host(host), .everything,
      .failures(url), .failures(nil),
    ]
    for (number, scope) in scopes.enumerated() {
      try await share(from: a)
      #expect(await b.failure(of: variant) != nil, "\(scope)")
      let before = try #require(a.fleet.mark)
      let purging = number % 2 == 0 ? a : b
      try await purging.fleet.publish(
        scope, number: purging.fleet.beginPurge(scope), isDurable: true)
      // The machine that purges knows at once.
      #expect(await purging.failure(of: variant) == nil, "\(scope)")
      let other = number % 2 == 0 ? b : a
      try await eventually("\(scope)") { await other.failure(of: variant) == nil }
      // Both have read it: later failures have a later mark, if only by its number within the millisecond.
      try await eventually("\(scope)") {
        guard let mark = a.fleet.mark else { return false }
        return mark == b.fleet.mark && mark != before
      }
    }
    let others = [
      try SourceURL(parsing: "http://origin/b.jpg"), try SourceURL(parsing: "http://o/"),
    ]
    for other in others {
      try await a.fleet.publish(
        .failures(other), number: a.fleet.beginPurge(.failures(other)), isDurable: true)
    }
    try await eventually { b.figures.purgesApplied + a.figures.purgesApplied == 8 }
    try await eventually { a.fleet.mark == b.fleet.mark }
    try await share(from: a)
    #expect(await a.failure(of: variant) != nil)
    #expect(await b.failure(of: variant) != nil)
  }

  @Test func `a failure with a mark of before a purge is refused, whenever it is written`()
    async throws
  {
    let (a, b) = (try await machine(), try await machine())
    let mark = try #require(a.fleet.mark)
    try await b.fleet.publish(
      .failures(nil), number: b.fleet.beginPurge(.failures(nil)), isDurable: true)
    try await eventually { a.figures.purgesApplied == 1 }
    a.fleet.share(
      SharedFailure(
        key: variant.source, error: .sourceNotFound(status: 404), seconds: 600, clientSeconds: 600),
      since: mark)
    try await eventually { a.figures.failedURLsShared == 1 }
    #expect(await a.failure(of: variant) == nil)
    #expect(await b.failure(of: variant) == nil)
    #expect(a.figures.failedURLsRefused == 1)
  }

  @Test func `success removes a failure`() async throws {
    let (a, b) = (try await machine(), try await machine())
    try await share(from: a)
    b.fleet.removeFailure(of: variant.source)
    try await eventually { try server.command("KEYS", "pictor:f:*") == "*0\r\n" }
    #expect(await a.failure(of: variant) == nil)
  }

  @Test func `machines of other limits, and those that share no failures, see none`() async throws {
    let (a, b) = (try await machine(limits: "1"), try await machine(limits: "2"))
    let none = try await machine(limits: "1") { $0.failures = false }
    try await share(from: a)
    #expect(await a.failure(of: variant) != nil)
    #expect(await b.failure(of: variant) == nil)
    #expect(await none.failure(of: variant) == nil)
    none.fleet.share(
      SharedFailure(
        key: variant.source, error: .sourceNotFound(status: 404), seconds: 600, clientSeconds: 600),
      since: try #require(none.fleet.mark))
    none.fleet.removeFailure(of: variant.source)
    #expect(await a.failure(of: variant) != nil)
  }

  @Test func `garbage, a failure of another source and one without a fitting TTL are refused`()
    async throws
  {
    let (a, b) = (try await machine(), try await machine())
    try await share(from: a)
    let name = try name()
    let cases: [[String]] = [
      ["SETRANGE", name, "120", "garbage"], ["SET", name, "", "PX", "60000"],
      ["SET", name, String(repeating: "a", count: 1 << 20), "PX", "60000"],
      ["SET", name, "1", "PX", "60000"],
    ]
    for (number, command) in cases.enumerated() {
      try server.command(command)
      #expect(await b.failure(of: variant) == nil, "\(command.prefix(1)) \(number)")
      #expect(b.figures.failedURLsRefused == number + 1)
    }
    for command in [["PERSIST", name], ["PEXPIRE", name, "700000"]] {
      try await share(from: a)
      try server.command(command)
      #expect(await b.failure(of: variant) == nil, "\(command)")
    }
    try await share(from: a)
    let other = CacheKey(source: try SourceURL(parsing: "http://origin/b.jpg"))
    b.fleet.share(
      SharedFailure(
        key: other, error: .sourceNotFound(status: 404), seconds: 600, clientSeconds: 600),
      since: try #require(b.fleet.mark))
    try await eventually { b.figures.failedURLsShared == 1 }
    let names = try server.command("KEYS", "pictor:f:*").split(separator: "\r\n").map(String.init)
    let otherName = try #require(names.first { $0.hasPrefix("pictor:f:") && $0 != name })
    try server.command("COPY", otherName, name, "REPLACE")
    #expect(await b.failure(of: variant) == nil)
    #expect(await b.failure(of: other) != nil)
    try server.command("DEL", name)
    try server.command("LPUSH", name, "a")
    #expect(await b.failure(of: variant) == nil)
  }

  @Test func `with Redis away failures are dropped, and nothing is found`() async throws {
    let a = try await machine()
    let mark = try #require(a.fleet.mark)
    try await share(from: a)
    server.kill()
    try await eventually { !a.fleet.client.isReady() }
    a.fleet.share(
      SharedFailure(
        key: variant.source, error: .sourceNotFound(status: 404), seconds: 600, clientSeconds: 600),
      since: mark)
    #expect(a.figures.failedURLsDropped == 1)
    #expect(await a.failure(of: variant) == nil)
  }

  @Test func `a machine that waits for another's work gets its failure`() async throws {
    let (a, b) = (try await machine(), try await machine())
    @Sendable func lease(_ machine: Machine) async -> LeaseOutcome<Variant> {
      await machine.fleet.lease(
        LeaseRequest(key: variant, waits: true, generation: { 0 }, accepts: { _ in true }))
    }
    guard case .held(let held) = await lease(a) else {
      Issue.record("the lease is not free")
      return
    }
    let before = try server.calls(of: "eval")
    let wait = Task { await lease(b) }
    try await eventually("the machine waits") { try server.calls(of: "eval") >= before + 2 }
    // As a failing flight does: the failure first, then the end of the lease.
    a.fleet.share(
      SharedFailure(
        key: variant.source, error: .sourceNotFound(status: 404), seconds: 600, clientSeconds: 600),
      since: try #require(a.fleet.mark))
    held.end(admitting: nil)
    guard case .failed(let failure) = await wait.value else {
      Issue.record("no failure")
      return
    }
    #expect(failure.error == .sourceNotFound(status: 404))
  }

  // MARK: Bytes

  private let mark = SharedMark(epoch: "abc", milliseconds: 1_700_000_000_000, number: 3)

  private func encoded(_ error: ImageError = .undecodable(detail: "x")) throws -> [UInt8] {
    try #require(
      SharedFailureCoding.encode(
        SharedFailure(key: variant.source, error: error, seconds: 600, clientSeconds: 60),
        since: mark))
  }

  @Test func `damaged and cut entries are rejected`() throws {
    let bytes = try encoded()
    let read = try #require(SharedFailureCoding.decode(bytes, as: variant.source))
    #expect(read.0 == mark && read.1.clientSeconds == 60)
    for index in bytes.indices where !(2..<21).contains(index) {
      var damaged = bytes
      damaged[index] ^= 0x41
      #expect(SharedFailureCoding.decode(damaged, as: variant.source) == nil, "byte \(index)")
    }
    for count in bytes.indices {
      #expect(SharedFailureCoding.decode(Array(bytes.prefix(count)), as: variant.source) == nil)
    }
  }

  @Test func `entries with a right checksum and wrong content are rejected`() throws {
    let content = Array(try #require(SharedEntry.read(try encoded())).1)
    func isRead(_ change: (inout [UInt8]) -> Void) -> Bool {
      var content = content
      change(&content)
      return SharedFailureCoding.decode(SharedEntry.bytes(mark, content), as: variant.source) != nil
    }
    #expect(isRead { _ in })
    // Version, kind, a 404 with status 0, seconds of 0 and of years, more seconds for clients, the text's length,
    // control characters, UTF-8, and the key.
    #expect(!isRead { $0[0] = 2 })
    #expect(!isRead { $0[1] = 7 })
    #expect(!isRead { $0[1] = 1 })
    #expect(!isRead { $0.replaceSubrange(18..<22, with: [0, 0, 0, 0]) })
    #expect(!isRead { $0[18] = 0xff })
    #expect(!isRead { $0[22] = 1 })
    #expect(!isRead { $0[27] = 2 })
    #expect(!isRead { $0[26] = 0xff })
    #expect(!isRead { $0[28] = 0x1b })
    #expect(!isRead { $0[28] = 0xff })
    #expect(!isRead { $0.append(UInt8(ascii: "x")) })
    #expect(!isRead { $0.removeLast() })
  }

  @Test func `texts are bounded and have no control characters`() throws {
    let long = String(repeating: "é", count: 5_000)
    for (text, expected) in [(long, String(long.prefix(256))), ("a\u{1b}[31m\n", "a?[31m?")] {
      let bytes = try encoded(.undecodable(detail: text))
      let read = SharedFailureCoding.decode(bytes, as: variant.source)
      #expect(read?.1.error == .undecodable(detail: expected))
    }
  }
}
