// RequestMemoTests: tests of the targets that an event loop remembers.

import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestMemoTests {
  private func target(_ text: String) -> RequestTarget {
    let raw = Array(text.utf8)
    return RequestTarget(
      raw: raw, hash: raw.withUnsafeBytes { RequestMemo.hash($0) },
      rules: RequestRules(ServerConfiguration()))
  }

  @Test func `a memo returns the stored targets within its limit`() {
    let memo = RequestMemo(limit: 64 << 10)
    var found = 0
    for number in 0..<1_000 {
      let made = target("/image?url=https://h/\(number)")
      memo.remember(made)
      let hit = made.raw.withUnsafeBytes { memo.target($0, hash: made.hash) }
      #expect(hit === made || hit == nil)
    }
    for number in 0..<1_000 {
      let made = target("/image?url=https://h/\(number)")
      if let hit = made.raw.withUnsafeBytes({ memo.target($0, hash: made.hash) }) {
        found += 1
        #expect(hit.raw == made.raw)
      }
    }
    #expect(found > 8 && found < 64)
  }

  @Test func `a frequent target is not evicted by rare ones`() {
    let memo = RequestMemo(limit: 64 << 10)
    let frequent = target("/image?url=https://h/frequent")
    memo.remember(frequent)
    var misses = 0
    for number in 0..<2_000 {
      if number % 2 == 0 {
        let isKnown = frequent.raw.withUnsafeBytes {
          memo.target($0, hash: frequent.hash) === frequent
        }
        if !isKnown {
          misses += 1
          memo.remember(frequent)
        }
      } else {
        memo.remember(target("/image?url=https://h/\(number)"))
      }
    }
    #expect(misses <= 4)
  }

  @Test func `one long target beyond the limit evicts only a few`() {
    // Given a memo full of long targets
    let memo = RequestMemo(limit: 2 << 20)
    func long(_ number: Int) -> RequestTarget {
      target("/image?url=https://h/\(number)/" + String(repeating: "a", count: 1_900))
    }
    func isKept(_ target: RequestTarget) -> Bool {
      target.raw.withUnsafeBytes { memo.target($0, hash: target.hash) } != nil
    }
    var targets: [RequestTarget] = []
    var before = 0
    var maximumGone = 0
    var remembered = 0
    for number in 0..<1_000 {
      // When one more is stored
      let more = long(number)
      memo.remember(more)
      targets.append(more)
      // Then most of the others stay.
      let kept = targets.count(where: isKept)
      maximumGone = max(maximumGone, before + 1 - kept)
      if isKept(more) { remembered += 1 }
      before = kept
    }
    #expect(maximumGone <= RequestMemo.releasedAtOnce + 1)
    #expect(before > 100)
    #expect(remembered == 1_000)
  }

  @Test func `targets with equal hashes are distinguished, and errors are not stored`() {
    let memo = RequestMemo(limit: 64 << 10)
    let one = RequestTarget(
      raw: Array("/image?url=https://h/a".utf8), hash: 5, rules: RequestRules(ServerConfiguration())
    )
    let two = Array("/image?url=https://h/b".utf8)
    memo.remember(one)
    #expect(two.withUnsafeBytes { memo.target($0, hash: 5) } == nil)
    let bad = RequestTarget(
      raw: Array("/image?x=1".utf8), hash: 6, rules: RequestRules(ServerConfiguration()))
    memo.remember(bad)
    #expect(bad.raw.withUnsafeBytes { memo.target($0, hash: 6) } == nil)
  }
}
