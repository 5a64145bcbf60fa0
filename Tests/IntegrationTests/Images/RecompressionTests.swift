// RecompressionTests: popular images become smaller, with the real program, workers and encoders.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class RecompressionTests: OriginSuite {
  override init() throws {
    try super.init()
    let headers = ["Cache-Control: max-age=6000"]
    let scene = Self.noisy(width: 320, height: 240)
    origin.serve("/a.png", bytes: try TestImages.encode(scene, as: ".png"), headers: headers)
    let alpha = try TestImages.png(width: 160, height: 120, alpha: true)
    origin.serve("/alpha.png", bytes: alpha, headers: headers)
    let photo = Self.noisy(width: 640, height: 480)
    origin.serve("/b.jpg", bytes: try TestImages.encode(photo, as: ".jpg[Q=95]"), headers: headers)
  }

  /// Returns the scene with noise, whose JPEGs have more codes than a photograph's.
  private static func noisy(width: Int, height: Int) -> Pixels {
    var random = SeededGenerator(seed: 9)
    var pixels = Pixels.scene(width: width, height: height)
    for index in pixels.values.indices {
      pixels.values[index] = UInt8(
        clamping: Int(pixels.values[index]) + Int.random(in: -40...40, using: &random))
    }
    return pixels
  }

  private func pictor(_ options: [String] = []) throws -> PictorProcess {
    try PictorProcess(in: folder, ["--imaging.recompress_after", "3"] + options)
  }

  /// Requests an image four times: three hits make it popular. Returns the first response.
  private func ask(_ pictor: PictorProcess, _ target: String) throws -> HTTPAnswer {
    let client = try pictor.connect()
    let first = try client.get(target)
    for _ in 0..<3 {
      let hit = try client.get(target)
      #expect(hit.body == first.body && hit["cache-status"] == "pictor; hit; detail=memory")
    }
    return first
  }

  private func waitUntilDone(_ pictor: PictorProcess, _ count: Int) throws {
    try pictor.waitFor("they are recompressed") {
      let figures = $0.recompression
      let done = figures.smaller.whole + figures.unchanged.whole + figures.failed.whole
      return figures.waiting == 0 && done >= count
    }
  }

  @Test(arguments: [
    ("/b.jpg", "&w=600&quality=95"), ("/b.jpg", "&w=600&quality=95&grayscale=1"),
    ("/b.jpg", "&w=600&quality=95&strip=0"),
    ("/a.png", "&w=200&format=png"), ("/alpha.png", "&w=100"),
    ("/b.jpg", "&w=100&format=png&progressive=1"),
  ])
  func `a popular image has the same pixels in fewer bytes, a new tag and the same age`(
    path: String, wish: String
  ) throws {
    let target = origin.target(path, adding: wish)
    let pictor = try pictor()
    let first = try ask(pictor, target)
    try waitUntilDone(pictor, 1)
    // Then
    let last = try pictor.get(target)
    #expect(last.body.count < first.body.count)
    #expect(try Pixels(decoding: last.body).values == Pixels(decoding: first.body).values)
    #expect(last["content-type"] == first["content-type"])
    #expect(last["cache-control"] == first["cache-control"])
    #expect(last["last-modified"] == first["last-modified"])
    let isJPEG = last["content-type"] == "image/jpeg"
    #expect(last.body.contains([0xff, 0xc2]) == isJPEG || !isJPEG, "it is progressive")
    // And
    let (old, new) = (try #require(first["etag"]), try #require(last["etag"]))
    #expect(old != new)
    for (tag, status) in [(old, 200), (new, 304)] {
      let answer = try pictor.connect().get(target, headers: ["If-None-Match": tag])
      #expect(answer.status == status && answer["etag"] == new)
      if status == 200 { #expect(answer.body == last.body) }
    }
    let figures = try pictor.stats().recompression
    #expect(figures.smaller == 1 && figures.bytesBefore == first.body.count)
    #expect(figures.bytesAfter == last.body.count && figures.processorSeconds >= 0)
    #expect(
      try pictor.get("/metrics").text.contains("pictor_recompressions_total{result=\"smaller\"} 1"))
  }

  @Test func `a popular image is encoded again with more effort, and looks the same`() throws {
    let target = origin.target("/b.jpg", adding: "&w=400&format=webp")
    let pictor = try pictor()
    let first = try ask(pictor, target)
    try waitUntilDone(pictor, 1)
    let last = try pictor.get(target)
    #expect(last.body.count < first.body.count && last["etag"] != first["etag"])
    #expect(last["cache-control"] == first["cache-control"])
    let source = try Pixels(
      decoding: try pictor.get(origin.target("/b.jpg", adding: "&w=400&format=png")).body)
    let (before, after) = (try Pixels(decoding: first.body), try Pixels(decoding: last.body))
    #expect(after.psnr(to: source) > before.psnr(to: source) - 0.5)
    #expect(origin.requests(to: "/b.jpg") == 1)
  }

  @Test(arguments: ["format=avif", "format=auto"])
  func `a popular AVIF has fewer bytes and looks the same`(wish: String) throws {
    origin.serve(
      "/scene.jpg",
      bytes: try TestImages.encode(.scene(width: 640, height: 480), as: ".jpg[Q=95]"),
      headers: ["Cache-Control: max-age=6000"])
    let target = origin.target("/scene.jpg", adding: "&w=400&" + wish)
    let pictor = try pictor()
    let headers: KeyValuePairs = ["Accept": "image/avif,image/webp,*/*"]
    let ask = { try pictor.connect().get(target, headers: headers) }
    var first = try ask()
    // The first answer to `format=auto` is a WebP.
    try blockUntil("the AVIF is there") {
      first = try ask()
      return first["content-type"] == "image/avif"
    }
    for _ in 0..<3 { _ = try ask() }
    try waitUntilDone(pictor, 1)
    let last = try ask()
    #expect(last["content-type"] == "image/avif" && last["etag"] != first["etag"])
    #expect(last.body.count < first.body.count)
    let source = try Pixels(
      decoding: try pictor.get(origin.target("/scene.jpg", adding: "&w=400&format=png")).body)
    let (before, after) = (try Pixels(decoding: first.body), try Pixels(decoding: last.body))
    #expect(after.psnr(to: source) > before.psnr(to: source) - 0.5)
  }

  @Test func `the work is not repeated after a restart, neither what gained nor what did not`()
    throws
  {
    let targets = [
      origin.target("/b.jpg", adding: "&w=600&quality=95"),
      origin.target("/b.jpg", adding: "&w=600&quality=95&progressive=1"),
    ]
    var kept: [[UInt8]] = []
    do {
      let pictor = try pictor()
      for target in targets { _ = try ask(pictor, target) }
      try waitUntilDone(pictor, 2)
      kept = try targets.map { try pictor.get($0).body }
      let figures = try pictor.stats().recompression
      #expect(figures.smaller == 1 && figures.unchanged == 1)
      #expect(try pictor.end() == 0)
    }
    let pictor = try pictor()
    for (target, body) in zip(targets, kept) {
      for _ in 0..<8 { #expect(try pictor.get(target).body == body) }
    }
    let stats = try pictor.stats()
    #expect(stats.recompression.smaller == 0 && stats.imaging.succeeded == 0)
  }

  @Test func `the first response is the same with and without recompression, and 0 turns it off`()
    throws
  {
    let target = origin.target("/b.jpg", adding: "&w=600&quality=95")
    let first = try ask(try pictor(), target).body
    let plain = try PictorProcess(
      in: TemporaryFolder(), ["--imaging.recompress_after", "0"])
    for _ in 0..<50 { #expect(try plain.get(target).body == first) }
    #expect(try plain.stats().recompression.smaller == 0)
  }
}
