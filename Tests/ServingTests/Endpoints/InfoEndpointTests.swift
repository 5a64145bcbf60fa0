// InfoEndpointTests: tests of /info and placeholders: parameters and response heads.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct InfoEndpointTests {
  private func parse(_ query: String, as kind: ImageQuery.Kind = .info) throws(ImageError)
    -> ImageRequest
  {
    try ImageParameter.parse(
      Array(query.utf8), rules: RequestRules(ServerConfiguration()), kind: kind)
  }

  private func error(_ query: String, as kind: ImageQuery.Kind = .info) -> ImageError? {
    do throws(ImageError) {
      _ = try parse(query, as: kind)
      return nil
    } catch {
      return error
    }
  }

  @Test func `a description has its own key, and each placeholder another`() throws {
    #expect(try parse("url=https://h/a.png").transform.product == .info(nil))
    #expect(try parse("url=https://h/a.png&placeholder=color").transform.product == .info(.color))
    var requests = [
      try parse("url=https://h/a.png"), try parse("url=https://h/a.png", as: .image),
      try parse("url=https://h/a.png&format=placeholder&placeholder=color", as: .image),
    ]
    for kind in PlaceholderKind.allCases {
      requests.append(try parse("url=https://h/a.png&placeholder=\(kind)"))
    }
    let keys = Set(requests.map(\.key))
    #expect(keys.count == 7)
    #expect(Set(keys.map(\.source)).count == 1)
  }

  @Test func `a description accepts load options and refuses image parameters`() throws {
    let request = try parse("url=https://h/a&refresh=1&store=disk&retry=1&priority=low&detach=1")
    #expect(request.options.cache == .refresh)
    #expect((request.options.store, request.options.priority) == (.disk, .low))
    #expect(request.options.retriesFailed && request.options.isDetached)
    for name in ["w", "scale", "format", "crop", "quality", "frame", "progressive", "background"] {
      #expect(error("url=https://h/a&\(name)=1") == .unknownParameter(name))
    }
    #expect(error("placeholder=color") == .missingParameter("url"))
    guard
      case .invalidParameter("placeholder", "blur", _)? = error("url=https://h/a&placeholder=blur")
    else {
      Issue.record("an unknown placeholder was not refused")
      return
    }
  }

  @Test func `a placeholder image is requested with format=placeholder`() throws {
    let tiny = try parse("url=https://h/a&w=30&format=placeholder", as: .image).transform
    #expect((tiny.product, tiny.format, tiny.width) == (.placeholder(.lqip), nil, 30))
    for kind in PlaceholderKind.allCases {
      let query = "url=https://h/a&placeholder=\(kind)&format=placeholder"
      #expect(try parse(query, as: .image).transform.product == .placeholder(kind))
    }
    for rest in ["placeholder=color", "placeholder=color&format=png"] {
      guard
        case .invalidParameter("placeholder", "color", _)? = error(
          "url=https://h/a&" + rest, as: .image)
      else {
        Issue.record("\(rest) was not refused")
        continue
      }
    }
  }

  @Test func `a description is served as JSON, from memory and without a file name`() async throws {
    // given
    let provider = TestProvider()
    var info = makeInfo(receivedAgo: 3)
    info.content = .sourceDescription
    let target = "/info?url=https%3A%2F%2Fexample.org%2Fa%2Fphoto.png"
    let body = Array("{}\n".utf8)
    provider.keep(makeVariant(try parse("url=" + imageURL).key, body: body, info: info))
    try await withServer(provider) { server in
      // when
      let client = try HTTPClient(port: server.port)
      let answer = try client.get(target)
      // then
      #expect(answer.status == 200 && answer.body == body)
      #expect(answer["Content-Type"] == "application/json")
      #expect(answer["ETag"] == "\"0123abcd\"")
      #expect(answer["Cache-Control"] == "public, max-age=3600")
      #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
      #expect(answer["X-Content-Type-Options"] == "nosniff")
      #expect(answer["Content-DPR"] == nil && answer["Content-Disposition"] == nil)
      #expect(try client.head(target)["Content-Length"] == "3")
      let known = try client.get(target, headers: ["If-None-Match": "\"0123abcd\""])
      #expect(known.status == 304)
      let posted = try client.request("POST", target: target)
      #expect(posted.status == 405 && posted["Allow"] == "GET, HEAD, OPTIONS")
      #expect(provider.asked.value == 0)
    }
  }

  @Test func `a description fails with the same errors as an image`() async throws {
    let provider = TestProvider { _ throws(ImageError) in
      throw .unsupportedFormat(detail: "text")
    }
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      #expect(try client.get("/info").status == 400)
      let answer = try client.get("/info?url=https%3A%2F%2Fexample.org%2Fa")
      #expect(answer.status == 415)
      #expect(server.figures.byOrigin["error"] == 2)
    }
  }
}
