// Damaged sources in the real program: refused, or marked and stored briefly.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class DamagedSourcesTests: OriginSuite {
  private let whole: [UInt8]
  private let damaged: [UInt8]

  override init() throws {
    whole = try TestImages.jpeg(width: 640, height: 480, bare: true)
    // A third of the coded data is missing, so the damage is always detected.
    damaged = Array(whole.prefix(whole.count / 3) + whole.suffix(whole.count / 3))
    try super.init()
  }

  /// Returns the seconds for which a client may store a response: from an `Age` of 0.
  private func remainingLifetime(_ answer: HTTPAnswer) throws -> Int {
    let text = try #require(answer["cache-control"])
    let value = text.split(whereSeparator: { ", ".contains($0) }).first { $0.hasPrefix("max-age=") }
    let digits = try #require(value).dropFirst("max-age=".count)
    return try #require(Int(digits)) - (answer["age"].flatMap { Int($0) } ?? 0)
  }

  @Test func `a damaged source is undecodable and loaded again on the next retry`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: damaged)
    // When
    for wish in ["&w=100", "", "&format=jpeg&progressive=1&retry=1&cache=bypass&w=300"] {
      let answer = try pictor.get(origin.target("/a.jpg", adding: wish))
      // Then
      #expect(answer.status == 422 && answer.text.contains(#""undecodable""#), "\(wish)")
    }
    // When its origin has the intact image
    origin.serve("/a.jpg", bytes: whole)
    let answer = try pictor.get(origin.target("/a.jpg", adding: "&w=100&retry=1"))
    // Then
    #expect(answer.status == 200 && answer["x-damaged"] == nil)
  }

  @Test(arguments: ["none", "truncated", "error"])
  func `tolerated damage is marked, short-lived and never stored on disk`(failOn: String) throws {
    // Given
    let options = ["--imaging.fail_on", failOn]
    origin.serve("/a.jpg", bytes: damaged)
    do {
      let pictor = try PictorProcess(in: folder, options)
      for wish in ["&w=100", "&quality=100", "&format=jpeg&progressive=1"] {
        for _ in 0..<2 {
          // When
          let answer = try pictor.get(origin.target("/a.jpg", adding: wish))
          // Then: a streamed image is not known to be damaged yet
          let isComing = answer["cache-status"]?.contains("fwd=") == true && wish.contains("prog")
          #expect(answer.status == 200)
          #expect(answer["x-damaged"] == "1" || isComing, "\(wish)")
          #expect(try remainingLifetime(answer) <= 60)
          #expect(answer["cache-control"]?.hasSuffix(", must-revalidate") == true)
          if isComing { try pictor.waitFor("it is kept") { $0.memory.entries == 3 } }
        }
      }
      #expect(try pictor.end() == 0)
    }
    // When
    let pictor = try PictorProcess(in: folder, options)
    let before = origin.requests(to: "/a.jpg")
    let answer = try pictor.get(origin.target("/a.jpg", adding: "&w=100"))
    // Then
    #expect(answer["x-damaged"] == "1")
    #expect(answer["cache-status"]?.contains("fwd=uri-miss") == true)
    #expect(origin.requests(to: "/a.jpg") == before + 1)
  }

  @Test
  func `a streamed image is cached briefly, and not at all if it is damaged`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: damaged)
    let target = origin.target("/a.jpg", adding: "&format=jpeg&progressive=1")
    // When
    let first = try pictor.get(target)
    // Then
    #expect(first.status == 200 && first.body == damaged)
    #expect(try remainingLifetime(first) <= 60)
    try pictor.waitFor("it is known") { $0.flights.failedURLs == 1 }
    #expect(try pictor.get(target).status == 422)
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=90")).status == 422)
  }

  @Test func `a silently truncated animation is undecodable`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    let frames = (0..<20).map { index in
      Pixels(width: 60, height: 40) { x, y in
        [UInt8(truncatingIfNeeded: x * 5 + index * 9), UInt8(truncatingIfNeeded: y * 7), 90]
      }
    }
    let gif = try TestImages.animation(frames, as: ".gif")
    origin.route("/whole.gif", to: .untilClose(gif))
    origin.route("/cut.gif", to: .untilClose(Array(gif.prefix(gif.count / 2))))
    // When
    let answers = try ["/whole.gif", "/cut.gif"].map { try pictor.get(origin.target($0)) }
    // Then
    #expect(answers.map(\.status) == [200, 422])
    #expect(answers[1].text.contains(#""undecodable""#))
  }
}
