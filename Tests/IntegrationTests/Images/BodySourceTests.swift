// BodySourceTests: sources that come with their requests, and imaginary's door, which has them.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class BodySourceTests: OriginSuite {
  private let token = "correct-horse-battery"
  private var asOperator: [String] { ["--admin.tokens", token] }

  /// Returns an HTML form with a field, another file, and these bytes in a file.
  private func form(_ bytes: [UInt8], boundary: String) -> [UInt8] {
    let head =
      "--\(boundary)\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nmy picture\r\n"
      + "--\(boundary)\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.jpg\"\r\n"
      + "Content-Type: image/jpeg\r\n\r\n"
    let next =
      "\r\n--\(boundary)\r\nContent-Disposition: form-data; name=\"g\"; filename=\"b.txt\"\r\n\r\n"
    return Array(head.utf8) + bytes + Array((next + "text\r\n--\(boundary)--\r\n").utf8)
  }

  @Test func `the body is the source, raw or in a form`() throws {
    let pictor = try PictorProcess(
      in: folder, asOperator + ["--sources.bodies", "trusted", "--sources.body_lifetime", "1h"])
    let photo = try TestImages.jpeg(width: 600, height: 400)
    let client = try pictor.connect()
    func post(
      _ target: String, _ body: [UInt8], type: String = "image/jpeg", token: String? = nil
    ) throws -> HTTPAnswer {
      try client.request(
        "POST", target: target,
        headers: ["Authorization": "Bearer " + (token ?? self.token), "Content-Type": type],
        body: body)
    }
    let first = try post("/image?w=300&format=png", photo)
    #expect(first.status == 200 && first["content-type"] == "image/png", "\(first.text)")
    #expect(try Pixels(decoding: first.body).size == PixelSize(width: 300, height: 200))
    #expect(first["content-disposition"] == "inline; filename=\"image.png\"")
    // The same bytes are the same source, also in a form; other bytes are not.
    let boundary = "----WebKitFormBoundaryx7"
    let again = try post(
      "/image?format=png&w=300", form(photo, boundary: boundary),
      type: "multipart/form-data; boundary=\(boundary)")
    #expect(again["cache-status"] == "pictor; hit; detail=memory" && again.body == first.body)
    let other = try post("/image?w=300&format=png", try TestImages.jpeg(width: 90, height: 60))
    #expect(try Pixels(decoding: other.body).size == PixelSize(width: 90, height: 60))
    let info = try post("/info", photo)
    #expect(info.status == 200 && info.text.contains("\"width\":600"), "\(info.text)")

    for (target, body, type, status) in [
      ("/image?w=9", [], "image/jpeg", 415), ("/image?w=9", Array("no image".utf8), "x/y", 415),
      ("/image?w=9&url=http://a.example/", photo, "x/y", 400), ("/image?w=0", photo, "x/y", 400),
      ("/image?w=9", form(photo, boundary: "aa"), "multipart/form-data; boundary=bb", 415),
      (
        "/image?w=9", form(photo, boundary: "aa").dropLast(40), "multipart/form-data; boundary=aa",
        415
      ),
      ("/image?w=9", photo, "multipart/form-data", 415),
      (
        "/image?w=9", form([], boundary: "aa"), "multipart/form-data; boundary=aa", 415
      ),
    ] as [(String, [UInt8], String, Int)] {
      let answer = try post(target, Array(body), type: type)
      #expect(answer.status == status, "\(target) \(type): \(answer.text)")
    }
    #expect(try post("/image?w=9", photo, token: "another").status == 401)
    #expect(try client.request("POST", target: "/image?w=9", body: photo).status == 401)
    #expect(try client.get("/image?w=9").text.contains("missing_parameter"))
    #expect(try client.get("/image?w=9&url=body:///x").text.contains("invalid_url"))
    let allowed = try client.request("OPTIONS", target: "/image")
    #expect(allowed["allow"] == "GET, HEAD, POST, OPTIONS")
  }

  @Test func `without a lifetime nothing of a body is kept, and by default there is no POST`()
    throws
  {
    let photo = try TestImages.jpeg(width: 60, height: 40)
    let pictor = try PictorProcess(in: folder, ["--sources.bodies", "all"])
    for _ in 0..<2 {
      let answer = try pictor.connect().request("POST", target: "/image?w=30", body: photo)
      #expect(answer.status == 200 && answer["cache-control"] == "no-store")
      #expect(answer["cache-status"]?.contains("hit") == false)
    }
    #expect(try pictor.stats().memory.entries == 0)
    let closed = try PictorProcess(in: try TemporaryFolder())
    let refused = try closed.connect().request("POST", target: "/image?w=30", body: photo)
    #expect(refused.status == 405 && refused["allow"] == "GET, HEAD, OPTIONS")
  }

  @Test func `many clients post at once, and none gets another's image`() throws {
    let pictor = try PictorProcess(
      in: folder, ["--sources.bodies", "all", "--sources.body_lifetime", "1m"])
    let sizes = (0..<24).map { 40 + $0 }
    let bodies = try sizes.map { try TestImages.jpeg(width: $0, height: $0) }
    // Each body comes twice, all before the first answer is read.
    let clients = try (sizes + sizes).indices.map { index in
      let (client, body) = (try pictor.connect(), bodies[index % sizes.count])
      try client.send(
        HTTPClient.text("POST", target: "/image?format=png", bodyLength: body.count))
      try client.send(bytes: body)
      return client
    }
    for (client, side) in zip(clients, sizes + sizes) {
      let answer = try client.readAnswer()
      #expect(try Pixels(decoding: answer.body).size == PixelSize(width: side, height: side))
    }
  }

  @Test func `Nextcloud's previews come from a body through imaginary's door`() throws {
    let pictor = try PictorProcess(
      in: folder,
      ["--sources.bodies", "trusted", "--doors", "{ imaginary: { secrets: [\"s3cret\"] } }"])
    let photo = try TestImages.jpeg(width: 600, height: 400, orientation: 6)
    let operations = PercentEncoding.encode(
      #"[{"operation":"autorotate"},{"operation":"fit","params":{"width":256,"height":256,"#
        + #""stripmeta":"true","type":"webp","norotation":"true","quality":"80"}}]"#)
    let client = try pictor.connect()
    for (target, key, status) in [
      ("/pipeline?operations=\(operations)&key=s3cret", "", 200),
      ("/pipeline?operations=\(operations)", "s3cret", 200),
      ("/pipeline?operations=\(operations)&key=other", "", 401),
      ("/pipeline?operations=\(operations)&key=", "other", 401),
    ] {
      let answer = try client.request(
        "POST", target: target, headers: ["API-Key": key, "Content-Type": "image/jpeg"],
        body: photo)
      #expect(answer.status == status, "\(target) \(answer.text)")
      guard status == 200 else {
        #expect(answer.text == #"{"message":"invalid or missing API key","status":401}"#)
        continue
      }
      #expect(answer["content-type"] == "image/webp")
      #expect(try Pixels(decoding: answer.body).size == PixelSize(width: 256, height: 171))
    }
  }
}
