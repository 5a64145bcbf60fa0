// ByteSearchTests: the search for quality and size, with bytes given by a formula.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct ByteSearchTests {
  /// The outcome of a search.
  private struct Found {
    var attempts: [ByteSearch.Attempt] = []
    var best: ByteSearch.Attempt?
    var bytes = Int.max
  }

  private func run(
    limit: Int, qualities: ClosedRange<Int>?, size: PixelSize,
    _ bytes: (ByteSearch.Attempt) -> Int
  ) -> Found {
    var search = ByteSearch(limit: limit, qualities: qualities, size: size)
    var found = Found()
    while let attempt = search.next() {
      found.attempts.append(attempt)
      let count = bytes(attempt)
      if search.record(bytes: count) {
        found.best = attempt
        found.bytes = count
      }
    }
    return found
  }

  private let size = PixelSize(width: 300, height: 200)

  /// Returns a header plus pixels that cost more at higher quality, like a JPEG.
  private func bytes(_ attempt: ByteSearch.Attempt) -> Int {
    let quality = Double(attempt.quality ?? 50)
    return 600 + Int(Double(attempt.size.pixels) * (0.02 + quality * quality / 40_000))
  }

  @Test func `the best quality that fits is found for any limit`() {
    let least = bytes(ByteSearch.Attempt(quality: 10, size: size))
    let maximum = bytes(ByteSearch.Attempt(quality: 80, size: size))
    for limit in stride(from: least, to: maximum, by: 61) {
      let found = run(limit: limit, qualities: 10...80, size: size, bytes)
      let quality = found.best?.quality ?? 0
      #expect(found.bytes <= limit && found.best?.size == size)
      #expect(bytes(ByteSearch.Attempt(quality: quality + 1, size: size)) > limit)
      #expect(found.attempts.count <= ByteSearch.maximumAttempts)
    }
  }

  @Test func `below the minimum quality the size is reduced close to the limit`() {
    let least = bytes(ByteSearch.Attempt(quality: 10, size: size))
    for limit in stride(from: 700, to: least, by: 37) {
      let found = run(limit: limit, qualities: 10...80, size: size, bytes)
      #expect(found.bytes <= limit && found.best?.quality == 10)
      #expect(Double(found.bytes) > 0.85 * Double(limit))
      #expect(found.attempts.count <= ByteSearch.maximumAttempts)
    }
  }

  @Test func `a search always ends, and its result fits if any attempt did`() {
    var generator = SeededGenerator(seed: 6)
    for _ in 0..<2000 {
      let limit = Int.random(in: 1...5000, using: &generator)
      let size = PixelSize(
        width: .random(in: 1...500, using: &generator),
        height: .random(in: 1...500, using: &generator))
      let top = Int.random(in: 1...100, using: &generator)
      var tried: [Int] = []
      let found = run(
        limit: limit, qualities: Bool.random(using: &generator) ? nil : min(10, top)...top,
        size: size
      ) { _ in
        tried.append(.random(in: 1...10_000, using: &generator))
        return tried.last ?? 0
      }
      #expect(found.attempts.count <= ByteSearch.maximumAttempts)
      #expect((found.bytes <= limit) == tried.contains { $0 <= limit })
      #expect(found.attempts.allSatisfy { $0.size.width <= size.width && $0.size.width > 0 })
    }
  }
}
