// RangeTests: parts of images, from memory, disk, local files and fresh loads.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class RangeTests: OriginSuite {
  @Test func `each place that has an image sends parts of it`() throws {
    let photo = try TestImages.jpeg(width: 600, height: 400)
    origin.serve("/a.jpg", bytes: photo)
    try folder.write("b.jpg", bytes: photo)
    // One is kept in memory, one on disk alone, one is read in place.
    let pictor = try PictorProcess(in: folder, ["--sources.local_root", folder.path])
    let targets = [
      origin.target("/a.jpg", adding: "&w=300"),
      origin.target("/a.jpg", adding: "&format=png&store=disk"),
      "/image?url=local:///b.jpg&pass=all&scale=1",
    ]
    for target in targets {
      let whole = try pictor.get(target)
      #expect(whole.status == 200 && whole["accept-ranges"] == "bytes")
      let count = whole.body.count
      let tag = whole["etag"] ?? ""
      for _ in 0..<2 {
        for (range, part) in [
          ("bytes=0-0", 0..<1), ("bytes=100-199", 100..<200), ("bytes=-5", count - 5..<count),
          ("bytes=7-", 7..<count),
        ] {
          for condition in [("X-No", ""), ("If-Range", tag)] {
            let answer = try pictor.part(range, of: target, if: condition)
            #expect(answer.status == 206, "\(target) \(range)")
            #expect(answer.body.elementsEqual(whole.body[part]), "\(target) \(range)")
            #expect(
              answer["content-range"] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)")
            #expect(answer["etag"] == tag && answer["content-type"] == whole["content-type"])
          }
        }
        let beyond = try pictor.part("bytes=\(count)-", of: target)
        #expect(beyond.status == 416 && beyond.body.isEmpty && beyond["etag"] == nil)
        #expect(beyond["cache-control"] == "no-store")
        #expect(beyond["content-range"] == "bytes */\(count)")
        // What is no single range, or of other bytes, is the whole; 304 comes first.
        for (range, condition) in [
          ("bytes=0-1,3-4", tag), ("pixels=0-1", tag), ("bytes=0-1", "\"other\""),
          ("bytes=0-1", "W/" + tag), ("bytes=0-1", whole["last-modified"] ?? "x"),
        ] {
          let answer = try pictor.part(range, of: target, if: ("If-Range", condition))
          #expect(answer.status == 200 && answer.body == whole.body, "\(target) \(condition)")
        }
        let same = try pictor.part("bytes=0-1", of: target, if: ("If-None-Match", tag))
        #expect(same.status == 304)
      }
    }
  }

  @Test func `HEAD and a source that is streamed ignore ranges`() throws {
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 600, height: 400))
    let pictor = try PictorProcess(in: folder)
    let target = origin.target("/a.jpg", adding: "&w=300")
    let first = try pictor.part("bytes=0-9", of: target)
    #expect(first.status == 206 && first.body.count == 10)
    let head = try pictor.connect().request(
      "HEAD", target: target, headers: ["Range": "bytes=0-9"])
    #expect(head.status == 200 && head["content-range"] == nil)
  }
}

extension PictorProcess {
  /// Asks for a range, perhaps with another field.
  fileprivate func part(
    _ range: String, of target: String, if condition: (String, String) = ("X-No", "")
  ) throws -> HTTPAnswer {
    try connect().get(target, headers: ["Range": range, condition.0: condition.1])
  }
}
