// WatermarkParameterTests: tests of the watermark parameters.

import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct WatermarkParameterTests {
  private func parse(
    _ parameters: String, change: (inout ServerConfiguration) -> Void = { _ in }
  ) throws(ImageError) -> Transform {
    var configuration = ServerConfiguration()
    configuration.watermarks = ["logo": try SourceURL(parsing: "http://marks/logo.png?v=1")]
    configuration.allowsLocalWatermarks = true
    change(&configuration)
    return try ImageParameter.parse(
      Array("url=https://h/a.png&\(parameters)".utf8), rules: RequestRules(configuration)
    ).transform
  }

  private func refused(
    _ parameters: String, change: (inout ServerConfiguration) -> Void = { _ in }
  ) -> ImageError? {
    do throws(ImageError) {
      _ = try parse(parameters, change: change)
      return nil
    } catch {
      return error
    }
  }

  @Test func `a configured name or a local file can be a watermark`() throws {
    #expect(try parse("watermark=logo").watermark?.source.text == "http://marks/logo.png?v=1")
    #expect(
      try parse("watermark=local:///a%2520b.png").watermark?.source.text == "local:///a%20b.png")
    #expect(try parse("w=3").watermark == nil)
  }

  @Test(arguments: [
    "logos", "", "Logo", "http://marks/logo.png?v=1", "https://h/a.png", "local://host/a.png",
    "local:///", "file:///etc/passwd",
  ])
  func `any other watermark is refused`(value: String) {
    let error = refused("watermark=\(value)")
    #expect(error?.code == "invalid_parameter" && error?.parameter == "watermark")
  }

  @Test func `without a local root local watermarks are refused`() {
    #expect(refused("watermark=local:///a.png") { $0.allowsLocalWatermarks = false } != nil)
  }

  @Test func `watermark placement parameters are accepted in any order`() throws {
    let placement = try parse(
      "watermark_scale=0.25&watermark_repeat=1&watermark=logo&watermark_opacity=0.5"
        + "&watermark_position=left-top"
    ).watermark?.placement
    var wanted = WatermarkPlacement()
    wanted.position = .leftTop
    wanted.scale = 0.25
    wanted.opacity = 0.5
    wanted.repeats = true
    #expect(placement == wanted)
    #expect(try parse("watermark=logo").watermark?.placement == WatermarkPlacement())
    #expect(
      try parse("watermark=logo&watermark_opacity=1").canonicalText
        == parse("watermark=logo").canonicalText)
  }

  @Test(arguments: WatermarkPlacement.positions)
  func `each of the nine positions is accepted`(position: Position) throws {
    #expect(
      try parse("watermark=logo&watermark_position=\(position.rawValue)").watermark?.placement
        .position == position)
  }

  @Test(arguments: [
    ("watermark_position", "entropy"), ("watermark_position", "0.5,0.5"),
    ("watermark_scale", "0"), ("watermark_scale", "1.01"), ("watermark_scale", "-1"),
    ("watermark_opacity", "0"), ("watermark_opacity", "2"), ("watermark_opacity", ""),
    ("watermark_repeat", "2"),
  ])
  func `a watermark parameter out of range is refused by name`(name: String, value: String) {
    let error = refused("watermark=logo&\(name)=\(value)")
    #expect(error?.code == "invalid_parameter" && error?.parameter == name)
  }

  @Test(arguments: ["position=top", "scale=1", "opacity=1", "repeat=0"])
  func `a placement parameter without a watermark is refused`(parameter: String) {
    #expect(refused("watermark_\(parameter)") == .missingParameter("watermark"))
  }

  @Test func `the key contains the watermark's filtered URL`() throws {
    let rule = CacheKeyFilter(rules: [
      HostRule(
        host: try #require(HostPattern("marks")),
        parameters: .drop([try #require(ParameterPattern("v"))]))
    ])
    let text = try parse("watermark=logo") { $0.keyFilter = rule }.canonicalText
    #expect(text.hasSuffix("watermark_url=http://marks/logo.png"))
  }
}
