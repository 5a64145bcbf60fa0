// Misbehaving origins and invalid requests: the right error in time, and a live server.

import Core
import Glibc
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
}
