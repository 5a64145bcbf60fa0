// A response is never larger than a source that could be sent instead, with real encoders.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class NeverBiggerTests: OriginSuite {
  private let image: [UInt8]

  override init() throws {
    image = try TestImages.jpeg(width: 320, height: 240, quality: 40, bare: true)
    try super.init()
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
}
