// SignedURLTests: the program with signatures: modes, rotation, sign command, warning, log.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class SignedURLTests: OriginSuite {
  private let secret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-main"
  private let oldSecret = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-old1"

  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
  }

  private var keys: String { "main:env:KEY,old:\(oldSecret)" }

  private func server(_ mode: String, _ options: [String] = []) throws -> PictorProcess {
    try PictorProcess(
      in: folder, ["--signing.mode", mode] + options,
      environment: ["KEY": secret, "PICTOR_SIGNING_KEYS": keys])
  }

  @Test func `pictor sign writes URLs that the server accepts until they expire`() throws {
    let pictor = try server("required")
    let command = try PictorProcess(
      in: folder,
      [
        "sign", "http://h/prefix" + origin.target("/a.jpg", adding: "&w=30"),
        origin.target("/a.jpg"),
        "--expires-in", "1h",
      ], environment: ["KEY": secret, "PICTOR_SIGNING_KEYS": keys], isServer: false)
    #expect(try command.end(0) == 0)
    let lines = command.log.split(separator: "\n").map(String.init)
    #expect(lines.count == 2)
    for line in lines {
      let target = line.replacing("http://h/prefix", with: "")
      let answer = try pictor.get(target)
      #expect(answer.status == 200, "\(answer.text)")
      #expect(answer["cache-control"]?.contains("must-revalidate") == true)
      #expect(try pictor.get(target.replacing("exp=1", with: "exp=2")).status == 403)
    }
    // The rest of the server needs no signature, and the log has none.
    #expect(try pictor.get("/stats").status == 200)
    #expect(pictor.log.contains("sig=***") && !pictor.log.contains("s3cr3t"))
    let wrong = try PictorProcess(in: folder, ["sign"], isServer: false)
    #expect(try wrong.end(0) == 2)
    let keyless = try PictorProcess(in: folder, ["sign", "/image?url=a"], isServer: false)
    #expect(try keyless.end(0) == 1)
    #expect(keyless.complaints == ["pictor: signing.keys: a key of the server is required"])
  }

  @Test(arguments: [
    ([], false), (["--server.address", "0.0.0.0"], true),
    (["--server.address", "127.1.2.3"], false),
    (["--server.address", "0.0.0.0", "--download.allow_hosts", "a.example"], false),
    (
      [
        "--server.address", "0.0.0.0", "--signing.mode", "options",
        "--signing.keys", "k:0123456789abcdef0123456789abcdef",
      ], false
    ),
    (
      ["--server.address", "0.0.0.0", "--signing.keys", "k:0123456789abcdef0123456789abcdef"], true
    ),
  ])
  func `a start warns if everyone may load everything, or read the figures`(
    options: [String], warns: Bool
  ) throws {
    let warning =
      "every client may load images of all hosts: set signing.mode or download.allow_hosts"
    let figures = "every client may read /stats and /metrics: set server.operator_address"
    let showsFigures = options.contains("0.0.0.0")
    let pictor = try PictorProcess(in: folder, options)
    #expect(pictor.log.contains(warning) == warns)
    #expect(pictor.log.contains(figures) == showsFigures)
    #expect(try pictor.end() == 0)
    let check = try PictorProcess(
      in: folder, options + ["--check-config", "--disk.path", folder.path + "/cache"],
      isServer: false)
    #expect(try check.end(0) == 0)
    #expect(check.log.contains("warning: " + warning) == warns)
    #expect(check.log.contains("warning: " + figures) == showsFigures)
  }

  @Test(arguments: ["options", "required"])
  func `a mode without a key is refused, and a key without a secret too`(mode: String) throws {
    let keyless = try PictorProcess(
      in: folder, ["--signing.mode", mode, "--check-config"], isServer: false)
    #expect(try keyless.end(0) == 1)
    #expect(
      keyless.complaints.contains(
        "pictor: signing.mode: '\(mode)' is not allowed without signing.keys"))
    let unset = try PictorProcess(
      in: folder, ["--signing.mode", mode, "--signing.keys", "a:env:UNSET_KEY", "--check-config"],
      isServer: false)
    #expect(try unset.end(0) == 1)
    #expect(
      unset.complaints.contains(
        "pictor: signing.keys, a: the environment variable UNSET_KEY is not set"))
  }
}
