// Misbehaving origins and invalid requests: the right error in time, and a live server.

import Glibc
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) final class BadOriginTests: OriginSuite {
  @Test func `each misbehaving origin causes its own error, and the server continues`() throws {
    let pictor = try PictorProcess(
      in: folder,
      [
        "--download.timeout", "2s", "--download.maximum_bytes", "200KiB",
        "--imaging.maximum_pixels", "10000", "--imaging.maximum_frames", "3",
        "--imaging.formats", "jpeg,png,gif",
      ])
    let image = try TestImages.jpeg(width: 60, height: 40)
    origin.route("/truncated", to: .truncated(image, declaring: image.count * 2))
    origin.route("/chunked", to: .truncatedChunked(image))
    origin.route("/reset", to: .resetBeforeHead)
    origin.route("/midway", to: .reset(after: Array(image.prefix(100)), declaring: image.count))
    origin.route("/endless", to: .endlessBody)
    origin.route("/headers", to: .endlessHeaders)
    origin.route("/silent", to: .silence)
    origin.route("/absent", to: .status(404))
    origin.route("/gone", to: .status(410))
    origin.route("/broken", to: .status(500))
    origin.route("/busy", to: .status(503))
    origin.route("/circle", to: .redirect(to: origin.url("/circle")))
    origin.route("/file", to: .redirect(to: "file:///etc/passwd"))
    origin.route("/inside", to: .redirect(to: "http://169.254.169.254/latest/meta-data/"))
    origin.serve(
      "/text", bytes: Array("2 2\n1 2\n3 4\n".utf8), headers: ["Content-Type: image/jpeg"])
    origin.serve("/half", bytes: Array(image.prefix(image.count / 2)))
    origin.serve("/webp", bytes: try TestImages.webp(width: 6, height: 4))
    origin.serve("/wide", bytes: try TestImages.png(width: 101, height: 100))
    origin.serve("/moves", bytes: try TestImages.gif(width: 6, height: 4, frames: 4))
    origin.serve("/nothing", bytes: [])
    let cases: [(String, Int, String)] = [
      ("/truncated", 502, "source_incomplete"), ("/chunked", 502, "source_incomplete"),
      ("/reset", 502, "source_unreachable"), ("/midway", 502, "source_incomplete"),
      ("/endless", 413, "source_too_large"), ("/headers", 502, "source_unreachable"),
      ("/silent", 504, "source_timeout"), ("/absent", 404, "source_not_found"),
      ("/gone", 404, "source_not_found"), ("/broken", 502, "source_error"),
      ("/busy", 502, "source_error"), ("/circle", 502, "too_many_redirects"),
      ("/file", 403, "forbidden_source"), ("/inside", 403, "forbidden_source"),
      ("/text", 415, "unsupported_format"), ("/half", 422, "undecodable"),
      ("/webp", 415, "unsupported_format"), ("/wide", 422, "too_many_pixels"),
      ("/moves", 422, "too_many_frames"), ("/nothing", 415, "unsupported_format"),
    ]
    for (path, status, code) in cases {
      let answer = try pictor.get(origin.target(path))
      #expect(
        answer.status == status && answer.text.contains("\"\(code)\""), "\(path): \(answer.text)")
      #expect(answer["content-type"]?.hasPrefix("application/json") == true)
      // A permanent failure is remembered, and its duration is stated.
      let isRemembered = [404, 413, 415, 422].contains(status)
      #expect((answer["cache-control"] == "no-store") == !isRemembered, "\(path)")
      #expect(!answer.text.contains(folder.path) && !answer.text.contains("169.254"))
    }
    origin.serve("/good", bytes: image)
    #expect(try pictor.get(origin.target("/good")).status == 200)
    #expect(try pictor.get("/stats").status == 200)
  }

  @Test func `private addresses are refused by default`() throws {
    let pictor = try PictorProcess(in: folder, ["--download.allow_networks", ""])
    for url in [
      "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0.0.0.0/",
      "http://10.0.0.1/",
      "http://192.168.1.1/", "http://172.16.0.1/", "http://169.254.169.254/", "http://100.64.0.1/",
      "http://2130706433/", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/", "http://[fd00::1]/",
      "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    ] {
      let answer = try pictor.get("/image?url=\(encoded(url + "a.jpg"))")
      #expect(answer.status == 403 && answer.text.contains("forbidden_source"), "\(answer.text)")
    }
  }

  @Test func `a local path cannot leave the local root`() throws {
    let root = folder.path + "/root"
    mkdir(root, 0o755)
    symlink("/etc/passwd", root + "/link.jpg")
    let pictor = try PictorProcess(in: folder, ["--sources.local_root", root])
    for path in ["/../log", "/%2e%2e/log", "/link.jpg", "/", "//etc/passwd", "/absent.jpg"] {
      let answer = try pictor.get("/image?url=\(encoded("local://" + path))")
      #expect([400, 404].contains(answer.status), "\(path): \(answer.text)")
    }
  }
}
