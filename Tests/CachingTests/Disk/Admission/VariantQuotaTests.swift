// VariantQuotaTests: the bookkeeping of the free-form variants of each source.

import Testing

@testable import Caching

struct VariantQuotaTests {
  private func digest(_ number: Int, width: Int) -> EntryDigest {
    EntryDigest(of: Sample.variantKey(number, width: width))
  }

  @Test func `beyond the limit the variant that was stored longest ago gives way`() {
    let quota = Quota(limit: 3)
    for width in 1...3 { #expect(quota.note(digest(1, width: width)) == nil) }
    #expect(quota.note(digest(1, width: 4)) == digest(1, width: 1))
    // One that is stored again counts once, and is the newest.
    #expect(quota.note(digest(1, width: 2)) == nil)
    #expect(quota.note(digest(1, width: 5)) == digest(1, width: 3))
  }

  @Test func `each source has its own limit`() {
    let quota = Quota(limit: 2)
    for number in 1...10 {
      for width in 1...2 { #expect(quota.note(digest(number, width: width)) == nil) }
    }
    #expect(quota.note(digest(7, width: 3)) == digest(7, width: 1))
    #expect(quota.count == 10)
  }

  @Test func `a variant that is forgotten neither counts nor gives way`() {
    let quota = Quota(limit: 2)
    for width in 1...2 { _ = quota.note(digest(1, width: width)) }
    quota.forget(digest(1, width: 1))
    quota.forget(digest(2, width: 1))
    #expect(quota.note(digest(1, width: 3)) == nil)
    #expect(quota.note(digest(1, width: 4)) == digest(1, width: 2))
  }

  @Test func `the number of sources is bounded, and the one that stored last stays`() {
    let quota = Quota(limit: 1)
    _ = quota.note(digest(0, width: 1))
    for number in 1..<VariantQuota.maximumSources { _ = quota.note(digest(number, width: 1)) }
    #expect(quota.note(digest(0, width: 2)) == digest(0, width: 1))
    for number in 0..<100 { _ = quota.note(digest(10_000 + number, width: 1)) }
    #expect(quota.count == VariantQuota.maximumSources)
    #expect(quota.note(digest(0, width: 3)) == digest(0, width: 2))
  }
}

/// A quota that `#expect` may change.
private final class Quota {
  private var quota: VariantQuota
  var count: Int { quota.count }
  init(limit: Int) { quota = VariantQuota(limit: limit) }
  func note(_ digest: EntryDigest) -> EntryDigest? { quota.note(digest) }
  func forget(_ digest: EntryDigest) { quota.forget(digest) }
}
