// FallbackTests: tests of fallback images and of redirects to sources, over a socket.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct FallbackTests {
  private static let fallbackURL = "https://example.org/fallback.svg"

  /// Fails for the image, and makes the fallback.
  private func provider(
    _ error: ImageError, fallback: ImageError? = nil
  ) -> TestProvider {
    TestProvider { request throws(ImageError) in
      guard request.source.text == Self.fallbackURL else { throw error }
      if let fallback { throw fallback }
      let format = request.transform.format ?? request.transform.accepted.first ?? .png
      return makeDelivery(
        makeVariant(
          request.key, body: Array(request.key.text.utf8), info: makeInfo(format)))
    }
  }

  private func withFallback<Result>(
    _ provider: TestProvider, log: Log = Log(level: .error),
    configure: @escaping (inout ServerConfiguration) -> Void = { _ in },
    body: (Server, HTTPClient) throws -> Result
  ) async throws -> Result {
    let url = try SourceURL(parsing: Self.fallbackURL)
    return try await withServer(provider, log: log) {
      $0.fallbacks = ["gone": url]
      configure(&$0)
    } body: {
      try body($0, HTTPClient(port: $0.port))
    }
  }

  private static let failures: [ImageError] = [
    .forbiddenSource(reason: "", detail: ""), .sourceNotFound(status: 404),
    .sourceNotFound(status: 410), .sourceTooLarge(limit: 9), .unsupportedFormat(detail: ""),
    .undecodable(detail: ""), .tooManyPixels(pixels: 9, limit: 1),
    .tooManyFrames(frames: 9, limit: 1), .tooCostly(reason: ""), .sourceUnreachable(detail: ""),
    .sourceError(status: 500), .sourceIncomplete(detail: ""), .sourceTLS(detail: ""),
    .tooManyRedirects(limit: 5), .sourceTimeout(detail: ""), .deadlineExceeded, .imagingTimeout,
    .watermark(.sourceNotFound(status: 404)), .ofVariant(.imagingTimeout),
  ]

  @Test(arguments: failures)
  func `a failure of the image gets the fallback with its status and code`(error: ImageError)
    async throws
  {
    try await withFallback(provider(error)) { server, client in
      let answer = try client.get(
        imageTarget + "&fallback=gone&w=30&format=webp", headers: ["If-None-Match": "*"])
      #expect(answer.status == error.status)
      #expect(answer.text == Self.fallbackURL + " w=30&format=webp")
      #expect(answer["Content-Type"] == "image/webp" && answer["X-Fallback"] == "gone")
      #expect(answer["X-Error-Code"] == error.code && answer["X-Request-ID"] != nil)
      #expect(answer["Cache-Control"] == "no-store")
      #expect(answer["ETag"] == nil && answer["Last-Modified"] == nil)
      #expect(answer["Content-Disposition"] == "inline; filename=\"gone.webp\"")
      #expect(answer["Access-Control-Expose-Headers"]?.contains("X-Fallback") == true)
      #expect(server.figures.errors == [error.code: 1])
      #expect(server.figures.fallbacks == ["image": 1])
      #expect(server.figures.byOrigin["error"] == 1)
    }
  }

  @Test(
    arguments: [
      .invalidParameter(name: "crop", value: "", allowed: ""), .superseded, .internal(detail: ""),
      .overloaded(queue: "imaging", retryAfter: 1), .outOfMemory(detail: ""), .draining, .revoked,
      .notCached, .rateLimited(by: .requests, retryAfter: 1),
    ] as [ImageError])
  func `other failures stay JSON`(error: ImageError) async throws {
    try await withFallback(provider(error)) { server, client in
      let answer = try client.get(imageTarget + "&fallback=gone")
      #expect(answer.status == error.status && answer["X-Fallback"] == nil)
      #expect(answer["Content-Type"] == "application/json")
      #expect(server.figures.fallbacks == [:])
    }
  }

  @Test func `a remembered failure is cacheable for its rest, at most a minute`() async throws {
    for (seconds, rest) in [(9, 9), (3_600, 60)] {
      let error = ImageError.remembered(
        .undecodable(detail: ""), seconds: seconds, isRepeated: true)
      try await withFallback(provider(error)) { _, client in
        let answer = try client.get(imageTarget + "&fallback=gone")
        #expect(answer.status == 422)
        #expect(answer["Cache-Control"] == "public, max-age=\(rest)")
        #expect(answer["Vary"] == "Accept")
        #expect(answer["Cache-Status"] == "pictor; hit; detail=failed-url")
      }
    }
  }

  @Test func `the default applies to requests that name none, and none opts out`() async throws {
    let provider = provider(.sourceNotFound(status: 404))
    try await withFallback(provider) {
      $0.fallback = "gone"
      $0.fallbackStatus = .ok
      $0.presets = ["bare": "fallback=none"]
    } body: { server, client in
      let answer = try client.get(imageTarget)
      #expect(answer.status == 200 && answer["X-Fallback"] == "gone")
      #expect(answer["X-Error-Code"] == "source_not_found")
      let head = try client.head(imageTarget)
      #expect(head.status == 200 && head["X-Fallback"] == "gone" && head.body.isEmpty)
      for query in ["&fallback=none", "&preset=bare"] {
        let plain = try client.get(imageTarget + query)
        #expect(plain.status == 404 && plain["Content-Type"] == "application/json")
      }
      let info = try client.get(imageTarget.replacing("/image", with: "/info"))
      #expect(info.status == 404 && info["Content-Type"] == "application/json")
      #expect(server.figures.errors["source_not_found"] == 5)
    }
  }

  @Test func `what selects a part of the image, and its watermark, do not touch the fallback`()
    async throws
  {
    let logo = try SourceURL(parsing: "https://example.org/logo.png")
    try await withFallback(
      provider(.sourceNotFound(status: 404)), configure: { $0.watermarks = ["logo": logo] }
    ) { _, client in
      let answer = try client.get(
        imageTarget + "&fallback=gone&crop=500,500,9,9&rotate=90&trim=3&position=0.1,0.2"
          + "&watermark=logo&w=30&h=20&fit=cover&radius=max",
        headers: ["Accept": "image/webp"])
      #expect(
        answer.text == Self.fallbackURL + " w=30&h=20&fit=cover&radius=max&auto=webp")
    }
  }

  @Test func `a fallback that cannot be had leaves the error of the image`() async throws {
    let provider = provider(
      .sourceError(status: 500), fallback: .sourceNotFound(status: 404))
    try await withFallback(provider) { server, client in
      let answer = try client.get(imageTarget + "&fallback=gone")
      #expect(answer.status == 502 && answer.text.contains("source_error"))
      #expect(answer["X-Fallback"] == nil)
      #expect(server.figures.fallbacks == ["unavailable": 1])
      #expect(server.figures.errors == ["source_error": 1])
    }
    #expect(provider.asked.value == 2)
  }

  @Test func `the JSON in place of a fallback is stored as short as the fallback`() async throws {
    let error = ImageError.remembered(
      .sourceNotFound(status: 404), seconds: 500, clientSeconds: 400, isRepeated: true)
    try await withFallback(provider(error, fallback: .sourceTimeout(detail: ""))) { _, client in
      let failed = try client.get(imageTarget + "&fallback=gone")
      #expect(failed["Content-Type"] == "application/json")
      #expect(failed["Cache-Control"] == "public, max-age=60")
      let plain = try client.get(imageTarget + "&fallback=none")
      #expect(plain["Cache-Control"] == "public, max-age=400, s-maxage=500")
    }
  }

  @Test func `a request that meets its deadline gets a fallback that is at hand`() async throws {
    let provider = TestProvider { _ throws(ImageError) in
      try? await Task.sleep(for: .seconds(60))
      throw .cancelled
    }
    let key = ImageRequest(
      source: try SourceURL(parsing: Self.fallbackURL), transform: Transform())
    provider.keep(makeVariant(key.key))
    try await withFallback(provider) {
      $0.requestTimeout = .milliseconds(100)
    } body: { _, client in
      let answer = try client.get(imageTarget + "&fallback=gone")
      #expect(answer.status == 504 && answer["X-Fallback"] == "gone")
      #expect(answer["X-Error-Code"] == "deadline_exceeded")
      #expect(answer.body.count == 18_000)
      let json = try client.get(imageTarget + "&fallback=gone&w=3")
      #expect(json.status == 504 && json["Content-Type"] == "application/json")
    }
  }

  @Test func `a fallback that takes too long leaves the error, and its work is cancelled`()
    async throws
  {
    let isCancelled = Counter()
    let provider = TestProvider { _ throws(ImageError) in
      do {
        try await Task.sleep(for: .seconds(60))
      } catch {
        isCancelled.add()
      }
      throw .cancelled
    }
    var request = try makeRequest()
    let source = try SourceURL(parsing: Self.fallbackURL)
    request.options.onFailure = .fallback(
      FallbackImage(name: "gone", source: source, keyURL: source))
    let fallback = try #require(FallbackRequest(for: request))
    #expect(await fallback.delivery(by: provider, within: .milliseconds(20)) == nil)
    #expect(isCancelled.value == 1)
  }

  @Test func `a fallback in a file on disk is streamed, and logged as the failure`() async throws {
    // Given
    let folder = try TemporaryFolder()
    let content = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    try folder.write("large", bytes: content)
    let path = folder.path + "/large"
    let provider = TestProvider { request throws(ImageError) in
      guard request.source.text == Self.fallbackURL else { throw .sourceError(status: 500) }
      let region = FileRegion(
        owning: open(path, O_RDONLY | O_CLOEXEC), offset: 0, count: content.count)
      return ImageDelivery(
        variant: Variant(key: request.key, info: makeInfo(), body: .file(region)),
        cacheStatus: .hit(.disk), timings: Timings())
    }
    let file = try LogFile()
    // When
    try await withFallback(provider, log: file.log()) {
      $0.fallback = "gone"
      $0.fallbackStatus = .ok
      $0.log.requests = .errors
    } body: { server, client in
      for method in ["GET", "HEAD"] {
        let answer = try client.request(method, target: imageTarget)
        #expect(answer.status == 200 && answer["X-Error-Code"] == "source_error")
        #expect(answer["Content-Length"] == "400000")
        #expect(answer.body == (method == "GET" ? content : []))
      }
      #expect(server.figures.fallbacks == ["image": 2])
    }
    // Then
    let lines = try file.lines().filter { $0.contains("\"message\":\"request\"") }
    #expect(lines.count == 2)
    for line in lines {
      #expect(line.contains("\"level\":\"warning\"") && line.contains("\"status\":200"), "\(line)")
      #expect(line.contains("\"error\":\"source_error\"") && line.contains("\"fallback\":\"gone\""))
    }
  }

  @Test func `a memory hit takes no notice of a fallback`() async throws {
    let provider = provider(.sourceNotFound(status: 404))
    provider.keep(makeVariant(try makeRequest().key))
    try await withFallback(provider) { _, client in
      let answer = try client.get(imageTarget + "&fallback=gone")
      #expect(answer.status == 200 && answer["Cache-Status"] == "pictor; hit; detail=memory")
      #expect(answer["X-Fallback"] == nil)
    }
    #expect(provider.asked.value == 0)
  }

  @Test func `onerror=redirect leads signed requests to the source`() async throws {
    try await withFallback(provider(.sourceError(status: 500))) {
      $0.signing = SigningPolicy(mode: .options, keys: [testKey])
      $0.fallback = "gone"
      $0.operatorTokens = ["secret"]
    } body: { server, client in
      let target = imageTarget + "&onerror=redirect"
      let answer = try client.get(signed(target))
      #expect(answer.status == 302 && answer["Location"] == imageURL && answer.body.isEmpty)
      #expect(answer["Cache-Control"] == "no-store")
      #expect(answer["X-Error-Code"] == "source_error")
      #expect(server.figures.fallbacks == ["redirect": 1])
      // Without a signature, only operators.
      #expect(try client.get(target).status == 403)
      #expect(
        try client.get(target, headers: ["Authorization": "Bearer secret"]).status == 302)
      // Both together
      let both = try client.get(signed(target + "&fallback=gone"))
      #expect(both.status == 400 && both.text.contains("onerror"))
      #expect(both.text.contains("not together with fallback"))
      #expect(try client.get(signed(target + "&fallback=none")).status == 302)
      for wrong in ["fallback=", "fallback=x", "onerror=", "onerror=https://a"] {
        #expect(try client.get(signed(imageTarget + "&" + wrong)).status == 400, "\(wrong)")
      }
    }
  }

  @Test func `operators may redirect on a server that restricts nothing else`() async throws {
    try await withFallback(
      provider(.sourceError(status: 500)), configure: { $0.operatorTokens = ["secret"] }
    ) { _, client in
      let target = imageTarget + "&onerror=redirect"
      #expect(try client.get(target).status == 403)
      #expect(try client.get(target, headers: ["Authorization": "Bearer wrong"]).status == 403)
      let answer = try client.get(target, headers: ["Authorization": "Bearer secret"])
      #expect(answer.status == 302 && answer["Location"] == imageURL)
      // The memo of the target does not make it an operator's.
      #expect(try client.get(target).status == 403)
    }
  }

  @Test func `no redirect leads to a forbidden source, a file, or without a signing key`()
    async throws
  {
    let policy = SigningPolicy(mode: .options, keys: [testKey])
    let target = imageTarget + "&onerror=redirect"
    try await withFallback(
      provider(.forbiddenSource(reason: "", detail: "")), configure: { $0.signing = policy }
    ) { _, client in
      let answer = try client.get(signed(target))
      #expect(answer.status == 403)
    }
    try await withFallback(
      provider(.sourceNotFound(status: 404)), configure: { $0.signing = policy }
    ) { _, client in
      let file = "/image?url=local%3A%2F%2F%2Fa.png&onerror=redirect"
      let answer = try client.get(signed(file))
      #expect(answer.status == 404)
    }
    try await withFallback(provider(.sourceNotFound(status: 404))) { _, client in
      let answer = try client.get(target)
      #expect(answer.text.contains("forbidden_parameter"))
    }
    var configuration = ServerConfiguration()
    configuration.presets = ["open": "onerror=redirect"]
    #expect(configuration.invalidPresets.map(\.name) == ["open"])
  }
}
