// A burst: thousands of concurrent requests over hundreds of hosts, some of which never respond.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct BurstTests {
  private static let hosts = 500
  private static let deadHosts = 50

  /// One request of the burst.
  private struct Asked {
    let client: HTTPClient
    let target: String
  }

  @Test func `unresponsive hosts do not delay others in a burst over 500 hosts`() throws {
    // Given: hosts at this machine's addresses; one in ten accepts connections and never reads
    let folder = try TemporaryFolder()
    let origin = try Origin(on: "0.0.0.0")
    let dead = try Origin(on: "0.0.0.0", answers: false)
    let image = try TestImages.jpeg(width: 8, height: 6)
    // A request takes about four descriptors here, and a sanitized server several times as long.
    let count = min(TestBuild.isThreadSanitized ? 1_000 : 2_000, openFilesAllow(2_000) * 2)
    var live: [String] = []
    var doomed: [String] = []
    for number in 0..<count {
      let host = number % Self.hosts
      let path = "/\(number).jpg"
      let address = "127.1.\(host / 250).\(host % 250 + 1)"
      if host.isMultiple(of: Self.hosts / Self.deadHosts) {
        doomed.append(encoded(dead.url(path, host: address)))
      } else {
        origin.serve(path, bytes: image)
        live.append(encoded(origin.url(path, host: address)))
      }
    }
    // Every queue has room for all requests, and time-outs suffice for a slow machine.
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.connections", "3000", "--server.active_requests", "3000",
        "--download.queue_limit", "3000", "--imaging.queue_limit", "3000",
        "--download.timeout", "5m", "--download.first_byte_timeout", "5m",
      ])
    func ask(_ urls: [String]) throws -> [Asked] {
      try urls.map { url in
        let target = "/image?url=" + url
        return Asked(client: try pictor.ask(target, timeout: 300), target: target)
      }
    }
    // When: the requests to dead hosts are sent first, and all of them before any response is read
    let waiting = try ask(doomed)
    try pictor.waitFor("the dead hosts' wait") {
      $0.downloads.running + $0.downloads.waiting == doomed.count
    }
    let asked = try ask(live)
    // Then: all others are served before a request to a dead host has timed out
    let failures = try asked.map { try $0.client.readAnswer() }.filter { $0.status != 200 }
    #expect(
      failures.isEmpty,
      "\(failures.count): \(failures.first.map { String(decoding: $0.body, as: UTF8.self) } ?? "")")
    let downloads = try pictor.stats().downloads
    #expect(downloads.succeeded == live.count && downloads.failed["source_timeout"].isAbsent)
    #expect(downloads.running > 0)
    // When the dead hosts' connections break
    dead.stop()
    // Then their requests are answered too
    let statuses = try waiting.map { try $0.client.readAnswer().status }
    #expect(statuses.allSatisfy { [502, 503, 504].contains($0) })
    try pictor.waitFor("all is quiet") {
      $0.downloads.running == 0 && $0.downloads.waiting == 0 && $0.flights.variants == 0
    }
  }
}
