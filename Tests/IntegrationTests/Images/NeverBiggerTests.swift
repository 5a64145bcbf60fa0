// A response is never larger than a source that could be sent instead, with real encoders.

import Model
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct NeverBiggerTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private let image: [UInt8]

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    image = try TestImages.jpeg(width: 320, height: 240, quality: 40, bare: true)
    origin.serve("/a.jpg", bytes: image)
  }

  @Test func `a source is sent unchanged if rendering could only enlarge it, also after a restart`()
    throws
  {
    let target = origin.target("/a.jpg", adding: "&quality=100")
    var tags: Set<String?> = []
    do {
      let pictor = try PictorProcess(in: folder)
      for detail in ["fwd=uri-miss; fwd-status=200; stored", "hit; detail=memory"] {
        let answer = try pictor.get(target)
        #expect(answer.body == image)
        #expect(answer["content-type"] == "image/jpeg")
        #expect(answer["cache-status"] == "pictor; \(detail)")
        tags.insert(answer["etag"])
      }
      #expect(try pictor.stats().flights.sourcesInstead == 1)
      #expect(try pictor.end() == 0)
    }
    let pictor = try PictorProcess(in: folder)
    let answer = try pictor.get(target)
    #expect(answer.body == image && answer["cache-status"] == "pictor; hit; detail=disk")
    tags.insert(answer["etag"])
    #expect(tags.count == 1 && !tags.contains(nil))
    #expect(try pictor.stats().imaging.succeeded == 0)
  }

  @Test func `a smaller, converted, resized or stripped image is rendered`() throws {
    let pictor = try PictorProcess(in: folder)
    for wish in ["&quality=10", "&quality=100&format=webp", "&quality=100&w=319"] {
      let answer = try pictor.get(origin.target("/a.jpg", adding: wish))
      #expect(answer.status == 200 && answer.body != image)
    }
    // With Exif, the source's pixels are sent without it.
    let exif = try TestImages.jpeg(width: 320, height: 240, quality: 40)
    origin.serve("/b.jpg", bytes: exif)
    let answer = try pictor.get(origin.target("/b.jpg", adding: "&quality=100"))
    let sign = Array("Exif".utf8)
    #expect(exif.contains(sign) && !answer.body.contains(sign))
    #expect(answer.body.count < exif.count)
    #expect(try Pixels(decoding: answer.body).values == Pixels(decoding: exif).values)
    #expect(try pictor.stats().flights.sourcesInstead == 0)
  }
}
