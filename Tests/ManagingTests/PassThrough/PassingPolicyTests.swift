// PassingPolicyTests: tests which requests and which sizes may be passed through.

import Core
import TestSupport
import Testing

@testable import Managing

struct PassingPolicyTests {
  @Test func `only an unchanged request for the source's own format is passed through`() {
    let policy = ImagingPolicy()
    var plain = Transform()
    plain.format = .jpeg
    plain.progressive = true
    #expect(policy.passedFormat(for: plain) == .jpeg)
    for change: (inout Transform) -> Void in [
      { $0.format = nil }, { $0.progressive = false }, { $0.scale = 0.5 }, { $0.quality = 80 },
      { $0.rotation = .quarter }, { $0.format = .bmp },
    ] {
      var other = plain
      change(&other)
      #expect(policy.passedFormat(for: other) == nil)
    }
    // And
    plain.enlarge = true
    plain.limitBytes = 1_000
    #expect(policy.passedFormat(for: plain) == .jpeg)
  }

  @Test func `sizes are limited by pixels and memory without overflow`() {
    var settings = ImagingSettings()
    settings.maximumPixels = 100
    let policy = ImagingPolicy(settings)
    var transform = Transform()
    #expect(policy.passes(PixelSize(width: 10, height: 10), for: transform))
    #expect(!policy.passes(PixelSize(width: 10, height: 11), for: transform))
    #expect(!policy.passes(PixelSize(width: .max, height: .max), for: transform))
    transform.limitBytes = 200
    #expect(policy.passes(PixelSize(width: 10, height: 5), for: transform))
    #expect(!policy.passes(PixelSize(width: 10, height: 6), for: transform))
  }
}
