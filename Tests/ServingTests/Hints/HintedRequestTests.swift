// HintedRequestTests: tests of client hints over a socket: keys, Vary, redirects and Accept-CH.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct HintedRequestTests {
  /// Responds to each request with its key, so that different results have different bodies.
  private func echo() -> TestProvider {
    TestProvider { request throws(ImageError) in
      if request.source.text.hasSuffix("/gone.png") {
        throw .remembered(.sourceNotFound(status: 404), seconds: 9, isRepeated: true)
      }
      return makeDelivery(makeVariant(request.key, body: Array(request.key.text.utf8)))
    }
  }

  /// Sends a request with fields that are computed.
  private func send(
    _ target: String, _ fields: [String: String], method: String = "GET", on client: HTTPClient
  ) throws -> HTTPAnswer {
    let lines = fields.map { "\($0.key): \($0.value)\r\n" }.joined()
    try client.send("\(method) \(target) HTTP/1.1\r\nHost: t\r\n\(lines)\r\n")
    return try client.readAnswer(hasBody: method != "HEAD")
  }

  @Test func `hints become plain parameters of the key`() async throws {
    try await withClient(echo(), configure: { $0.imaging.saveDataReduction = 20 }) { client in
      let fields = ["Sec-CH-DPR": "2.0", "Sec-CH-Width": "600", "Save-Data": "on"]
      for method in ["GET", "HEAD"] {
        let answer = try send(
          imageTarget + "&w=auto&dpr=auto&format=webp", fields, method: method, on: client)
        #expect(
          answer["Vary"] == "Sec-CH-DPR, DPR, Sec-CH-Width, Width, Save-Data", "\(method)")
        if method == "GET" {
          #expect(
            answer.text == imageURL + " scale=2&w=320&format=webp&q_webp=59")
        }
      }
      let plain = try send(imageTarget + "&w=320&format=png", fields, on: client)
      #expect(plain.text == imageURL + " w=320&format=png" && plain["Vary"] == nil)
      let auto = try client.get(imageTarget + "&w=auto", headers: ["Accept": "image/webp"])
      #expect(auto["Vary"] == "Accept, Sec-CH-Width, Width, Save-Data")
      #expect(auto.text == imageURL + " auto=webp")
    }
  }

  @Test func `a URL with auto shares the variant of one with numbers, each with its Vary`()
    async throws
  {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().changing { $0.width = 320 }.key))
    try await withClient(provider) {
      $0.workers = 1
      $0.imaging.autoFormats = []
    } body: { client in
      for _ in 1...3 {
        for (query, vary) in [
          ("&w=320", nil), ("&w=auto", "Sec-CH-Width, Width"),
          ("&w=auto&dpr=auto", "Sec-CH-DPR, DPR, Sec-CH-Width, Width"),
        ] as [(String, String?)] {
          for (name, value, status) in [
            ("If-None-Match", "\"0123abcd\"", 304), ("If-None-Match", "\"x\"", 200),
          ] {
            let answer = try client.get(
              imageTarget + query, headers: [name: value, "Sec-CH-Width": "300"])
            #expect(answer.status == status && answer["Vary"] == vary, "\(query)")
            #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
          }
        }
      }
    }
    #expect(provider.asked.value == 0)
  }

  @Test func `more widths than a target keeps have the right keys`() async throws {
    try await withClient(echo()) {
      $0.workers = 1
      $0.sizeSteps = Array(1...100)
    } body: { client in
      for width in [1, 2, 3] + Array(1...60) + [1, 60, 5] {
        let answer = try client.get(
          imageTarget + "&w=auto", headers: ["Sec-CH-Width": "\(width)"])
        #expect(answer.text == imageURL + " w=\(width)")
      }
    }
  }

  @Test func `a signed URL with auto is valid for each client, in steps`() async throws {
    try await withClient(
      echo(), configure: { $0.signing = SigningPolicy(mode: .required, keys: [testKey]) }
    ) { client in
      for (width, step) in [("290", 320), ("310", 320), ("600", 640)] {
        let answer = try client.get(
          signed(imageTarget + "&w=auto&blur=2"), headers: ["Sec-CH-Width": width])
        #expect(answer.status == 200 && answer.text.contains("w=\(step)&blur=2"))
      }
    }
  }

  @Test(arguments: [false, true])
  func `a redirect leads to a URL with numbers, which has the same key`(isSigned: Bool)
    async throws
  {
    let provider = echo()
    try await withClient(provider) {
      $0.redirectsAuto = true
      $0.sizeSteps = [160, 320, 640]
      $0.imaging.saveDataReduction = 20
      $0.signing = SigningPolicy(mode: .options, keys: [testKey])
    } body: { client in
      let fields = ["Sec-CH-DPR": "2", "Sec-CH-Width": "300", "Save-Data": "on"]
      for (query, parameters) in [
        ("&w=auto&h=200&dpr=auto", "format=jpeg&h=\(isSigned ? 200 : 320)&scale=2&w=160"),
        ("&%77=auto&format=png", "format=png&w=320"),
        ("&dpr=auto&w=99", "w=99&format=jpeg&scale=2"),
      ] {
        let target = imageTarget + query
        let answer = try send(isSigned ? signed(target) : target, fields, on: client)
        let location = try #require(answer["Location"], "\(query)")
        #expect(answer.status == 302 && location.contains("&" + parameters), "\(location)")
        #expect(!location.contains("auto"))
        #expect(answer["Cache-Control"]?.hasPrefix("private") == true)
        #expect(answer["Vary"]?.contains("Sec-CH-") == true)
        // And then
        let image = try send("/" + location, fields, on: client)
        #expect(image.status == 200 && image["Vary"] == nil, "\(location)")
      }
      let without = try client.get(imageTarget + "&w=auto&format=png")
      #expect(without["Location"]?.hasSuffix("photo.png&format=png") == true)
    }
  }

  @Test func `Accept-CH is on each response if it is configured`() async throws {
    for asks in [false, true] {
      try await withClient(echo(), configure: { $0.asksForHints = asks }) { client in
        for (target, status) in [
          (imageTarget, 200), (imageTarget, 200), (imageTarget + "&w=0", 400), ("/stats", 200),
        ] {
          let answer = try client.get(target)
          #expect(answer.status == status)
          #expect(answer["Accept-CH"] == (asks ? "Sec-CH-DPR, Sec-CH-Width, Save-Data" : nil))
        }
      }
    }
  }

  /// Random fields, many of them equal, and some malformed.
  private static func fields(_ random: inout SeededGenerator) -> [String: String] {
    let values = [
      "Sec-CH-DPR": ["1", "2", "2.625", "x", ""], "DPR": ["1", "3", "-1"],
      "Sec-CH-Width": ["100", "400", "401", "1e3"], "Width": ["64", "2000", "0"],
      "Save-Data": ["on", "off", "ON"], "Accept": ["image/webp", "image/avif,image/webp", "*/*"],
      "Origin": ["https://a.example", "https://b.example", "https://c.example"],
    ]
    var fields: [String: String] = [:]
    for (name, choices) in values.sorted(by: { $0.key < $1.key }) where Bool.random(using: &random)
    {
      fields[name] = choices.randomElement(using: &random)
    }
    return fields
  }

  @Test(arguments: [UInt64](1...6))
  func `responses that differ name a field in Vary that differs`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let gone = try SourceURL(parsing: "https://example.org/none.png")
    try await withClient(echo()) {
      $0.imaging.saveDataReduction = seed % 2 == 0 ? 20 : 0
      $0.redirectsAuto = seed % 3 == 0
      $0.sizeSteps = seed > 3 ? [100, 300, 900] : []
      $0.corsOrigins = ["https://a.example", "https://b.example"]
      $0.presets = seed % 3 == 0 ? [:] : ["auto": "w=auto&dpr=auto"]
      $0.fallbacks = ["none-there": gone]
      $0.fallback = seed % 2 == 0 ? "none-there" : ""
    } body: { client in
      let parts = [
        "&w=auto", "&w=300", "&dpr=auto", "&scale=2", "&format=png", "&format=webp", "&h=77",
        "&quality=50",
      ]
      var differing = 0
      for _ in 0..<60 {
        var target = imageTarget
        if Int.random(in: 0..<4, using: &random) == 0 {
          target = target.replacing("photo.png", with: "gone.png")
        }
        for part in parts where Int.random(in: 0..<3, using: &random) == 0 {
          // A repeated parameter is refused.
          let name = part.prefix { $0 != "=" }
          if !target.contains(name + "="),
            !(name == "&dpr" || name == "&scale")
              || !target.contains("&dpr=") && !target.contains("&scale=")
          {
            target += part
          }
        }
        if seed % 3 != 0, Bool.random(using: &random) { target += "&preset=auto" }
        var seen: [(fields: [String: String], answer: HTTPAnswer)] = []
        for _ in 0..<6 {
          let fields = Self.fields(&random)
          seen.append((fields, try send(target, fields, on: client)))
        }
        for (index, one) in seen.enumerated() {
          for other in seen[..<index] {
            // An error's own id makes its text different; only remembered ones may be stored.
            guard one.answer["Cache-Control"] != "no-store" else { continue }
            func content(_ answer: HTTPAnswer) -> [String] {
              [
                answer.status == 404 && answer["X-Fallback"] == nil ? "" : answer.text,
                answer["Location"] ?? "", answer["Access-Control-Allow-Origin"] ?? "",
              ]
            }
            guard content(one.answer) != content(other.answer) else { continue }
            differing += 1
            let names = (one.answer["Vary"] ?? "").split(separator: ",").map {
              $0.filter { $0 != " " }
            }
            #expect(one.answer["Vary"] == other.answer["Vary"])
            #expect(
              names.contains { one.fields[$0] != other.fields[$0] },
              "\(target) \(one.fields) \(other.fields) \(names)")
          }
        }
      }
      #expect(differing > 50)
    }
  }
}
