// GhostListTests: the list of keys that were asked for once.

import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct GhostListTests {
  @Test func `a key is met at its second request, and forgotten then`() {
    let ghosts = Ghosts()
    #expect(
      (0..<6).map { _ in ghosts.meet(0x1234_5678_9abc) } == [false, true, false, true, false, true])
    #expect(!ghosts.meet(0) && ghosts.meet(0))
    #expect(!ghosts.meet(-1) && ghosts.meet(-1))
  }

  @Test func `keys of one set do not hide each other, and the fifth replaces the oldest`() {
    // Given hashes that differ in their upper halves only
    let ghosts = Ghosts()
    let keys = (1...5).map { $0 << 32 }
    for key in keys[..<4] { #expect(!ghosts.meet(key)) }
    // When one in the middle is taken, then its place serves the next
    #expect(ghosts.meet(keys[1]))
    #expect(!ghosts.meet(keys[1]))
    #expect(!ghosts.meet(keys[4]))
    // Then only the oldest is forgotten
    #expect([1, 2, 3, 4].map { ghosts.meet(keys[$0]) } == [true, true, true, true])
    #expect(!ghosts.meet(keys[0]))
  }

  @Test func `a hundred thousand keys are remembered, and not after two million others`() {
    let ghosts = Ghosts()
    var generator = SystemRandomNumberGenerator()
    let keys = (0..<100_000).map { _ in Int(truncatingIfNeeded: generator.next()) }
    for key in keys { _ = ghosts.meet(key) }
    #expect(GhostList.bytes == 1 << 20)
    #expect(keys.prefix(20_000).count { ghosts.meet($0) } > 18_000)
    for _ in 0..<2_000_000 { _ = ghosts.meet(Int(truncatingIfNeeded: generator.next())) }
    #expect(keys.suffix(20_000).count { ghosts.meet($0) } < 1_000)
  }
}

/// A list that `#expect` may change.
private final class Ghosts {
  private var list = GhostList()
  func meet(_ hash: Int) -> Bool { list.meet(hash) }
}
