// DownloaderResolverTests: tests of Downloader with resolvers that are slow, or never answer.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderResolverTests {
  private let origin: Origin
  private let bytes: [UInt8] = [1, 2, 3]
  private let resolver = TestResolver()

  init() throws {
    origin = try Origin()
    origin.serve("/a", bytes: bytes)
    resolver.set("images.example", ["127.0.0.1"])
  }

  private func url(_ host: String) -> String { origin.url("/a", host: host) }

  private func downloader(
    _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) throws -> Downloader {
    try makeDownloader {
      $0.lookUp = resolver.lookUp
      $0.connectTimeout = .seconds(60)
      change(&$0)
    }
  }

  @Test(arguments: [
    "images.example", "IMAGES.example", "im%61ges.example", "images.example.", "bücher.example",
    "other_name",
  ])
  func `names in every spelling are looked up here, and not by curl`(host: String) async throws {
    for name in ["images.example.", "xn--bcher-kva.example", "other_name"] {
      resolver.set(name, ["127.0.0.1"])
    }
    let downloader = try downloader()
    #expect(try await downloader.load(url(host)).file.bytes == bytes)
    #expect(resolver.names.count == 1)
  }

  @Test func `a name is looked up once, and then remembered`() async throws {
    resolver.hold()
    defer { resolver.release() }
    let downloader = try downloader()
    let loads = (0..<3).map { _ in
      Task { [url = url("images.example")] in try await downloader.load(url) }
    }
    try await eventually("all wait") { downloader.figures.waiting == 3 }
    resolver.release()
    for load in loads { #expect(try await load.value.file.bytes == bytes) }
    let again = try await downloader.load(url("images.example"))
    #expect(again.file.bytes == bytes)
    #expect(resolver.names == ["images.example"])
    #expect(downloader.figures.names.remembered == 1)
  }

  @Test func `a resolver that never answers delays neither addresses nor known names`()
    async throws
  {
    // Given: a known name, and then many names without an answer
    let downloader = try downloader {
      $0.limit = 100
      $0.names.threads = 4
    }
    _ = try await downloader.load(url("images.example"))
    resolver.hold()
    defer { resolver.release() }
    let held = (0..<40).map { number in
      Task { [url = url("a.dead\(number).example.d\(number)")] in try await downloader.load(url) }
    }
    try await eventually("they wait") {
      downloader.figures.names.running == 4 && downloader.figures.names.waiting == 36
    }
    try await eventually("each thread asks the resolver") { resolver.names.count == 5 }
    // Then
    #expect(try await downloader.load(url("images.example")).file.bytes == bytes)
    #expect(try await downloader.load(url("127.0.0.1")).file.bytes == bytes)
    #expect(resolver.names.count == 5)
    // Loads that leave take no place in the queue. The threads stay until they have an answer.
    for task in held { task.cancel() }
    for task in held { _ = await task.result }
    try await eventually("none waits") { downloader.figures.names.waiting == 0 }
    #expect(downloader.figures.names.running == 4)
    resolver.release()
    try await eventually("no thread is left") { downloader.figures.names.running == 0 }
  }

  @Test func `names without an answer hold no slot`() async throws {
    // Given two slots, and many names without an answer
    let downloader = try downloader { $0.limit = 2 }
    _ = try await downloader.load(url("images.example"))
    resolver.hold()
    defer { resolver.release() }
    let held = (0..<40).map { number in
      Task { [url = url("a.dead\(number).d\(number)")] in try await downloader.load(url) }
    }
    try await eventually("they are looked up") { downloader.figures.names.running == 40 }
    // Then another name is loaded
    #expect(try await downloader.load(url("images.example")).file.bytes == bytes)
    #expect(downloader.figures.running == 0 && downloader.figures.waiting == 40)
    for task in held { task.cancel() }
    for task in held { _ = await task.result }
    #expect(downloader.figures.waiting == 0)
  }

  @Test func `a name without an answer in time fails with 504, and then at once`() async throws {
    // Given
    resolver.hold()
    defer { resolver.release() }
    let downloader = try downloader {
      $0.connectTimeout = .seconds(2)
      // Other checks of the transfers come before the deadline.
      $0.pace.silentAfter = .milliseconds(100)
      $0.names.negativeLifetime = .seconds(60)
    }
    // When
    let first = await downloader.failure(of: url("images.example"))
    // Then
    #expect(first?.code == "source_timeout" && first?.status == 504)
    #expect(first?.decidingKey == "download.connect_timeout")
    #expect(first?.logDetail?.contains("images.example") == true)
    #expect(downloader.figures.names.stuck == 1)
    #expect(await downloader.failure(of: url("images.example"))?.code == "source_timeout")
    #expect(resolver.names.count == 1)
    // The answer counts whenever it comes.
    resolver.release()
    try await eventually("it is known") { downloader.figures.names.stuck == 0 }
    #expect(try await downloader.load(url("images.example")).file.bytes == bytes)
    #expect(resolver.names.count == 1)
  }

  @Test func `names of one domain that wait for a thread are limited`() async throws {
    resolver.hold()
    defer { resolver.release() }
    let downloader = try downloader {
      $0.limit = 100
      $0.names.threads = 1
    }
    let held = (0..<65).map { number in
      Task { [url = url("n\(number).dead.example")] in try await downloader.load(url) }
    }
    try await eventually("they wait") { downloader.figures.names.waiting == 64 }
    let failure = await downloader.failure(of: url("more.dead.example"))
    #expect(failure?.code == "overloaded" && failure?.status == 503)
    #expect(downloader.figures.names.refused == 1)
    for task in held { task.cancel() }
    for task in held { _ = await task.result }
  }

  @Test func `shutting down does not wait for a resolver that never answers`() async throws {
    resolver.hold()
    defer { resolver.release() }
    let downloader = try downloader()
    let load = Task { [url = url("images.example")] in try await downloader.load(url) }
    try await eventually("it is looked up") { downloader.figures.names.running == 1 }
    downloader.shutDown()
    #expect((await load.result.failure as? ImageError)?.code == "draining")
  }

  @Test(arguments: [["::1", "127.0.0.1"], ["127.0.0.1", "::1"], ["10.0.0.1", "127.0.0.1"]])
  func `all addresses of a name are tried`(addresses: [String]) async throws {
    // Nothing listens on ::1, and 10.0.0.1 is refused.
    resolver.set("many.example", addresses)
    #expect(try await downloader().load(url("many.example")).file.bytes == bytes)
  }

  @Test func `with a proxy its name is looked up, and the origin's is not`() async throws {
    origin.serve("http://elsewhere.example/a", bytes: bytes)
    resolver.set("proxy.example", ["127.0.0.1"])
    let downloader = try downloader { $0.proxy = "http://proxy.example:\(origin.port)" }
    #expect(try await downloader.load("http://elsewhere.example/a").file.bytes == bytes)
    #expect(resolver.names == ["proxy.example"])
    // A proxy whose name does not exist
    let lost = try self.downloader { $0.proxy = "http://lost.example:\(origin.port)" }
    #expect(await lost.failure(of: "http://elsewhere.example/a")?.code == "source_unreachable")
  }

  @Test func `a refused name is looked up as often as one that does not exist`() async throws {
    resolver.set("payroll.example", ["127.0.0.1"])
    for name in ["payroll.example", "absent.example"] {
      for (lifetime, count) in [(Duration.zero, 2), (.seconds(60), 1)] {
        let downloader = try downloader {
          $0.allowedNetworks = []
          $0.names.negativeLifetime = lifetime
        }
        let before = resolver.names.count
        for _ in 0..<2 { #expect(await downloader.failure(of: url(name))?.status == 502) }
        #expect(resolver.names.count - before == count, "\(name), \(lifetime)")
      }
    }
    // An address that is allowed is remembered, whatever the time for the others.
    let downloader = try downloader { $0.names.negativeLifetime = .zero }
    let before = resolver.names.count
    for _ in 0..<2 { _ = try await downloader.load(url("payroll.example")) }
    #expect(resolver.names.count - before == 1)
  }
}

/// A resolver with names of its own, which answers only while it is not held.
final class TestResolver: Sendable {
  private struct State {
    var known: [String: [IPAddress]] = [:]
    var names: [String] = []
    var isHeld = false
  }

  private let state = Monitor(State())

  /// All names that were asked for.
  var names: [String] { state.change { $0.names } }

  func set(_ name: String, _ addresses: [String]) {
    state.change { $0.known[name] = addresses.compactMap { IPAddress($0) } }
  }

  func hold() { state.change { $0.isHeld = true } }
  func release() { state.change { $0.isHeld = false } }

  var lookUp: NameResolver.Look {
    { [state] name in
      state.change { $0.names.append(name) }
      let addresses = state.wait { state -> [IPAddress]?? in
        state.isHeld ? nil : .some(state.known[name])
      }
      guard let found = addresses ?? nil else { return .failure(.unknown("no such name")) }
      return .success(found)
    }
  }
}
