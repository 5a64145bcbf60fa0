// SignedURLTests: the program with signatures: modes, rotation, sign command, warning, log.

import Signing
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

  private func signed(_ target: String, id: String = "main", secret: String? = nil) -> String {
    let parts = target.split(separator: "?", maxSplits: 1)
    let signer = URLSigner(keys: [SigningKey(id: id, secret: secret ?? self.secret)])
    let text = SignedText(path: String(parts[0]), query: parts[1].utf8)
    return target + "&sig=" + (text.flatMap { signer.sign($0) } ?? "")
  }

  @Test func `a server that requires signatures serves signed URLs only, and they share the cache`()
    throws
  {
    // Given
    let pictor = try server("required")
    let plain = origin.target("/a.jpg", adding: "&w=30")
    // Then
    let first = try pictor.get(signed(plain))
    #expect(first.status == 200 && first["cache-status"]?.contains("uri-miss") == true)
    for target in [
      signed(plain), signed(plain, id: "old", secret: oldSecret), signed(plain + "&exp=4102444800"),
      signed(plain).replacing("sig=main.", with: "sig="),
    ] {
      let answer = try pictor.get(target)
      #expect(answer.status == 200 && answer["etag"] == first["etag"])
      #expect(answer["cache-status"]?.contains("hit; detail=memory") == true)
    }
    #expect(origin.received(at: "/a.jpg").count == 1)
    let info = "/info" + origin.target("/a.jpg").dropFirst("/image".count)
    #expect(try pictor.get(signed(info)).status == 200)
    let other = signed(origin.target("/a.jpg"))
    for (target, code) in [
      (plain, "invalid_signature"), (info, "invalid_signature"),
      (signed(plain, secret: oldSecret), "invalid_signature"),
      (signed(plain) + "&h=20", "invalid_signature"),
      ("/info" + other.dropFirst("/image".count), "invalid_signature"),
      (signed(plain + "&exp=1700000000"), "expired_signature"),
      (signed(plain).replacing("w=30", with: "w=31"), "invalid_signature"),
    ] {
      let answer = try pictor.get(target)
      #expect(answer.status == 403 && answer.text.contains("\"\(code)\""), "\(answer.text)")
    }
    // The rest of the server needs no signature.
    #expect(try pictor.get("/stats").status == 200)
    // No secret and no signature is logged.
    let log = pictor.log
    #expect(log.contains("invalid_signature") && log.contains("sig=***"))
    for target in [signed(plain), other, signed(plain, id: "old", secret: oldSecret)] {
      let signature = target.split(separator: "sig=").last ?? ""
      #expect(!log.contains(signature.split(separator: ".").last ?? ""))
    }
    #expect(!log.contains("s3cr3t"))
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
