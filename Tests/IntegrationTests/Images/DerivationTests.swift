// Images derived from larger variants whose source is not cached, with real encoders.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class DerivationTests: OriginSuite {
  /// Parameters that store no source on disk.
  private let kept = "&store=memory"

  override init() throws {
    try super.init()
    let image = try TestImages.jpeg(width: 1_200, height: 900, quality: 95)
    for path in ["/a.jpg", "/b.jpg"] { origin.serve(path, bytes: image) }
  }

  @Test(arguments: [
    ("&quality=90", "&w=300"), ("&quality=90&format=webp", "&w=200&format=webp"),
    ("&format=png", "&w=300&h=100&fit=fill&format=png"),
    ("&quality=90&w=800", "&w=400&format=png"), ("&quality=90", "&w=76&scale=2&format=png"),
  ])
  func `a derived image resembles one from the source and needs no download`(
    large: String, small: String
  ) throws {
    let pictor = try PictorProcess(in: folder)
    #expect(try pictor.get(origin.target("/a.jpg", adding: large + kept)).status == 200)
    // When
    let derived = try pictor.get(origin.target("/a.jpg", adding: small + kept))
    // Then
    #expect(derived["cache-status"] == "pictor; hit; detail=variant")
    #expect(origin.requests(to: "/a.jpg") == 1)
    let reference = try pictor.get(origin.target("/b.jpg", adding: small + kept))
    #expect(reference["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
    for name in ["content-type", "content-dpr"] { #expect(derived[name] == reference[name]) }
    let likeness = try Pixels(decoding: derived.body).psnr(to: Pixels(decoding: reference.body))
    #expect(likeness > 32, "\(likeness) dB")
    #expect(try pictor.stats().flights.derived == 1)
  }
}
