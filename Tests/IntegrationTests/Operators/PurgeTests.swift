// Purging with the real program: every scope, clear, look and upload, over HTTP and by the command.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class PurgeTests: OriginSuite {
  private func operated(_ options: [String] = []) throws -> PictorProcess {
    try PictorProcess(in: folder, PictorProcess.operated + options)
  }

  /// Purges over HTTP. Returns what was removed.
  private func purge(_ pictor: PictorProcess, query: String) throws -> PurgeReport {
    let answer = try pictor.operate("DELETE", target: "/admin/cache?" + query)
    guard answer.status == 200 else { throw PictorProcess.Failure(description: answer.text) }
    return try JSONDecoder().decode([String: PurgeReport].self, from: Data(answer.body))["purged"]
      ?? PurgeReport()
  }

  /// Returns the tiers with an entry for a request, as the admin endpoint reports them.
  private func look(_ pictor: PictorProcess, path: String, adding rest: String = "") throws
    -> String?
  {
    let answer = try pictor.connect().head(
      "/admin/cache?url=\(encoded(origin.url(path)))\(rest)",
      headers: ["Authorization": "Bearer " + PictorProcess.token])
    guard answer.status == 200 else { return nil }
    return answer["Cache-Status"].flatMap {
      $0.split(separator: "detail=").last.map { $0.filter { $0 != "\"" } }
    }
  }

  private func isMiss(_ answer: HTTPAnswer) -> Bool {
    answer.status == 200 && answer["Cache-Status"]?.contains("fwd=uri-miss") == true
  }

  // MARK: Purge

  @Test(arguments: ["url", "prefix", "host", "tag"])
  func `each purge scope takes effect at once, on its own entries only`(kind: String) throws {
    // Given: two sizes of one image, and an image on another host
    let hosts = folder.path + "/hosts.json5"
    try folder.write(
      "hosts.json5", bytes: Array(#"{hosts: [{host: "localhost", tags: ["shop"]}]}"#.utf8))
    let pictor = try operated(["--config", hosts])
    for path in ["/a/1.jpg", "/b/1.jpg"] {
      origin.serve(path, bytes: try TestImages.jpeg(width: 60, height: 40))
    }
    let meant = origin.url("/a/1.jpg", host: "localhost")
    let targets = ["", "&w=20"].map { "/image?url=\(encoded(meant))\($0)" }
    let other = origin.target("/b/1.jpg")
    for target in targets + [other] { #expect(try pictor.get(target).status == 200) }
    #expect(origin.totalRequests == 2)
    // When
    let query =
      switch kind {
      case "url": "url=" + encoded(meant)
      case "prefix": "prefix=" + encoded(origin.url("/a", host: "localhost"))
      case "host": "host=localhost"
      default: "tag=shop"
      }
    let report = try purge(pictor, query: query)
    // Then
    #expect(report.memory == 2 && report.failed == 0)
    #expect(isMiss(try pictor.get(targets[0])))
    #expect(try pictor.get(targets[1])["Cache-Status"] == "pictor; hit; detail=source")
    #expect(try pictor.get(other)["Cache-Status"] == "pictor; hit; detail=memory")
    #expect(origin.totalRequests == 3)
  }

  @Test func `a purge survives a restart`() throws {
    var pictor = try operated()
    for path in ["/1.jpg", "/2.jpg", "/3.jpg"] {
      origin.serve(path, bytes: try TestImages.jpeg(width: 60, height: 40))
      _ = try pictor.get(origin.target(path))
    }
    try pictor.waitFor("it is on disk") { $0.disk.entries == 6 }
    _ = try purge(pictor, query: "url=" + encoded(origin.url("/1.jpg")))
    _ = try purge(pictor, query: "prefix=" + encoded(origin.url("/2")))
    #expect(try pictor.end() == 0)
    pictor = try operated()
    for path in ["/1.jpg", "/2.jpg"] {
      let answer = try pictor.get(origin.target(path))
      #expect(isMiss(answer), "\(path): \(answer["Cache-Status"] ?? "")")
    }
    #expect(try pictor.get(origin.target("/3.jpg"))["Cache-Status"] == "pictor; hit; detail=disk")
  }

  // MARK: Clear, clean, look

  @Test func `a removal with a tier takes entries from this tier only`() throws {
    let pictor = try operated()
    for path in ["/a.jpg", "/b.jpg"] {
      origin.serve(
        path, bytes: try TestImages.jpeg(width: 60, height: 40),
        headers: ["Cache-Control: max-age=5000"])
      _ = try pictor.get(origin.target(path))
    }
    let url = "url=" + encoded(origin.url("/a.jpg"))
    // One tier
    #expect(try purge(pictor, query: url + "&tier=memory").memory == 1)
    #expect(try look(pictor, path: "/a.jpg") == "disk source")
    _ = try pictor.get(origin.target("/a.jpg"))
    #expect(try purge(pictor, query: url + "&tier=disk").disk == 2)
    #expect(try look(pictor, path: "/a.jpg") == "memory")
    #expect(try look(pictor, path: "/b.jpg") == "memory disk source")
    // All of one tier, by a prefix and without a scope
    let prefix = "prefix=" + encoded(origin.url("/"))
    #expect(try purge(pictor, query: prefix + "&tier=memory").memory == 2)
    #expect(try purge(pictor, query: "tier=disk").disk == 2)
    #expect(try look(pictor, path: "/b.jpg") == nil)
    // All tiers
    _ = try pictor.get(origin.target("/b.jpg"))
    _ = try purge(pictor, query: "tier=all")
    #expect(isMiss(try pictor.get(origin.target("/b.jpg"))))
    // What is not there
    for (query, allowed) in [
      ("tier=ram", "memory, disk, shared or all"), (url + "&tier=shared", "fleet.redis"),
      (prefix + "&tier=disk", "with prefix, host or tag"), (url + "&tier=disk&tier=disk", "once"),
    ] {
      let answer = try pictor.operate("DELETE", target: "/admin/cache?" + query)
      #expect(answer.status == 400 && answer.text.contains(allowed), "\(answer.text)")
    }
  }

  // MARK: Put

  @Test func `an uploaded image is served without its origin, also after a restart`()
    throws
  {
    var pictor = try operated()
    let mine = try TestImages.jpeg(width: 40, height: 60)
    let theirs = try TestImages.jpeg(width: 60, height: 40)
    origin.serve("/a.jpg", bytes: theirs)
    let before = try pictor.get(origin.target("/a.jpg"))
    let target = "/admin/cache?url=" + encoded(origin.url("/a.jpg"))
    func put(_ bytes: [UInt8]) throws -> HTTPAnswer {
      try pictor.connect().request(
        "PUT", target: target,
        headers: [
          "Authorization": "Bearer " + PictorProcess.token, "Cache-Control": "max-age=777",
        ], body: bytes)
    }
    #expect(try put(mine).status == 200)
    let after = try pictor.get(origin.target("/a.jpg"))
    #expect(after["Cache-Status"] == "pictor; hit; detail=source" && after.body != before.body)
    #expect(after["Cache-Control"] == "public, max-age=777")
    #expect(origin.requests(to: "/a.jpg") == 1)
    #expect(try put(Array("<html>".utf8)).status == 415)
    #expect(try pictor.get(origin.target("/a.jpg")).body == after.body)
    try pictor.waitFor("it is on disk") { $0.disk.entries == 2 }
    #expect(try pictor.end() == 0)
    pictor = try operated()
    #expect(try pictor.get(origin.target("/a.jpg")).body == after.body)
    #expect(try look(pictor, path: "/b.jpg") == nil)
    let new = try pictor.connect().request(
      "PUT", target: "/admin/cache?url=" + encoded(origin.url("/b.jpg")),
      headers: ["Authorization": "Bearer " + PictorProcess.token], body: mine)
    #expect(new.status == 201)
    #expect(try look(pictor, path: "/b.jpg") == "source")
  }

  // MARK: The command

  @Test func `the purge command reports what it removed and fails when the server refuses`() throws
  {
    let pictor = try operated()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    _ = try pictor.get(origin.target("/a.jpg"))
    func command(_ arguments: [String]) throws -> PictorProcess {
      try PictorProcess(
        in: folder, ["purge", "--server.port", "\(pictor.port)"] + arguments,
        environment: ["PICTOR_ADMIN_TOKENS": PictorProcess.token], isServer: false)
    }
    let purged = try command([origin.url("/a.jpg"), "--host", "127.0.0.1"])
    #expect(try purged.end(0) == 0)
    #expect(purged.log.contains("\(origin.url("/a.jpg")): purged: 1 in memory"), "\(purged.log)")
    #expect(purged.log.contains("host 127.0.0.1: purged: 0 in memory"), "\(purged.log)")
    #expect(isMiss(try pictor.get(origin.target("/a.jpg"))))
    let refused = try command(["--tag", "shop"])
    #expect(try refused.end(0) == 1)
    #expect(refused.log.contains("no host rule has a tag"), "\(refused.log)")
    let partial = try command(["--prefix", "http://127", "--host", "http://127.0.0.1"])
    #expect(try partial.end(0) == 1)
    #expect(partial.complaints.count == 2, "\(partial.log)")
    #expect(partial.complaints.first?.contains("the slash behind it") == true)
    #expect(partial.complaints.last?.contains("without scheme, port and path") == true)
    #expect(try !isMiss(pictor.get(origin.target("/a.jpg"))))
    #expect(try command([]).end(0) == 2)
    #expect(try command(["--all"]).end(0) == 0)
    #expect(try look(pictor, path: "/a.jpg") == nil)
  }
}
