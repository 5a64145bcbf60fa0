// Fallback images end to end: real program, real origin, a folder of local files.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class FallbackImageTests: OriginSuite {
  override init() throws {
    try super.init()
    mkdir(folder.path + "/root", 0o755)
    try folder.write(
      "root/gone.png", bytes: try Self.plain([255, 0, 255], width: 400, height: 400))
  }

  private static func plain(_ color: [UInt8], width: Int, height: Int) throws -> [UInt8] {
    try TestImages.encode(Pixels(width: width, height: height, color: color), as: ".png")
  }

  private func start(_ options: [String] = []) throws -> PictorProcess {
    try PictorProcess(
      in: folder,
      [
        "--sources.local_root", folder.path + "/root", "--fallbacks",
        "gone=local:///gone.png,far=\(origin.url("/far.png")),lost=\(origin.url("/lost.png"))",
      ] + options)
  }

  @Test func `every kind of failure gets an image that fits the layout`() throws {
    // given
    origin.serve("/text.jpg", bytes: Array("this is no image".utf8))
    let cut = try TestImages.jpeg(width: 300, height: 200).dropLast(2_000)
    origin.serve("/cut.jpg", bytes: Array(cut))
    origin.route("/down.jpg", to: .status(500))
    let pictor = try start(["--download.deny_hosts", "forbidden.example"])
    let urls = [
      (origin.url("/absent.jpg"), 404, "source_not_found"),
      (origin.url("/text.jpg"), 415, "unsupported_format"),
      (origin.url("/cut.jpg"), 422, "undecodable"),
      (origin.url("/down.jpg"), 502, "source_error"),
      ("http://forbidden.example/a.jpg", 403, "forbidden_source"),
      ("local:///absent.jpg", 404, "source_not_found"),
    ]
    for (url, status, code) in urls {
      // when
      let answer = try pictor.get(
        "/image?url=\(encoded(url))&w=120&h=60&fit=cover&format=png&fallback=gone")
      // then
      #expect(answer.status == status && answer["X-Error-Code"] == code, "\(url)")
      #expect(answer["X-Fallback"] == "gone" && answer["ETag"] == nil)
      let image = try Pixels(decoding: answer.body)
      #expect(image.size == PixelSize(width: 120, height: 60) && image[60, 30] == [255, 0, 255])
      // and without it, the error as before
      let json = try pictor.get("/image?url=\(encoded(url))&w=120")
      #expect(json.status == status && json.text.contains(code))
    }
    #expect(try pictor.stats().requests.fallbacks == ["image": urls.count])
    #expect(try pictor.stats().imaging.succeeded == 1, "one size of the fallback is made once")
    let line = try #require(
      pictor.log.split(separator: "\n").first {
        $0.contains("forbidden.example") && $0.contains("\"fallback\":\"gone\"")
      })
    #expect(line.contains("\"error\":\"forbidden_source\""))
  }

  @Test func `many clients of broken images cost one load and one render of the fallback`() throws {
    // given
    origin.serve("/far.png", bytes: try Self.plain([0, 255, 0], width: 200, height: 200))
    let pictor = try start(["--server.fallback", "far", "--server.fallback_status", "200"])
    // when
    let clients = try (0..<24).map { number in
      try pictor.ask(origin.target("/absent\(number).jpg", adding: "&w=64"))
    }
    // then
    for client in clients {
      let answer = try client.readAnswer()
      #expect(answer.status == 200 && answer["X-Fallback"] == "far")
      #expect(try Pixels(decoding: answer.body).size.width == 64)
    }
    #expect(origin.requests(to: "/far.png") == 1)
    #expect(try pictor.stats().imaging.succeeded == 1)
  }

  @Test func `a fallback that is lost leaves the error, and a lost name is refused at the start`()
    throws
  {
    let pictor = try start()
    let answer = try pictor.get(origin.target("/absent.jpg", adding: "&fallback=lost"))
    #expect(answer.status == 404 && answer.text.contains("source_not_found"))
    #expect(try pictor.stats().requests.fallbacks == ["unavailable": 1])
    let check = try PictorProcess(
      in: folder,
      [
        "--check-config", "--server.port", "0", "--server.connections", "16", "--disk.path",
        folder.path + "/other", "--sources.local_root", folder.path + "/root", "--fallbacks",
        "gone=local:///nothing.png", "--server.fallback", "went",
      ], isServer: false)
    #expect(try check.end(0) == 1)
    #expect(
      check.complaints == [
        "pictor: server.fallback: 'went' is not a name in fallbacks",
        "pictor: fallbacks.gone: 'local:///nothing.png': there is no readable file below "
          + "sources.local_root; symbolic links are not followed",
      ], "\(check.log)")
  }

  @Test func `a prefetch gets the failure, and no fallback`() throws {
    let pictor = try start(["--server.fallback", "gone"] + PictorProcess.operated)
    let id = try pictor.prefetch([origin.url("/absent.jpg")]).id
    try blockUntil("the list is done") { try pictor.prefetchStatus(id).state == .finished }
    let status = try pictor.prefetchStatus(id)
    #expect(status.failed == 1 && status.reasons == ["source_not_found": 1])
    #expect(try pictor.stats().requests.fallbacks.isAbsent)
  }
}
