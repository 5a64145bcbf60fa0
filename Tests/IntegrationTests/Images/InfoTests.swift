// /info and placeholders end to end: real program, real origin, real images.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class InfoTests: OriginSuite {
  private func infoTarget(_ path: String, adding rest: String = "") -> String {
    "/info?url=\(encoded(origin.url(path)))\(rest)"
  }

  private func info(_ pictor: PictorProcess, path: String, adding rest: String = "") throws
    -> SourceInfo
  {
    let answer = try pictor.get(infoTarget(path, adding: rest))
    #expect(answer.status == 200 && answer["content-type"] == "application/json")
    return try SourceInfo(json: answer.body)
  }

  @Test func `sources are described upright with their properties`() throws {
    let pictor = try PictorProcess(in: folder)
    let photo = try TestImages.jpeg(width: 300, height: 200, orientation: 6)
    origin.serve("/photo@2x.jpg", bytes: photo)
    origin.serve("/moves", bytes: try TestImages.gif(width: 60, height: 40, frames: 5))
    origin.serve("/alpha", bytes: try TestImages.png(width: 30, height: 20, alpha: true))

    let turned = try info(pictor, path: "/photo@2x.jpg")
    #expect((turned.format, turned.width, turned.height) == ("jpeg", 300, 200))
    #expect((turned.orientation, turned.bytes, turned.density) == (6, photo.count, 2))
    let moving = try info(pictor, path: "/moves")
    #expect((moving.format, moving.width, moving.height, moving.frames) == ("gif", 60, 40, 5))
    let clear = try info(pictor, path: "/alpha", adding: "&placeholder=thumbhash")
    #expect((clear.format, clear.alpha, clear.placeholder?.kind) == ("png", true, "thumbhash"))
  }

  @Test func `a description shares the image's download and is cached`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 90, height: 60))
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=30")).status == 200)
    let first = try pictor.get(infoTarget("/a.jpg"))
    #expect(first["cache-status"] == "pictor; hit; detail=source")
    let second = try pictor.get(infoTarget("/a.jpg"))
    #expect(second["cache-status"] == "pictor; hit; detail=memory")
    #expect(second.body == first.body && second["etag"] == first["etag"])
    for kind in ["blurhash", "thumbhash", "color", "lqip"] {
      let placeholder = try info(pictor, path: "/a.jpg", adding: "&placeholder=\(kind)").placeholder
      #expect(placeholder?.kind == kind && placeholder?.value.isEmpty == false)
    }
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `a placeholder is a tiny image`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 900, height: 600))
    let cases = [
      ("", "image/jpeg", 16, 10), ("&placeholder=blurhash", "image/png", 32, 21),
      ("&placeholder=thumbhash", "image/png", 32, 23), ("&placeholder=color", "image/png", 1, 1),
    ]
    for (rest, type, width, height) in cases {
      let answer = try pictor.get(origin.target("/a.jpg", adding: "&format=placeholder" + rest))
      #expect(answer.status == 200 && answer["content-type"] == type, "\(rest)")
      let size = try Pixels(decoding: answer.body).size
      #expect(size == PixelSize(width: width, height: height), "\(rest)")
    }
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&placeholder=color")).status == 400)
    #expect(origin.requests(to: "/a.jpg") == 1)
  }
}
