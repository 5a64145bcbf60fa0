// Watermarks end to end: real program, real origin, a folder of local files.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class WatermarkTests: OriginSuite {
  override init() throws {
    try super.init()
    mkdir(folder.path + "/root", 0o755)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 400, height: 300))
  }

  private func start(_ options: [String] = []) throws -> PictorProcess {
    try PictorProcess(in: folder, ["--sources.local_root", folder.path + "/root"] + options)
  }

  private func plain(_ color: [UInt8], width: Int = 40, height: Int = 30) throws -> [UInt8] {
    try TestImages.encode(Pixels(width: width, height: height, color: color), as: ".png")
  }

  private func parameter(_ answer: HTTPAnswer) -> Bool {
    answer.text.contains("\"parameter\":\"watermark\"")
  }

  @Test func `a configured watermark is composited and loaded once for all sizes`() throws {
    // given
    origin.serve("/logo.png", bytes: try plain([255, 0, 255]))
    let pictor = try start(["--watermarks", "logo=\(origin.url("/logo.png"))"])
    // when
    for width in [100, 200, 300] {
      let answer = try pictor.get(
        origin.target("/a.jpg", adding: "&w=\(width)&watermark=logo&watermark_scale=0.2&format=png")
      )
      // then
      #expect(answer.status == 200)
      let image = try Pixels(decoding: answer.body)
      #expect(image[width - 1, width * 3 / 4 - 1] == [255, 0, 255])
      #expect(image[width * 4 / 5 - 2, width * 3 / 4 - 1] != [255, 0, 255])
    }
    #expect(origin.requests(to: "/logo.png") == 1 && origin.requests(to: "/a.jpg") == 1)
  }

  @Test
  func `a forbidden watermark is refused, and a failed one is named in the error`()
    throws
  {
    // given
    origin.serve("/bomb.png", bytes: try plain([1, 2, 3], width: 500, height: 500))
    let names = [
      "bomb=\(origin.url("/bomb.png"))", "gone=\(origin.url("/gone.png"))",
    ]
    let pictor = try start([
      "--imaging.maximum_pixels", "200000", "--watermarks", names.joined(separator: ","),
    ])
    func answer(_ watermark: String) throws -> HTTPAnswer {
      try pictor.get(origin.target("/a.jpg", adding: "&watermark=\(watermark)"))
    }
    // when, then
    for watermark in ["logo", encoded(origin.url("/bomb.png")), ""] {
      #expect(try answer(watermark).status == 400)
    }
    for _ in 0..<2 {
      let bomb = try answer("bomb")
      #expect(bomb.status == 422 && bomb.text.contains("too_many_pixels") && parameter(bomb))
      let gone = try answer("gone")
      #expect(gone.status == 502 && gone.text.contains("source_error") && parameter(gone))
      let absent = try answer("local:///absent.png")
      #expect(absent.status == 502 && parameter(absent))
    }
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    #expect(try pictor.stats().imaging.workersLost == 0)
    #expect(pictor.log.contains("watermark: "))
  }
}
