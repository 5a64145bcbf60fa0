// GreedyClientTests: clients that hold the real program's connections, places and workers.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class GreedyClientTests: OriginSuite {
  private let greedy: KeyValuePairs = ["X-Forwarded-For": "198.51.100.7"]
  private let modest: KeyValuePairs = ["X-Forwarded-For": "2001:db8::8"]

  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 300, height: 200))
  }

  @Test func `imaging time is charged to the client whose image is rendered`() throws {
    // Given less time than any image takes
    let pictor = try PictorProcess(
      in: folder,
      ["--server.trusted_proxies", "127.0.0.0/8", "--server.imaging_time_per_client", "2ms"])
    func status(_ width: Int, headers: KeyValuePairs<String, String>) throws -> Int {
      try pictor.connect().get(
        origin.target("/a.jpg", adding: "&w=\(width)&format=webp"), headers: headers
      ).status
    }
    // When it is used up
    var width = 0
    try blockUntil("the client is limited") {
      width += 1
      return try status(width, headers: greedy) == 429
    }
    // Then the images it has are served, and others may render
    #expect(width > 1)
    #expect(try status(1, headers: greedy) == 200)
    #expect(try status(250, headers: modest) == 200)
    #expect(try pictor.stats().requests.rateLimited["imaging_time"] == 1)
  }
}
