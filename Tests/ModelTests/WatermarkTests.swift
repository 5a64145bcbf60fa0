// WatermarkTests: tests which parts of a watermark belong to the cache key.

import Testing

@testable import Model

struct WatermarkTests {
  private func text(
    _ url: String = "local:///a b.png", keyURL: SourceURL? = nil,
    _ change: (inout WatermarkPlacement) -> Void = { _ in }
  ) throws -> String {
    var placement = WatermarkPlacement()
    change(&placement)
    var transform = Transform()
    transform.width = 10
    transform.watermark = Watermark(
      source: try SourceURL(parsing: url), placement: placement, keyURL: keyURL)
    return transform.canonicalText
  }

  @Test func `all that changes the image is in the key, the address last`() throws {
    #expect(
      try text()
        == "w=10&watermark=right-bottom,1.0&watermark_url=local:///a%20b.png")
    #expect(
      try text { ($0.position, $0.opacity, $0.scale) = (.top, 0.5, 0.25) }
        == "w=10&watermark=top,0.5&watermark_scale=0.25&watermark_url=local:///a%20b.png")
  }

  @Test func `where it repeats its position says nothing`() throws {
    let places = try WatermarkPlacement.positions.map { position in
      try text { ($0.repeats, $0.position) = (true, position) }
    }
    #expect(Set(places).count == 1)
    #expect(try text() != places[0])
  }

  @Test func `its address is in the key without what does not count`() throws {
    let plain = try SourceURL(parsing: "http://h/logo.png")
    #expect(try text("http://h/logo.png?t=5", keyURL: plain) == text("http://h/logo.png"))
  }

  @Test func `the nine places can be named, and nothing that the image decides`() {
    #expect(WatermarkPlacement.positions.count == 9)
  }
}
