// Tests of damaged sources with the real program: refused, or marked and soon forgotten, however they are asked for.

import Model
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DamagedSourcesTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private let whole: [UInt8]
  private let damaged: [UInt8]

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    whole = try TestImages.jpeg(width: 640, height: 480, bare: true)
    // A third of the coded data is gone, so that no chance makes it fit.
    damaged = Array(whole.prefix(whole.count / 3) + whole.suffix(whole.count / 3))
  }

  /// How many seconds from now a client may keep an answer: `max-age` counts from when its `Age` was 0.
  private func remainingLifetime(_ answer: HTTPAnswer) throws -> Int {
    let text = try #require(answer["cache-control"])
    let value = text.split(whereSeparator: { ", ".contains($0) }).first { $0.hasPrefix("max-age=") }
    let digits = try #require(value).dropFirst("max-age=".count)
    return try #require(Int(digits)) - (answer["age"].flatMap { Int($0) } ?? 0)
  }

  @Test func `a damaged source is undecodable, and is loaded anew when it is asked for again`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", damaged)
    // When
    for wish in ["&w=100", "", "&format=jpeg&progressive=1&retry=1&cache=bypass&w=300"] {
      let answer = try pictor.get(origin.target("/a.jpg", wish))
      // Then
      #expect(answer.status == 422 && answer.text.contains(#""undecodable""#), "\(wish)")
    }
    // When its origin has it whole
    origin.serve("/a.jpg", whole)
    let answer = try pictor.get(origin.target("/a.jpg", "&w=100&retry=1"))
    // Then
    #expect(answer.status == 200 && answer["x-damaged"] == nil)
  }

  @Test(arguments: ["none", "truncated", "error"])
  func `milder damage than refused is marked, short-lived and never on disk`(failOn: String) throws
  {
    // Given
    let options = ["--imaging.fail_on", failOn]
    origin.serve("/a.jpg", damaged)
    do {
      let pictor = try PictorProcess(in: folder, options)
      for wish in ["&w=100", "&quality=100", "&format=jpeg&progressive=1"] {
        for _ in 0..<2 {
          // When
          let answer = try pictor.get(origin.target("/a.jpg", wish))
          // Then: what is sent while it comes in is not known to be damaged yet
          let isComing = answer["cache-status"]?.contains("fwd=") == true && wish.contains("prog")
          #expect(answer.status == 200)
          #expect(answer["x-damaged"] == "1" || isComing, "\(wish)")
          #expect(try remainingLifetime(answer) <= 60)
          if isComing { try pictor.waitFor("it is kept") { $0.memory.entries == 3 } }
        }
      }
      #expect(try pictor.end() == 0)
    }
    // When
    let pictor = try PictorProcess(in: folder, options)
    let before = origin.requests(to: "/a.jpg")
    let answer = try pictor.get(origin.target("/a.jpg", "&w=100"))
    // Then
    #expect(answer["x-damaged"] == "1")
    #expect(answer["cache-status"]?.contains("fwd=uri-miss") == true)
    #expect(origin.requests(to: "/a.jpg") == before + 1)
  }

  @Test
  func `what is sent while it comes in is kept for a moment, and not at all if it is damaged`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", damaged)
    let target = origin.target("/a.jpg", "&format=jpeg&progressive=1")
    // When
    let first = try pictor.get(target)
    // Then
    #expect(first.status == 200 && first.body == damaged)
    #expect(try remainingLifetime(first) <= 60)
    try pictor.waitFor("it is known") { $0.flights.failedURLs == 1 }
    #expect(try pictor.get(target).status == 422)
    #expect(try pictor.get(origin.target("/a.jpg", "&w=90")).status == 422)
  }

  @Test func `an animation that was cut off without a word is no shorter animation`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    let frames = (0..<20).map { index in
      Pixels(width: 60, height: 40) { x, y in
        [UInt8(truncatingIfNeeded: x * 5 + index * 9), UInt8(truncatingIfNeeded: y * 7), 90]
      }
    }
    let gif = try TestImages.animation(frames, as: ".gif")
    origin.route("/whole.gif", .untilClose(gif))
    origin.route("/cut.gif", .untilClose(Array(gif.prefix(gif.count / 2))))
    // When
    let answers = try ["/whole.gif", "/cut.gif"].map { try pictor.get(origin.target($0)) }
    // Then
    #expect(answers.map(\.status) == [200, 422])
    #expect(answers[1].text.contains(#""undecodable""#))
  }
}
