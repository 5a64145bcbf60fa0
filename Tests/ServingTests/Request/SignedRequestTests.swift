// SignedRequestTests: signed URLs over a socket: expiry, caches, operators, redirects, log.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct SignedRequestTests {
  private let provider = TestProvider.making([1])

  /// Runs a server that needs signatures.
  private func withSigning(
    _ mode: SigningMode = .required, keys: [SigningKey] = [testKey],
    configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (HTTPClient) throws -> Void
  ) async throws {
    try await withServer(provider) {
      $0.signing = SigningPolicy(mode: mode, keys: keys)
      $0.workers = 1
      configure(&$0)
    } body: {
      try body(try HTTPClient(port: $0.port))
    }
  }

  private func code(_ answer: HTTPAnswer) -> String? {
    answer.status < 400
      ? nil
      : answer.text.split(separator: "\"code\":\"").last?.split(separator: "\"").first.map(
        String.init)
  }

  @Test func `a hit needs a signature as a miss does, and GET and HEAD share it`() async throws {
    provider.keep(makeVariant(try makeRequest().key))
    try await withSigning { client throws in
      for _ in 0..<3 {
        #expect(try client.get(signed(imageTarget)).body.count == 18_000)
        #expect(try client.head(signed(imageTarget)).status == 200)
        #expect(try code(client.get(imageTarget)) == "invalid_signature")
        #expect(try code(client.get(signed(imageTarget, by: foreignKey))) == "invalid_signature")
      }
      #expect(try client.get(signed(imageTarget + "&w=3")).body == [1])
    }
  }

  @Test(arguments: [true, false])
  func `a URL that worked is refused from its expiry on`(isHit: Bool) async throws {
    // Given
    if isHit { provider.keep(makeVariant(try makeRequest().key)) }
    try await withSigning { client throws in
      // When it is asked for until it is refused. The first answer may be late, so the time grows.
      var answered = 0
      var last = try client.get(signed(imageTarget))
      for seconds in [2, 4, 8, 16, 32] where answered == 0 {
        let expiry = UnixTime.now.seconds + seconds
        let target = signed(imageTarget + "&exp=\(expiry)")
        repeat {
          let asked = UnixTime.now.seconds
          last = try client.get(target)
          // Then it works before its expiry only
          if last.status == 200 {
            #expect(asked < expiry)
          } else {
            #expect(UnixTime.now.seconds >= expiry)
          }
          answered += last.status == 200 ? 1 : 0
        } while last.status == 200
      }
      #expect(answered > 0)
      #expect(last.status == 403 && code(last) == "expired_signature")
      #expect(last.text.contains("\"parameter\":\"exp\"") && last["Cache-Control"] == "no-store")
      // And others still work.
      #expect(try client.get(signed(imageTarget)).status == 200)
    }
  }

  @Test func `no cache is told to keep a response beyond its expiry`() async throws {
    let lifetime = 50_000
    let key = try makeRequest().key
    let now = UnixTime.now.seconds
    let bodies: [(Freshness, stored: String)] = [
      (
        Freshness(receivedAt: UnixTime(seconds: now - 100), lifetime: lifetime),
        "public, max-age=50000"
      ),
      (
        Freshness(
          receivedAt: UnixTime(seconds: now - 100), lifetime: lifetime, isStated: false,
          clientTime: 3_600), "s-maxage=50000"
      ),
      (
        Freshness(
          receivedAt: UnixTime(seconds: now), initialAge: 7, lifetime: lifetime,
          isImmutable: true), "public, max-age=50000, immutable"
      ),
    ]
    for (freshness, unbounded) in bodies {
      let variant = makeVariant(
        key,
        info: VariantInfo(
          makeInfo().content, etag: "\"a\"", lastModified: nil, freshness: freshness))
      provider.keep(variant)
      provider.atHand.withLock {
        $0[key.self] = makeDelivery(variant)
      }
      try await withSigning { client throws in
        for (rest, isBeyond) in [(40, false), (41, false), (4_000, false), (900_000, true)] {
          let expiry = UnixTime.now.seconds + rest
          let target = signed(imageTarget + "&exp=\(expiry)")
          // Twice from memory, and once not: `no-transform` takes the path of a miss.
          for headers: KeyValuePairs in [[:], [:], ["Cache-Control": "no-transform"]] {
            let before = UnixTime.now.seconds
            let answer = try client.get(target, headers: headers)
            let after = UnixTime.now.seconds
            let control = try #require(answer["Cache-Control"])
            let age = try #require(answer["Age"].flatMap(Int.init))
            #expect(control.contains(", must-revalidate"), "\(control)")
            let ages = control.split(separator: ", ").filter {
              $0.contains("max-age=") || $0.contains("s-maxage=")
            }
            .compactMap { Int($0.drop { $0 != "=" }.dropFirst()) }
            #expect(!ages.isEmpty)
            for maximum in ages {
              #expect(before + maximum - age <= expiry, "\(control)")
              #expect(maximum <= lifetime)
              // No shorter than needed: a client gets what is left, or its own default.
              let left = expiry - after
              #expect(isBeyond || maximum - age >= min(left, 3_600), "\(control), age \(age)")
            }
          }
          // A URL without expiry has its own response, also right after the other.
          let control = try client.get(signed(imageTarget))["Cache-Control"]
          #expect(control?.contains(unbounded) == true, "\(String(describing: control))")
          #expect(control?.contains("must-revalidate") == false)
        }
      }
    }
  }

  @Test func `a remembered failure is not kept beyond the expiry of its URL`() async throws {
    let provider = TestProvider { _ throws(ImageError) in
      throw .remembered(.sourceNotFound(status: 404), seconds: 600, isRepeated: false)
    }
    try await withClient(
      provider, configure: { $0.signing = SigningPolicy(mode: .required, keys: [testKey]) }
    ) { client in
      #expect(
        try client.get(signed(imageTarget))["Cache-Control"] == "public, max-age=600")
      let target = signed(imageTarget + "&exp=\(UnixTime.now.seconds + 60)")
      let control = try #require(try client.get(target)["Cache-Control"])
      let age = try #require(control.split(separator: "=").last.flatMap { Int($0) })
      #expect((1...60).contains(age), "\(control)")
    }
  }

  @Test func `an operator's token stands for a signature`() async throws {
    provider.keep(makeVariant(try makeRequest().key))
    for mode in [SigningMode.options, .required] {
      try await withSigning(mode, configure: { $0.operatorTokens = [operatorToken] }) {
        client throws in
        let blurred = imageTarget + "&blur=2&refresh=1"
        let expired = signed(imageTarget + "&w=5&exp=1700000000")
        for target in [imageTarget, blurred, expired, imageTarget + "&exp=1700000000"] {
          let answer = try client.get(target, headers: operatorHeader)
          #expect(answer.status == 200, "\(mode) \(target)")
          // A hit without a signature is for everyone.
          guard target != imageTarget || mode == .required else { continue }
          // No cache in front may send it to others, and nothing of it is remembered for others.
          #expect(answer["Cache-Control"]?.hasPrefix("private, max-age=") == true)
          #expect(try client.get(target).status == 403, "\(mode) \(target)")
          let wrong: KeyValuePairs = ["Authorization": "Bearer " + operatorToken + "x"]
          #expect(try client.get(target, headers: wrong).status == 403)
        }
      }
    }
  }

  @Test func `the location of a redirect is signed with the first key and the same expiry`()
    async throws
  {
    let next = SigningKey(id: "next", secret: String(repeating: "n", count: 32))
    try await withSigning(keys: [next, testKey], configure: { $0.redirectsAuto = true }) {
      client throws in
      let expiry = UnixTime.now.seconds + 1_000
      let answer = try client.get(signed(imageTarget + "&w=3&exp=\(expiry)"))
      #expect(answer.status == 302)
      let location = try #require(answer["Location"])
      #expect(location.contains("&exp=\(expiry)&format=jpeg&sig=next."))
      #expect(location.split(separator: "sig=").count == 2)
      #expect(answer["Cache-Control"]?.contains("must-revalidate") == true)
      #expect(try client.get("/" + location).status == 200)
      #expect(try code(client.get("/" + location + "&w=4")) == "invalid_signature")
      #expect(
        try code(client.get("/" + location.replacing("w=3", with: "w=4"))) == "invalid_signature")
    }
  }

  @Test func `an error contains neither the given signature nor the right one`() async throws {
    try await withSigning { client throws in
      let right = signed(imageTarget).split(separator: "sig=main.").last.map(String.init) ?? ""
      let wrong = signed(imageTarget, by: foreignKey).split(separator: "sig=main.").last ?? ""
      for given in ["main.\(wrong)", "\(wrong)", "other.\(wrong)", "main.\(wrong)A"] {
        let answer = try client.get(imageTarget + "&sig=" + given)
        #expect(code(answer) == "invalid_signature")
        #expect(!answer.text.contains(wrong) && !answer.text.contains(right))
        #expect(answer.text.contains("\"parameter\":\"sig\""))
      }
    }
  }
}
