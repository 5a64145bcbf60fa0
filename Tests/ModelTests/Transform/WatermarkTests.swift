// WatermarkTests: tests which parts of a watermark belong to the cache key.

import TestSupport
import Testing

@testable import Model

struct WatermarkTests {
  private func text(
    _ url: String = "local:///a b.png", keyURL: SourceURL? = nil,
    change: (inout WatermarkPlacement) -> Void = { _ in }
  ) throws -> String {
    var placement = WatermarkPlacement()
    change(&placement)
    var transform = Transform()
    transform.width = 10
    transform.watermark = Watermark(
      source: try SourceURL(parsing: url), placement: placement, keyURL: keyURL)
    return transform.canonicalText
  }

  @Test func `the key contains all watermark parameters, with the URL last`() throws {
    #expect(
      try text()
        == "w=10&watermark=right-bottom,1.0&watermark_url=local:///a%20b.png")
    #expect(
      try text {
        $0.position = .top
        $0.opacity = 0.5
        $0.scale = 0.25
      }
        == "w=10&watermark=top,0.5&watermark_scale=0.25&watermark_url=local:///a%20b.png")
  }

  @Test func `the position of a repeated watermark is not part of the key`() throws {
    let places = try WatermarkPlacement.positions.map { position in
      try text {
        $0.repeats = true
        $0.position = position
      }
    }
    #expect(Set(places).count == 1)
    #expect(try text() != places[0])
  }

  @Test func `the key contains the filtered URL of the watermark`() throws {
    let plain = try SourceURL(parsing: "http://h/logo.png")
    #expect(try text("http://h/logo.png?t=5", keyURL: plain) == text("http://h/logo.png"))
  }

  @Test func `only the nine fixed positions are allowed for watermarks`() {
    #expect(WatermarkPlacement.positions.count == 9)
  }
}
