// SizeStepsTests: tests of sizes that round up to steps, and of who chose the parameters.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct SizeStepsTests {
  private let configuration: ServerConfiguration

  init() {
    var configuration = ServerConfiguration()
    configuration.sizeSteps = [160, 320, 640]
    configuration.presets = ["thumb": "w=300&h=200&fit=cover"]
    configuration.signing = SigningPolicy(mode: .options, keys: [testKey])
    self.configuration = configuration
  }

  private func parse(
    _ query: String, rules change: (RequestRules) -> RequestRules = { $0 }
  ) throws(ImageError) -> ImageRequest {
    try ImageParameter.parse(
      Array(("url=https://h/a&" + query).utf8), rules: change(RequestRules(configuration)))
  }

  private func side(_ parameters: String) throws -> [Int?] {
    let sizing = try parse(parameters).transform.sizing
    return [sizing.width, sizing.height]
  }

  @Test func `w or h alone rounds up to the next step, and beyond the last one down to it`() throws
  {
    #expect(try side("w=1") == [160, nil])
    #expect(try side("w=160") == [160, nil])
    #expect(try side("w=161") == [320, nil])
    #expect(try side("h=640") == [nil, 640])
    #expect(try side("h=641") == [nil, 640])
    #expect(try side("width=65535") == [640, nil])
    #expect(try side("%77=200") == [320, nil])
    #expect(try side("scale=2") == [nil, nil])
  }

  @Test func `with both the longer side takes the step, and the shape of the box stays`() throws {
    #expect(try side("w=300&h=200") == [320, 213])
    #expect(try side("w=200&h=300") == [213, 320])
    #expect(try side("w=640&h=1") == [640, 1])
    #expect(try side("w=1&h=65535") == [1, 640])
    #expect(try side("w=3000&h=2000&fit=cover") == [640, 427])
  }

  @Test func `rounded sizes have one key, that of the step, and rounding again changes nothing`()
    throws
  {
    let key = try parse("w=320").key
    for width in 161...320 { #expect(try parse("w=\(width)").key == key) }
    for (width, height) in [(1, 1), (7, 640), (199, 300), (301, 299), (65_535, 3)] {
      let once = try side("w=\(width)&h=\(height)").map { $0 ?? 0 }
      #expect(try side("w=\(once[0])&h=\(once[1])") == once)
    }
  }

  @Test func `scale, and so the density, is not rounded`() throws {
    let sizing = try parse("w=200&dpr=1.5").transform.sizing
    #expect(sizing.width == 320 && sizing.scale == 1.5)
  }

  @Test func `presets and signed requests have exact sizes, and operators those of clients`() throws
  {
    #expect(try side("preset=thumb") == [300, 200])
    #expect(try side("preset=thumb&w=100") == [160, 200])
    #expect(try parse("w=301", rules: \.forSigned).transform.width == 301)
    #expect(try parse("w=301", rules: \.forOperators).transform.width == 320)
    let target = "/image?url=https://h/a&w=301&quality=50"
    func width(_ target: String) throws -> Int? {
      let raw = Array(target.utf8)
      let parsed = RequestTarget(raw: raw, rules: RequestRules(configuration))
      return try #require(parsed.request).get().transform.width
    }
    #expect(try width(signed(target)) == 301)
    #expect(try width("/image?url=https://h/a&w=301") == 320)
  }

  @Test func `wrong sizes are refused as without steps`() {
    for query in ["w=0", "w=65536", "w=a", "w=", "w=300&h=x", "w=300&w=300"] {
      #expect(throws: ImageError.self, "\(query)") { try parse(query) }
    }
  }

  @Test func `a client's own parameters are free-form, and presets and vouched ones are not`()
    throws
  {
    func isFree(_ query: String, rules: (RequestRules) -> RequestRules = { $0 }) throws -> Bool {
      try parse(query, rules: rules).options.isFreeForm
    }
    for query in ["", "w=3", "format=webp", "w=3&h=4&fit=cover", "preset=thumb&w=9"] {
      #expect(try isFree(query), "\(query)")
      #expect(try !isFree(query, rules: \.forSigned))
      #expect(try !isFree(query, rules: \.forOperators))
    }
    for query in ["preset=thumb", "preset=thumb&format=webp", "preset=thumb&priority=low"] {
      #expect(try !isFree(query), "\(query)")
    }
  }
}
