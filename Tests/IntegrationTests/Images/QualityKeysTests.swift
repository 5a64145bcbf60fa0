// Keys for quality and effort: a changed one changes results, each served for its own key.

import TestSupport
import Testing

@Suite(.onOwnThreads) final class QualityKeysTests: OriginSuite {
  override init() throws {
    try super.init()
    origin.serve(
      "/a.png",
      bytes: try TestImages.encode(.scene(width: 320, height: 240, alpha: false), as: ".png"))
  }

  private func answers(
    options: [String], queries: [String]
  ) throws -> [HTTPAnswer] {
    let pictor = try PictorProcess(in: folder, ["--imaging.avif_later", "false"] + options)
    let answers = try queries.map { query in
      let answer = try pictor.connect(timeout: 60).get(
        origin.target("/a.png", adding: "&w=160" + query), headers: ["Accept": "image/webp"])
      #expect(answer.status == 200, "\(answer.text)")
      return answer
    }
    // All variants are on disk at the end.
    #expect(try pictor.end() == 0)
    return answers
  }

  @Test(arguments: [("avif", "&format=avif"), ("webp", "")])
  func `a changed quality setting renders new results, and the old value finds the old ones`(
    format: String, query: String
  ) throws {
    // Given: a result with the default quality, and one with a quality in the request
    let option = "--imaging.\(format)_quality"
    let queries = [query, query + "&quality=35"]
    let before = try answers(options: [], queries: queries)
    // When
    let changed = try answers(options: [option, "20"], queries: queries)
    // Then
    #expect(before[0]["content-type"] == "image/\(format)")
    #expect(changed[0]["content-type"] == "image/\(format)")
    #expect(changed[0].body.count < before[0].body.count)
    #expect(changed[0]["cache-status"]?.contains("hit; detail=source") == true)
    #expect(changed[0]["etag"] != before[0]["etag"])
    // The quality of the request is unchanged, and its result is found.
    #expect(changed[1].body == before[1].body)
    #expect(changed[1]["cache-status"]?.contains("detail=disk") == true)
    // The changed default is applied.
    let explicit = try answers(options: [option, "20"], queries: [query, query + "&quality=20"])
    #expect(explicit[0]["cache-status"]?.contains("detail=disk") == true)
    #expect(explicit[0].body == changed[0].body && explicit[1].body == changed[0].body)
    // When
    let back = try answers(options: [], queries: queries)
    // Then
    #expect(back[0].body == before[0].body)
    #expect(back[0]["cache-status"]?.contains("detail=disk") == true)
  }
}
