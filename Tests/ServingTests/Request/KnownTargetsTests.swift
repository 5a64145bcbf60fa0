// KnownTargetsTests: tests of the targets whose cache keys are kept after a hit.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct KnownTargetsTests {
  private func digest(
    _ text: String, accepting formats: AcceptedFormats = AcceptedFormats()
  ) -> KnownTargets.Digest {
    Array(text.utf8).withUnsafeBytes { KnownTargets.Digest($0, accepting: formats, under: 0) }
  }

  private func target(_ number: Int, key: String? = nil) -> KnownTargets.Entry {
    .target(
      KnownTarget(
        key: CacheKey(text: key ?? "https://h/\(number) w=1"), stem: "\(number)",
        isNegotiated: false, expiry: nil, hintNumber: 0))
  }

  @Test func `a kept target has its own key, and one that was not kept has none`() {
    let known = KnownTargets(limit: 1 << 12)
    for number in 0..<1_000 { known.remember(target(number), for: digest("/\(number)")) }
    var found = 0
    for number in 0..<1_000 {
      guard case .target(let target) = known.entry(digest("/\(number)")) else { continue }
      #expect(target.key.text == "https://h/\(number) w=1")
      #expect(target.stem == "\(number)")
      found += 1
    }
    #expect(found > 900)
    #expect(known.entry(digest("/x")) == nil)
    #expect(known.entry(digest("/1", accepting: AcceptedFormats([.avif]))) == nil)
    #expect(known.entry(digest("")) == nil)
  }

  @Test(arguments: [0, 63, 64, 500])
  func `no more targets are kept than the limit allows, and below 64 none is`(limit: Int) {
    let known = KnownTargets(limit: limit)
    for number in 0..<4_000 { known.remember(target(number), for: digest("/\(number)")) }
    #expect(known.count <= limit && (limit < 64 ? known.count == 0 : known.count > limit / 4))
    #expect((known.entry(digest("/3999")) != nil) == (limit >= 64))
  }

  @Test func `a target that is asked for often is not replaced by others`() {
    let known = KnownTargets(limit: 256)
    known.remember(target(-1), for: digest("often"))
    var misses = 0
    for number in 0..<4_000 {
      if known.entry(digest("often")) == nil {
        misses += 1
        known.remember(target(-1), for: digest("often"))
      }
      known.remember(target(number), for: digest("/\(number)"))
    }
    #expect(misses <= 4)
  }

  @Test func `a repeated target takes one place, and the last key counts`() {
    let known = KnownTargets(limit: 256)
    for number in 0..<10 { known.remember(target(number), for: digest("same")) }
    #expect(known.count == 1)
    guard case .target(let target) = known.entry(digest("same")) else {
      Issue.record("not kept")
      return
    }
    #expect(target.stem == "9")
  }

  @Test func `clients with other hints have other entries of one target`() {
    let digests = [ClientHints(), ClientHints(scale: 2), ClientHints(scale: 2, width: 5)].map {
      KnownTargets.Digest(digest("/1"), for: $0)
    }
    #expect(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digest("/1"))
    #expect(digests[1] == KnownTargets.Digest(digest("/1"), for: ClientHints(scale: 2)))
  }

  @Test func `a long key is not kept`() {
    let known = KnownTargets(limit: 256)
    let long = String(repeating: "a", count: KnownTargets.longestKey)
    known.remember(target(1, key: "https://h/\(long) w=1"), for: digest("long"))
    #expect(known.count == 0)
  }

  // MARK: Plain targets

  private func target(_ text: String) -> RequestTarget {
    let raw = Array(text.utf8)
    return RequestTarget(raw: raw, rules: RequestRules(ServerConfiguration()))
  }

  @Test(arguments: ["", "&format=png", "&format=auto", "&w=300"])
  func `a target is plain if its response depends on nothing but itself and the formats`(
    parameters: String
  ) {
    #expect(target("/image?url=https%3A%2F%2Fh%2Fphoto.png\(parameters)").plainStem == "photo")
  }

  @Test(arguments: ["&w=auto", "&refresh=1", "&cache=bypass", "&store=memory", "&width=x"])
  func `a target is not plain if its response depends on more`(parameter: String) {
    #expect(target("/image?url=https%3A%2F%2Fh%2Fphoto.png\(parameter)").plainStem == nil)
  }

  @Test(arguments: ["/image?url=https%3A%2F%2Fh%2F", "/image?url=https%3A%2F%2Fh%2F%25E9.png", "/"])
  func `a target is not plain without a plain file name`(text: String) {
    #expect(target(text).plainStem == nil)
  }
}
