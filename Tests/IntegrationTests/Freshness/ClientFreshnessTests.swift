// Lifetimes of browsers and shared caches, and failures remembered as long as origins permit.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class ClientFreshnessTests: OriginSuite {
  private static let lifetimes = [
    // A lifetime that the origin states for browsers is passed on.
    ("Cache-Control: max-age=60", "public, max-age=60"),
    ("Cache-Control: max-age=0, s-maxage=600", "public, max-age=0, s-maxage=600, must-revalidate"),
    (
      "Cache-Control: max-age=600, s-maxage=60",
      "public, max-age=600, s-maxage=60, must-revalidate"
    ),
    ("Cache-Control: max-age=9999999999", "public, max-age=31536000"),
    ("Cache-Control: no-cache, s-maxage=600", "public, max-age=0, must-revalidate"),
    // Without a lifetime: an hour from the response, because a purge does not reach browsers.
    ("X-Nothing: 1", "public, max-age=3600, s-maxage=604800"),
    ("Cache-Control: s-maxage=600", "public, max-age=600, must-revalidate"),
    (
      "Cache-Control: s-maxage=7200", "public, max-age=3600, s-maxage=7200, must-revalidate"
    ),
    ("Last-Modified: Thu, 01 Dec 1994 16:00:00 GMT", "public, max-age=3600, s-maxage=604800"),
  ]

  @Test func `browsers receive max-age and shared caches receive s-maxage`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    for (number, (field, control)) in Self.lifetimes.enumerated() {
      origin.serve(
        "/\(number)", bytes: try TestImages.jpeg(width: 16, height: 16), headers: [field])
      // When
      let answer = try pictor.get(origin.target("/\(number)"))
      // Then
      let age = try #require(answer["age"].flatMap { Int($0) })
      // A default counts from the response, so it includes the age.
      let aged = control.replacing("max-age=3600,", with: "max-age=\(3_600 + age),")
      #expect(answer["cache-control"] == aged, "\(field)")
    }
  }

  @Test
  func `a default client lifetime counts from the response, in memory and on disk`()
    throws
  {
    // Given: a response with an age of two hours
    let options = ["--freshness.client_default", "10m"]
    origin.serve(
      "/a.jpg", bytes: try TestImages.jpeg(width: 16, height: 16), headers: ["Age: 7200"])
    var answers: [HTTPAnswer] = []
    do {
      let pictor = try PictorProcess(in: folder, options)
      for _ in 0..<2 { answers.append(try pictor.get(origin.target("/a.jpg"))) }
      #expect(try pictor.end() == 0)
    }
    let pictor = try PictorProcess(in: folder, options)
    for _ in 0..<2 { answers.append(try pictor.get(origin.target("/a.jpg"))) }
    // Then
    #expect(origin.requests(to: "/a.jpg") == 1)
    for answer in answers {
      let age = try #require(answer["age"].flatMap { Int($0) })
      #expect(age >= 7_200)
      #expect(answer["cache-control"] == "public, max-age=\(age + 600), s-maxage=604800")
    }
    #expect(answers.last?["cache-status"] == "pictor; hit; detail=memory")
  }

  @Test func `a host rule limits the client lifetime`() throws {
    // Given
    let pictor = try PictorProcess(
      in: folder, ["--hosts", "[{ host: '127.0.0.1', client_default: '0s' }]"])
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 16, height: 16))
    // When
    let answer = try pictor.get(origin.target("/a.jpg"))
    // Then
    let age = try #require(answer["age"])
    #expect(answer["cache-control"] == "public, max-age=\(age), s-maxage=604800")
  }

  // MARK: Failures

  @Test(arguments: [404, 410])
  func `a missing image is remembered no longer than its origin permits`(status: Int) throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    let said: [(field: String, seconds: [Int])] = [
      ("X-Nothing: 1", status == 404 ? [600] : [3_600, 86_400]), ("Cache-Control: no-store", []),
      ("Cache-Control: private", []), ("Cache-Control: no-cache", []),
      ("Cache-Control: max-age=0", []), ("Expires: 0", []), ("Cache-Control: max-age=300", [300]),
      ("Cache-Control: max-age=0, s-maxage=300", [0, 300]),
      // `failures.ttl` is the upper bound. Without a stated lifetime, browsers have an hour.
      ("Cache-Control: max-age=31536000", [status == 404 ? 600 : 86_400]),
    ]
    for (number, (field, seconds)) in said.enumerated() {
      origin.route("/\(number)", to: .status(status, headers: [field]))
      // When
      let first = try pictor.get(origin.target("/\(number)"))
      let second = try pictor.get(origin.target("/\(number)"))
      // Then
      #expect(first.status == 404 && second.status == 404)
      #expect(origin.requests(to: "/\(number)") == (seconds.isEmpty ? 2 : 1), "\(field)")
      let control = try #require(first["cache-control"])
      guard !seconds.isEmpty else {
        #expect(control == "no-store", "\(field)")
        continue
      }
      #expect(control.hasPrefix("public, max-age="), "\(field)")
      #expect(control.contains("s-maxage") == (seconds.count > 1), "\(field)")
      let told = control.split(separator: "=").dropFirst().compactMap { part in
        Int(part.prefix { $0.isNumber })
      }
      // The remaining time, a moment later.
      #expect(told.count == seconds.count, "\(field)")
      for (told, seconds) in zip(told, seconds) { #expect(told <= seconds && told > seconds - 20) }
    }
  }

  @Test
  func
    `an undecodable, unsupported or too large source is remembered no longer than its origin permits`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder, ["--download.maximum_bytes", "20KiB"])
    let image = try TestImages.jpeg(width: 60, height: 40)
    let bodies: [(String, [UInt8], Int)] = [
      ("half", Array(image.prefix(image.count / 2)), 422), ("text", Array("1 2\n3 4\n".utf8), 415),
      ("large", [UInt8](repeating: 0xff, count: 30_000), 413),
    ]
    for (name, body, status) in bodies {
      for (control, isRemembered) in [
        ("no-store", false), ("private", false), ("no-cache", false), ("max-age=0", false),
        ("max-age=30", true),
      ] {
        let path = "/\(name)-\(control)"
        origin.serve(path, bytes: body, headers: ["Cache-Control: \(control)"])
        // When
        let answers = try (0..<2).map { _ in try pictor.get(origin.target(path)) }
        // Then
        for answer in answers {
          #expect(answer.status == status, "\(path)")
          let told = answer["cache-control"] ?? ""
          #expect(isRemembered ? told.hasPrefix("public, max-age=") : told == "no-store", "\(path)")
        }
        let isListed = answers[1]["cache-status"] == "pictor; hit; detail=failed-url"
        #expect(isListed == isRemembered, "\(path)")
      }
    }
  }
}
