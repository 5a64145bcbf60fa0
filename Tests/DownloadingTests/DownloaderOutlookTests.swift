// DownloaderOutlookTests: what the downloader says of a load without making it.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderOutlookTests {
  private func error(_ url: String, by downloader: Downloader) async throws -> ImageError? {
    await downloader.outlook(for: try SourceURL(parsing: url))?.error
  }

  @Test func `an address that a load would be refused for is refused`() async throws {
    let downloader = try makeDownloader()
    defer { downloader.shutDown() }
    for url in [
      "http://169.254.169.254/latest", "http://10.0.0.1/a.jpg", "http://0x0a000001/a.jpg",
      "http://[fd00::1]/a.jpg",
    ] {
      let found = try #require(try await error(url, by: downloader), "\(url)")
      #expect(found.status == 403, "\(url)")
      await #expect(throws: found) { try await downloader.load(try SourceURL(parsing: url)) }
    }
    #expect(try await error("http://127.0.0.1/a.jpg", by: downloader) == nil)
  }

  @Test func `a name is looked up, and judged as for a load`() async throws {
    let resolver = TestResolver()
    resolver.set("images.example", ["127.0.0.1"])
    resolver.set("metadata.example", ["169.254.169.254"])
    resolver.set("mixed.example", ["169.254.169.254", "127.0.0.1"])
    let downloader = try makeDownloader { $0.lookUp = resolver.lookUp }
    defer { downloader.shutDown() }
    for name in ["images.example", "mixed.example"] {
      #expect(try await error("http://\(name)/a.jpg", by: downloader) == nil, "\(name)")
    }
    for name in ["metadata.example", "no.example", "not*a.name.example"] {
      let url = "http://\(name)/a.jpg"
      let found = try #require(try await error(url, by: downloader), "\(name)")
      await #expect(throws: found) { try await downloader.load(try SourceURL(parsing: url)) }
    }
  }

  @Test func `a resolver that does not answer delays an outlook until the deadline, or the end`()
    async throws
  {
    let resolver = TestResolver()
    resolver.hold()
    defer { resolver.release() }
    let downloader = try makeDownloader {
      $0.lookUp = resolver.lookUp
      $0.connectTimeout = .milliseconds(20)
    }
    let late = try await error("http://slow.example/a.jpg", by: downloader)
    #expect(late?.code == "source_timeout")
    downloader.shutDown()
    let patient = try makeDownloader {
      $0.lookUp = resolver.lookUp
      $0.connectTimeout = .seconds(60)
    }
    async let outlook = error("http://slow.example/a.jpg", by: patient)
    try await eventually("the name is looked up") { resolver.names.count == 2 }
    patient.shutDown()
    #expect(try await outlook == .draining)
  }

  @Test func `this server and localhost names are refused, and names behind a proxy unknown`()
    async throws
  {
    let downloader = try makeDownloader { $0.allowedNetworks = [] }
    defer { downloader.shutDown() }
    #expect(try await error("http://localhost/a.jpg", by: downloader)?.status == 403)
    let open = try makeDownloader()
    defer { open.shutDown() }
    open.refuse(own: [try #require(ListenAddress("127.0.0.1:8080"))])
    #expect(try await error("http://127.0.0.1:8080/a.jpg", by: open)?.status == 403)
    let proxied = try makeDownloader { $0.proxy = "http://127.0.0.1:3128" }
    defer { proxied.shutDown() }
    #expect(try await error("http://10.0.0.1/a.jpg", by: proxied)?.status == 403)
    #expect(try await error("http://inside.example/a.jpg", by: proxied) == nil)
  }

  @Test func `a kept connection is held to networks that are allowed no more`() async throws {
    let origin = try Origin()
    origin.serve("/a.jpg", bytes: [0xff, 0xd8, 0xff])
    let downloader = try makeDownloader()
    defer { downloader.shutDown() }
    let url = try SourceURL(parsing: origin.url("/a.jpg"))
    _ = try await downloader.load(url)
    var configuration = DownloaderConfiguration()
    configuration.retries = 0
    downloader.apply(configuration)
    await #expect(throws: ImageError.self) { try await downloader.load(url) }
    #expect(origin.requests(to: "/a.jpg") == 1)
  }
}
