// PresetTests: tests of presets: expansion, precedence and presets-only servers.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct PresetTests {
  private func configuration(
    _ presets: [String: String], only: Bool = false
  ) -> ServerConfiguration {
    var configuration = ServerConfiguration()
    configuration.presets = presets
    configuration.presetsOnly = only
    return configuration
  }

  private func parse(
    _ query: String, with configuration: ServerConfiguration
  ) throws(ImageError) -> ImageRequest {
    try ImageParameter.parse(Array(query.utf8), rules: RequestRules(configuration))
  }

  private func error(_ query: String, with configuration: ServerConfiguration) -> ImageError? {
    do throws(ImageError) {
      _ = try parse(query, with: configuration)
      return nil
    } catch {
      return error
    }
  }

  private let presets = [
    "thumb": "w=300&h=200&fit=cover&position=left", "photo": "format=webp&quality=60",
  ]

  @Test func `a preset and its expansion have one key`() throws {
    let configuration = configuration(presets)
    var spelled = try parse(
      "url=https://h/a&w=300&h=200&fit=cover&position=left", with: configuration)
    #expect(spelled.options.isFreeForm, "the client chose the parameters")
    spelled.options.isFreeForm = false
    for query in ["preset=thumb&url=https://h/a", "url=https://h/a&preset=%74humb"] {
      let request = try parse(query, with: configuration)
      #expect(request == spelled)
    }
  }

  @Test func `a parameter beside a preset overrides it, including its alternatives`() throws {
    let configuration = configuration(presets)
    let request = try parse(
      "w=10&url=https://h/a&preset=thumb&position=0.1,0.2", with: configuration)
    let spelled = try parse(
      "url=https://h/a&w=10&h=200&fit=cover&position=0.1,0.2", with: configuration)
    #expect(request.key == spelled.key)
    #expect(
      try parse("url=https://h/a&preset=photo&format=auto", with: configuration).transform.format
        == nil)
  }

  @Test func `an unknown preset is refused by name with the allowed ones`() {
    let many = Dictionary(uniqueKeysWithValues: (1...300).map { ("p\($0)", "w=\($0)") })
    for (known, allowed) in [
      (presets, "one of photo, thumb"), ([:], "no presets are configured"),
      (many, "one of the 300 presets of the configuration"),
    ] {
      #expect(
        error("url=https://h/a&preset=huge", with: configuration(known))
          == .invalidParameter(name: "preset", value: "huge", allowed: allowed))
    }
    #expect(
      error("url=https://h/a&preset=thumb&preset=thumb", with: configuration(presets))
        == .invalidParameter(name: "preset", value: "thumb", allowed: "it may be given only once"))
  }

  @Test(arguments: [
    ("preset=b", ImageError.forbiddenParameter("preset")),
    ("url=https://h/a", .forbiddenParameter("url")), ("breadth=3", .unknownParameter("breadth")),
    (
      "enlarge=2",
      .invalidParameter(name: "enlarge", value: "2", allowed: "0 or 1")
    ),
  ])
  func `an invalid preset is reported before the server starts`(
    query: String, error: ImageError
  ) {
    let invalid = configuration(["a": "w=3", "b": query, "c": "w=0"]).invalidPresets
    #expect(invalid.map(\.name) == ["b", "c"] && invalid.first?.error == error)
    #expect(configuration(presets).invalidPresets.isEmpty)
  }

  @Test func `with presets only, every other image parameter is forbidden`() {
    let configuration = configuration(presets, only: true)
    for query in [
      "", "&refresh=1", "&cache=only&store=none&retry=1&priority=low&detach=1",
    ] {
      #expect(error("url=https://h/a&preset=thumb" + query, with: configuration) == nil)
    }
    for parameter in ["w=3", "scale=2", "format=png", "limitbytes=5", "progressive=1", "w=0"] {
      let name = String(parameter.prefix { $0 != "=" })
      #expect(
        error("url=https://h/a&preset=thumb&" + parameter, with: configuration)
          == .forbiddenParameter(name))
    }
    #expect(error("url=https://h/a", with: configuration) == .missingParameter("preset"))
  }

  @Test
  func `with presets only, operators may use all parameters and redirects may name the format`()
    async throws
  {
    let services = TestServices()
    try await withOperators(services, provider: .making()) {
      $0.presets = presets
      $0.presetsOnly = true
      $0.redirectsAuto = true
    } body: { client, headers in
      let refused = try client.get(imageTarget + "&w=3")
      #expect(refused.status == 403)
      #expect(refused.text.contains("\"code\":\"forbidden_parameter\""))
      #expect(refused.text.contains("\"parameter\":\"w\""))
      let answer = try client.get(imageTarget + "&preset=thumb")
      #expect(answer.status == 302)
      #expect(try client.get("/" + (answer["Location"] ?? "")).status == 200)
      _ = try client.get(
        "/admin/cache" + imageTarget.dropFirst("/image".count) + "&w=3", headers: headers)
      _ = try client.request(
        "POST", target: "/admin/prefetch?preset=thumb", headers: headers,
        body: Array((imageURL + "\n" + imageTarget + "&w=3").utf8))
    }
    #expect(services.looked.withLock { $0.first?.transform.width } == 3)
    let lines = services.lists.withLock { $0["1"] ?? [] }
    #expect(try lines.map { try $0.request.get().transform.width } == [300, 3])
    #expect(try lines.map { try $0.request.get().transform.height } == [200, 200])
  }
}
