// Tests of the keys for quality and effort: a changed key changes results, and none is served as another's.

import TestSupport
import Testing

@Suite(.onOwnThreads) struct QualityKeysTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    origin.serve(
      "/a.png", try TestImages.encode(.scene(width: 320, height: 240, alpha: false), ".png"))
  }

  private func answers(
    _ options: [String], _ queries: [String]
  ) throws -> [HTTPAnswer] {
    let pictor = try PictorProcess(in: folder, ["--imaging.avif_later", "false"] + options)
    let answers = try queries.map { query in
      let answer = try pictor.connect(timeout: 60).get(
        origin.target("/a.png", "&w=160" + query), headers: ["Accept": "image/webp"])
      #expect(answer.status == 200, "\(answer.text)")
      return answer
    }
    // What was made is on disk at the end.
    #expect(try pictor.end() == 0)
    return answers
  }

  @Test(arguments: [
    ("jpeg", "&format=jpeg"), ("webp", "&format=webp"), ("avif", "&format=avif"), ("webp", ""),
  ])
  func `another quality makes other results at once, and the old ones come back with the old`(
    format: String, query: String
  ) throws {
    // Given: a result by the default, and by a quality of the request's own
    let (option, queries) = ("--imaging.\(format)_quality", [query, query + "&quality=35"])
    let before = try answers([], queries)
    // When
    let changed = try answers([option, "20"], queries)
    // Then
    #expect(before[0]["content-type"] == "image/\(format)")
    #expect(changed[0]["content-type"] == "image/\(format)")
    #expect(changed[0].body.count < before[0].body.count)
    #expect(changed[0]["cache-status"]?.contains("hit; detail=source") == true)
    #expect(changed[0]["etag"] != before[0]["etag"])
    // What the request itself says stays, and is found.
    #expect(changed[1].body == before[1].body)
    #expect(changed[1]["cache-status"]?.contains("detail=disk") == true)
    // The changed default is the quality it says.
    let explicit = try answers([option, "20"], [query, query + "&quality=20"])
    #expect(explicit[0]["cache-status"]?.contains("detail=disk") == true)
    #expect(explicit[0].body == changed[0].body && explicit[1].body == changed[0].body)
    // When
    let back = try answers([], queries)
    // Then
    #expect(back[0].body == before[0].body)
    #expect(back[0]["cache-status"]?.contains("detail=disk") == true)
  }

  @Test(arguments: [
    ("png", "1", "9"), ("webp", "0", "6"), ("avif", "0", "3"), ("gif", "1", "10"),
  ])
  func `another effort makes other bytes from then on, and what is kept stays until it is purged`(
    format: String, least: String, most: String
  ) throws {
    // Given
    let (key, query) = ("--imaging.\(format)_effort", "&format=\(format)")
    let first = try answers([key, least], [query])[0]
    // When
    let second = try answers([key, most], [query])
    // Then
    #expect(second[0].body == first.body)
    #expect(second[0]["cache-status"]?.contains("detail=disk") == true)
    // When: it is made anew
    let pictor = try PictorProcess(in: folder, [key, most] + PictorProcess.operated)
    let purge = try pictor.operate("DELETE", "/admin/cache?url=\(encoded(origin.url("/a.png")))")
    #expect(purge.status == 200)
    let third = try pictor.connect(timeout: 60).get(origin.target("/a.png", "&w=160" + query))
    // Then
    #expect(third.status == 200 && third.body != first.body)
  }
}
