// The strictest freshness of a chain counts: a redirect's headers limit what is stored.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class RedirectFreshnessTests: OriginSuite {
  private struct Case {
    let hops: [[String]]
    let target: [String]
    let isKept: Bool
    let control: String
  }

  private static let year = ["Cache-Control: max-age=31536000"]

  private static let cases = [
    // Redirects without freshness headers have no effect.
    Case(hops: [[]], target: year, isKept: true, control: "public, max-age=31536000"),
    Case(
      hops: [[], [], []], target: ["Cache-Control: max-age=60, immutable"], isKept: true,
      control: "public, max-age=60, immutable"),
    Case(
      hops: [["Cache-Control: public"]], target: year, isKept: true,
      control: "public, max-age=31536000"),
    Case(hops: [["Cache-Control: no-store"]], target: year, isKept: false, control: "no-store"),
    Case(hops: [["Cache-Control: private"]], target: year, isKept: false, control: "no-store"),
    Case(
      hops: [[], ["Cache-Control: no-store"]], target: year, isKept: false, control: "no-store"),
    Case(
      hops: [["Cache-Control: no-store"], []], target: year, isKept: false, control: "no-store"),
    Case(
      hops: [["Cache-Control: no-cache"]], target: year, isKept: false,
      control: "public, max-age=0, must-revalidate"),
    Case(
      hops: [["Cache-Control: max-age=0"]], target: year, isKept: false,
      control: "public, max-age=0"),
    Case(hops: [["Expires: 0"]], target: year, isKept: false, control: "public, max-age=0"),
    Case(
      hops: [["Vary: *"]], target: year, isKept: false,
      control: "public, max-age=0, must-revalidate"),
    Case(
      hops: [["Cache-Control: max-age=60"]], target: year, isKept: true,
      control: "public, max-age=60"),
    Case(
      hops: [["Cache-Control: max-age=600"], ["Cache-Control: max-age=60"]], target: year,
      isKept: true, control: "public, max-age=60"),
    Case(
      hops: [["Cache-Control: max-age=31536000"]], target: ["Cache-Control: max-age=60"],
      isKept: true, control: "public, max-age=60"),
    Case(
      hops: [["Cache-Control: max-age=60, s-maxage=600"]], target: year, isKept: true,
      control: "public, max-age=60, s-maxage=600, must-revalidate"),
    Case(
      hops: [["Cache-Control: must-revalidate"]], target: year, isKept: true,
      control: "public, max-age=31536000, must-revalidate"),
    Case(hops: [year], target: ["Cache-Control: no-store"], isKept: false, control: "no-store"),
  ]

  @Test func `the freshness of a redirect limits that of its target`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 16, height: 16)
    for (number, item) in Self.cases.enumerated() {
      let hops = (0..<item.hops.count).map { "/\(number)/hop\($0)" }
      for (hop, next) in zip(hops.indices, hops.dropFirst() + ["/\(number)/target.jpg"]) {
        let fields = ["Location: \(origin.url(next))"] + item.hops[hop]
        origin.route(hops[hop], to: .status(302, headers: fields))
      }
      origin.route("/\(number)/target.jpg", to: .ok(image, headers: item.target))
      // When
      let first = try pictor.get(origin.target(hops[0]))
      let second = try pictor.get(origin.target(hops[0]))
      // Then
      #expect(first.status == 200 && second.status == 200)
      #expect(first["cache-control"] == item.control, "\(item)")
      #expect(origin.requests(to: hops[0]) == (item.isKept ? 1 : 2), "\(item)")
      #expect(first["cache-status"]?.contains("stored") == (item.control != "no-store"), "\(item)")
    }
  }

  @Test func `an error behind an unstorable redirect is requested again`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    for (path, fields) in [("/open", []), ("/strict", ["Cache-Control: no-store"])] {
      origin.route(
        path, to: .status(302, headers: ["Location: \(origin.url("/none"))"] + fields))
    }
    origin.route("/none", to: .status(404))
    // When
    let open = try (0..<2).map { _ in try pictor.get(origin.target("/open")) }
    let strict = try (0..<2).map { _ in try pictor.get(origin.target("/strict")) }
    // Then
    #expect((open + strict).allSatisfy { $0.status == 404 })
    #expect(open.allSatisfy { $0["cache-control"]?.hasPrefix("public, max-age=") == true })
    #expect(strict.allSatisfy { $0["cache-control"] == "no-store" })
    #expect(origin.requests(to: "/open") == 1 && origin.requests(to: "/strict") == 2)
  }

  @Test func `a 304 is limited by the redirects of its own request`() throws {
    // Given: a response that is stale at once, and a redirect whose headers change meanwhile
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 16, height: 16)
    let location = origin.url("/v1.jpg")
    origin.route("/latest") { request in
      let control = request.number == 1 ? "max-age=0" : "max-age=600"
      return .status(
        302, headers: ["Location: \(location)", "Cache-Control: \(control)"])
    }
    origin.route("/v1.jpg") { request in
      request.headers["if-none-match"] == nil
        ? .ok(image, headers: ["ETag: \"1\""] + Self.year) : .status(304, headers: Self.year)
    }
    // When
    let answers = try (0..<3).map { _ in try pictor.get(origin.target("/latest")) }
    // Then
    #expect(answers[0]["cache-control"] == "public, max-age=0")
    #expect(answers[1]["cache-control"] == "public, max-age=600")
    #expect(answers[1]["cache-status"]?.contains("fwd-status=304") == true)
    #expect(origin.requests(to: "/latest") == 2)
  }
}
