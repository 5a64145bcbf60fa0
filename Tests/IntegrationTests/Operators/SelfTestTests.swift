// SelfTestTests: `pictor selftest security` with the program's own configuration.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SelfTestTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func run(_ options: String...) throws -> (status: CInt, rows: [Substring]) {
    let process = try PictorProcess(
      in: folder,
      ["selftest", "security", "--download.connect_timeout", "1s", "--download.timeout", "1s"]
        + options,
      isServer: false)
    let status = try process.end(0)
    return (status, process.log.split(separator: "\n"))
  }

  @Test func `the default configuration refuses every attack`() throws {
    let (status, rows) = try run("--sources.local_root", folder.path)
    #expect(status == 0)
    #expect(rows.count { $0.hasPrefix("yes ") } > 120)
    #expect(!rows.contains { $0.hasPrefix("NO ") }, "\(rows)")
  }

  @Test(arguments: [
    ("download.allow_networks", "127.0.0.0/8", "http://2130706433/a.jpg"),
    ("download.allow_networks", "127.0.0.0/8", "redirect to http://127.0.0.1/a.jpg"),
    ("download.allow_networks", "168.63.129.16", "http://168.63.129.16/a.jpg"),
    ("download.allow_networks", "::1", "http://[::1]/a.jpg"),
    ("download.ports", "", "http://1.1.1.1:25/a.jpg"),
  ])
  func `each attack that a configuration lets through has a row, and the status is 1`(
    key: String, value: String, source: String
  ) throws {
    let (status, rows) = try run("--\(key)", value)
    #expect(status == 1)
    #expect(rows.contains { $0.hasPrefix("NO ") && $0.contains(" \(source) ") }, "\(rows)")
    #expect(rows.contains { $0.hasPrefix("yes ") && $0.contains("file:///etc/passwd") })
    #expect(rows.contains { $0.hasPrefix("yes ") && $0.contains(":8080/stats") })
  }

  @Test func `a mistake in the command line or the configuration is no success`() throws {
    for arguments in [["selftest"], ["selftest", "security", "--download.ports", "x"]] {
      let process = try PictorProcess(in: folder, arguments, isServer: false)
      #expect(try process.end(0) != 0)
      #expect(process.complaints.count == 1)
    }
  }
}
