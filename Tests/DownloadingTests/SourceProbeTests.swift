// SourceProbeTests: the dry run finds what would be loaded, and connects to nothing.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SourceProbeTests {
  private let origin: Origin
  private let folder: TemporaryFolder

  init() throws {
    origin = try Origin()
    origin.serve("/a", bytes: [1, 2, 3])
    folder = try TemporaryFolder()
    try folder.write("a.jpg", bytes: [1])
  }

  private func probe(
    port: Int = 0, _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) throws -> SourceProbe {
    var configuration = DownloaderConfiguration()
    change(&configuration)
    return try SourceProbe(
      configuration, local: LocalFiles(root: folder.path, lifetime: 60),
      own: [ListenAddress(host: "0.0.0.0", port: port)])
  }

  private func isOpen(_ source: String, by probe: SourceProbe, isRedirect: Bool) async -> Bool {
    if case .open = await probe.finding(for: source, isRedirect: isRedirect) { true } else { false }
  }

  @Test(arguments: [false, true])
  func `a source is open if its network is allowed, and nothing connects to it`(isRedirect: Bool)
    async throws
  {
    let loopback = try #require(CIDR("127.0.0.0/8"))
    let open = try probe { $0.allowedNetworks = [loopback] }
    let closed = try probe()
    for host in ["127.0.0.1", "127.1", "localhost"] {
      let url = origin.url("/a", host: host)
      #expect(
        await open.finding(for: url, isRedirect: isRedirect)
          == .open("would connect to 127.0.0.1 port \(origin.port)"))
      #expect(await !isOpen(url, by: closed, isRedirect: isRedirect), "\(host)")
    }
    #expect(await isOpen("http://192.88.98.1/a", by: closed, isRedirect: isRedirect))
    #expect(origin.connections == 0)
  }

  @Test func `lists, ports, this server and a proxy count in a dry run as in a load`() async throws
  {
    let everything = try #require(CIDR("0.0.0.0/0"))
    let denied = [try #require(SourcePattern("*/private"))]
    let probe = try probe(port: origin.port) {
      $0.allowedNetworks = [everything]
      $0.hosts.denied = denied
    }
    for isRedirect in [false, true] {
      for url in [
        origin.url("/a"), "http://127.0.0.1/private", "http://127.0.0.1:25/a",
        "http://169.254.169.254/", "file:///etc/passwd", "local:///../a.jpg",
      ] {
        #expect(await !isOpen(url, by: probe, isRedirect: isRedirect), "\(url)")
      }
    }
    #expect(await isOpen("local:///a.jpg", by: probe, isRedirect: false))
    #expect(await !isOpen("local:///a.jpg", by: probe, isRedirect: true))
    let proxied = try self.probe { $0.proxy = "http://127.0.0.1:\(origin.port)" }
    #expect(
      await proxied.finding(for: "http://images.example/a", isRedirect: true)
        == .open("would connect to a proxy for images.example:80"))
    #expect(await !isOpen("http://10.0.0.1/a", by: proxied, isRedirect: true))
    #expect(origin.connections == 0)
  }
}
