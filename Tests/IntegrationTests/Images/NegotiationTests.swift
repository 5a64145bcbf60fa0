// format=auto and presets in the real program: clients, keys, redirects, presets only.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class NegotiationTests: OriginSuite {
  private let chrome = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"

  /// A JPEG whose AVIF is a seventh smaller than its WebP.
  private static func waves() throws -> [UInt8] {
    let pixels = Pixels(width: 600, height: 400) { x, y in
      let (x, y) = (Double(x), Double(y))
      return [
        128 + 60 * sin(x / 23) + 40 * cos(y / 17 + x / 40), 110 + 70 * sin((x + y) / 31),
        90 + 50 * cos(x / 19 - y / 29),
      ].map { UInt8($0) }
    }
    return try TestImages.encode(pixels, as: ".jpg[Q=90]")
  }

  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 80, height: 60))
  }

  @Test func `a deferred AVIF follows a faster format and survives a restart`()
    throws
  {
    origin.serve("/large.jpg", bytes: try Self.waves())
    let target = origin.target("/large.jpg")
    func answer(_ pictor: PictorProcess) throws -> HTTPAnswer {
      try pictor.connect().get(target, headers: ["Accept": chrome])
    }
    var pictor = try PictorProcess(in: folder)
    let quick = try answer(pictor)
    #expect(quick["content-type"] == "image/webp")
    // The lifetime counts from when the source arrived: with `Age`, 30 seconds are left.
    let lifetime = try #require(
      quick["cache-control"].flatMap { Int($0.drop { !$0.isNumber }) })
    let age = try #require(quick["age"].flatMap { Int($0) })
    #expect((29...30).contains(lifetime - age))
    var later = quick
    try blockUntil("the AVIF is there") {
      later = try answer(pictor)
      return later["content-type"] == "image/avif"
    }
    #expect(later.body.count < quick.body.count)
    #expect(later["cache-control"] != quick["cache-control"])
    #expect(try pictor.end() == 0)
    pictor = try PictorProcess(in: folder)
    #expect(try answer(pictor)["etag"] == later["etag"])
    #expect(origin.requests(to: "/large.jpg") == 1)
  }

  @Test func `a redirect never leads to an AVIF that is not encoded yet`() throws {
    origin.serve("/large.jpg", bytes: try Self.waves())
    let pictor = try PictorProcess(in: folder, ["--server.redirect_auto", "true"])
    let client = try pictor.connect()
    func image(_ format: String) throws -> HTTPAnswer {
      let answer = try client.get(origin.target("/large.jpg"), headers: ["Accept": chrome])
      let location = try #require(answer["location"])
      #expect("/" + location == origin.target("/large.jpg", adding: "&format=" + format))
      return try client.get("/" + location)
    }
    let quick = try image("webp")
    #expect(quick["cache-status"] == "pictor; hit; detail=memory")
    #expect(quick["cache-control"] != "public, max-age=30")
    try pictor.waitFor("the AVIF") { $0.flights.avifsLater == 1 }
    #expect(try image("avif")["cache-status"] == "pictor; hit; detail=memory")
    #expect(try pictor.stats().imaging.succeeded == 2)
  }
}
