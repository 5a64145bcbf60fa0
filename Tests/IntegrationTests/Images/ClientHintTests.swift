// Client hints end to end: real program, real origin.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) final class ClientHintTests: OriginSuite {
  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 1_000, height: 500))
  }

  @Test func `hints decide on the size, density and quality of an image`() throws {
    let pictor = try PictorProcess(
      in: folder, ["--imaging.save_data_reduction", "40", "--server.client_hints", "true"])
    let client = try pictor.connect()
    let target = origin.target("/a.jpg", adding: "&w=auto&dpr=auto&format=jpeg")
    // without hints
    let plain = try client.get(target)
    #expect(try Pixels(decoding: plain.body).size.width == 1_000)
    #expect(plain["Accept-CH"] == "Sec-CH-DPR, Sec-CH-Width, Save-Data")
    #expect(plain["Vary"] == "Sec-CH-DPR, DPR, Sec-CH-Width, Width, Save-Data")
    // with a width in physical pixels
    let sized = try client.get(target, headers: ["Sec-CH-Width": "600", "Sec-CH-DPR": "2"])
    #expect(try Pixels(decoding: sized.body).size.width == 640 && sized["Content-DPR"] == "2")
    // the same as with numbers
    let named = try client.get(
      origin.target("/a.jpg", adding: "&w=320&dpr=2&format=jpeg"))
    #expect(named["Cache-Status"] == "pictor; hit; detail=memory")
    #expect(named.body == sized.body && named["ETag"] == sized["ETag"])
    #expect(named["Vary"] == "Save-Data")
    // fewer bytes
    let saved = try client.get(
      target, headers: ["Sec-CH-Width": "600", "Sec-CH-DPR": "2", "Save-Data": "on"])
    #expect(saved.body.count < sized.body.count * 8 / 10)
    #expect(saved["ETag"] != sized["ETag"])
    #expect(origin.requests(to: "/a.jpg") == 1)
    let made = try pictor.stats().imaging.succeeded
    // hits
    for (fields, body) in [(["600", "2"], sized.body), (["580", "1.7"], sized.body)] {
      let hit = try client.get(
        target, headers: ["Sec-CH-Width": fields[0], "Sec-CH-DPR": fields[1]])
      #expect(hit["Cache-Status"] == "pictor; hit; detail=memory" && hit.body == body)
    }
    #expect(try pictor.stats().imaging.succeeded == made)
  }
}
