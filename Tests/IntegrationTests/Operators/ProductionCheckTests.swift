// ProductionCheckTests: `pictor check` with real machines' limits, and a running server.

import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ProductionCheckTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Options of which nothing is open on any machine but for sealed workers.
  private var right: [String] {
    [
      "--server.port", "0", "--server.connections", "16", "--disk.path", folder.path + "/cache",
      "--disk.limit", "1MiB", "--server.workers", "1", "--imaging.workers", "1",
      "--imaging.sandbox", "required", "--download.connect_timeout", "1s", "--log.format", "json",
      "--download.timeout", "1s",
    ]
  }

  private struct Item: Decodable, Equatable {
    let state: String
    let key: String
    let found: String
    let document: String
  }

  /// Returns the exit status, and the items by their keys.
  private func check(
    _ options: [String], wrapper: [String] = []
  ) throws -> (status: CInt, items: [String: Item]) {
    let pictor = try PictorProcess(
      in: folder, ["check", "--json"] + options, wrapper: wrapper, isServer: false)
    let status = try pictor.end(0)
    let items = try JSONDecoder().decode([Item].self, from: Data(pictor.log.utf8))
    return (status, Dictionary(items.map { ($0.key, $0) }) { $1 })
  }

  @Test func `with right options, only workers that cannot be sealed are open`() throws {
    let (status, items) = try check(right)
    let open = items.values.filter { $0.state == "open" }.map(\.key)
    #expect(open == (TestBuild.sealingObstacle == nil ? [] : ["--check-config"]), "\(items)")
    #expect(status == (open.isEmpty ? 0 : 1))
    #expect(items["/readyz"]?.state == "advice" && items["/metrics"]?.state == "advice")
    #expect(items["--version"]?.state == "advice", "\(items)")
    #expect(items["selftest security"]?.found.hasSuffix("attacks refused") == true)
    #expect(access(folder.path + "/cache", F_OK) != 0)
  }

  @Test(arguments: [
    (["--memory.budget", "1000TiB"], "memory.budget", "more than there is"),
    (["--disk.limit", "1000TiB"], "disk.limit", "more than the file system has"),
    (["--disk.path", "/proc/pictor/cache"], "disk.path", "cannot keep"),
    (["--imaging.workers", "200"], "server.workers, imaging.workers", "usable cores"),
    (["--server.workers", "200"], "server.workers, imaging.workers", "usable cores"),
    (["--server.connections", "1000000"], "server.connections", "leaves room for"),
    (["--server.address", "0.0.0.0"], "download.allow_hosts, signing.mode", "all hosts"),
    (["--server.address", "0.0.0.0"], "server.operator_address", "may read /stats"),
    (["--download.allow_networks", "127.0.0.0/8"], "selftest security", "http://2130706433/a.jpg"),
    (["--imaging.sandbox", "if_possible"], "imaging.sandbox", "set required"),
    (["--server.trusted_proxies", "0.0.0.0/0"], "server.trusted_proxies", "another address"),
    (["--server.grace_time", "2m"], "server.shutdown_delay, server.grace_time", "kills after 90"),
  ])
  func `each item is open with its reason`(options: [String], key: String, reason: String) throws {
    let (status, items) = try check(
      right + options, wrapper: ["/usr/bin/prlimit", "--nofile=1024:1024"])
    #expect(status == 1)
    let item = try #require(items[key], "\(items)")
    #expect(item.state == "open" && item.found.contains(reason), "\(item)")
  }

  @Test func `a running server is asked for its pages and its version`() throws {
    // Given: a server, and a check of its options
    let pictor = try PictorProcess(in: folder, ["--server.operator_address", "127.0.0.1:0"])
    let running = ["--server.operator_address", "127.0.0.1:\(pictor.operatorPort)"]
    var items = try check(right + running).items
    #expect(items["/readyz"]?.state == "ok" && items["/metrics"]?.state == "ok", "\(items)")
    #expect(items["--version"]?.state == "ok" && items["disk.path"]?.state == "ok")
    // And: one that is at the wrong port has no figures
    let wrong = ["--server.operator_address", "", "--server.port", "\(pictor.port)"]
    items = try check(right + wrong).items
    #expect(items["/readyz"]?.state == "ok" && items["/metrics"]?.state == "open", "\(items)")
    #expect(items["--version"]?.state == "advice", "\(items)")
    // And: another version
    let other = try Origin()
    other.route("/readyz", to: .status(503))
    other.serve("/metrics", bytes: Array(#"pictor_build_info{version="0.0.1"} 1"#.utf8))
    items = try check(right + ["--server.port", "\(other.port)"]).items
    #expect(items["/readyz"]?.state == "open" && items["--version"]?.state == "open", "\(items)")
  }

  @Test func `the document has each section, and wrong use is status 2`() throws {
    let documents = Set(try check(right).items.values.map(\.document))
    let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let text = contents(of: root + "/docs/production.md")
    for document in documents {
      let heading = document.split(separator: "#").last?.replacing("-", with: " ") ?? ""
      #expect(text.lowercased().contains("\n## \(heading)\n"), "\(document)")
    }
    #expect(documents.count == 5)
    // And the table has the same items
    let process = try PictorProcess(
      in: folder, ["check"] + right + ["--imaging.sandbox", "off"], isServer: false)
    #expect(try process.end(0) == 1)
    let lines = process.log.split(separator: "\n")
    #expect(lines.count { $0.hasPrefix("docs/production.md#") } == 5)
    #expect(lines.contains { $0.hasPrefix("  open    imaging.sandbox  ") })
    #expect(lines.last?.contains(" open of ") == true)
    for arguments in [["check", "now"], ["check", "--wrong"]] {
      let wrong = try PictorProcess(in: folder, arguments, isServer: false)
      #expect(try wrong.end(0) == 2)
    }
  }
}
