// ImageParameterTests: tests of the parameters of /image and their errors.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ImageParameterTests {
  private func parse(_ query: String) throws(ImageError) -> ImageRequest {
    try ImageParameter.parse(Array(query.utf8), rules: RequestRules(ServerConfiguration()))
  }

  private func transform(_ parameter: String) throws -> Transform {
    try parse("url=https://h/a.png&" + parameter).transform
  }

  private func error(_ query: String) -> ImageError? {
    do throws(ImageError) {
      _ = try parse(query)
      return nil
    } catch {
      return error
    }
  }

  @Test func `ignored parameters change nothing, and no other name is ignored`() throws {
    var configuration = ServerConfiguration()
    configuration.ignoredParameters = ["v", "w"]
    let rules = RequestRules(configuration)
    let plain = try ImageParameter.parse(Array("url=https://h/a.png&w=9".utf8), rules: rules)
    for query in ["url=https://h/a.png&w=9&v=3&v=4", "v&url=https://h/a.png&%76=%zz&w=9"] {
      let found = try ImageParameter.parse(Array(query.utf8), rules: rules)
      #expect(found.key == plain.key && found.transform.width == 9)
    }
    #expect(throws: ImageError.self) {
      try ImageParameter.parse(Array("url=https://h/a.png&x=1".utf8), rules: rules)
    }
  }

  @Test func `the operator's rules come before the URL is parsed`() throws {
    var configuration = ServerConfiguration()
    configuration.sourceRules = { text, _ throws(ImageError) in
      if text == "no" { throw .forbiddenSource(reason: "no", detail: text) }
      return "https://h/" + text
    }
    let rules = RequestRules(configuration)
    let found = try ImageParameter.parse(Array("url=a%20b".utf8), rules: rules)
    #expect(found.source.text == "https://h/a%20b")
    #expect(throws: ImageError.self) {
      try ImageParameter.parse(Array("url=no".utf8), rules: rules)
    }
  }

  @Test func `the url is percent-decoded once, and a plus stays a plus`() throws {
    let request = try parse("url=https%3A%2F%2Fh%2Fa%2520b%2Bc+d.png%3Fq%3D1%26w%3D2")
    #expect(request.source.text == "https://h/a%20b+c+d.png?q=1&w=2")
    #expect(request.transform == Transform())
  }

  @Test func `an unencoded url ends at the next parameter`() throws {
    #expect(try parse("url=https://h/a.png?x=y&w=3").source.text == "https://h/a.png?x=y")
    #expect(try parse("w=3&url=https://h/é.png&&").transform.width == 3)
  }

  @Test func `limitbytes is limited by the maximum pixels of a result`() throws {
    #expect(try transform("limitbytes=100000000").limitBytes == 100_000_000)
    #expect(throws: ImageError.self) { try self.transform("limitbytes=100000001") }
    var configuration = ServerConfiguration()
    configuration.imaging.maximumResultPixels = 1_000
    let rules = RequestRules(configuration)
    let query = Array("url=https://h/a&limitbytes=4001".utf8)
    #expect(
      throws: ImageError.invalidParameter(
        name: "limitbytes", value: "4001", allowed: "a whole number from 1 to 4000 of bytes")
    ) { try ImageParameter.parse(query, rules: rules) }
  }

  @Test func `enlarge is refused if clients may not enlarge, except in presets and for operators`()
    throws
  {
    var configuration = ServerConfiguration()
    configuration.allowsEnlarging = false
    configuration.presets = ["large": "w=900&enlarge=1"]
    let rules = RequestRules(configuration)
    func enlarges(_ query: String, rules: RequestRules) throws -> Bool {
      try ImageParameter.parse(Array(query.utf8), rules: rules).transform.enlarge
    }
    #expect(throws: ImageError.forbiddenParameter("enlarge")) {
      try enlarges("url=https://h/a&enlarge=1", rules: rules)
    }
    #expect(try !enlarges("url=https://h/a&enlarge=0", rules: rules))
    #expect(try enlarges("url=https://h/a&preset=large", rules: rules))
    #expect(try enlarges("url=https://h/a&enlarge=1", rules: rules.forOperators))
  }

  @Test func `each load option changes the load and not the key`() throws {
    func options(_ parameter: String) throws -> LoadOptions {
      let request = try parse("url=https://h/a.png&" + parameter)
      #expect(request.key == CacheKey(source: request.source, transform: Transform()))
      return request.options
    }
    #expect(try options("refresh=1").cache == .refresh)
    #expect(try options("cache=only").cache == .only)
    #expect(try options("cache=bypass").cache == .bypass)
    #expect(try options("store=all").store == .all)
    #expect(try options("store=memory").store == .memory)
    #expect(try options("store=disk").store == .disk)
    #expect(try options("store=none").store == [])
    #expect(try options("retry=1").retriesFailed)
    #expect(try options("priority=low").priority == .low)
    #expect(throws: ImageError.forbiddenParameter("priority")) {
      try options("priority=high")
    }
    #expect(try options("detach=1").isDetached)
  }

  @Test(arguments: [
    "progressive=2", "refresh=0", "refresh=", "cache=all", "cache=", "store=redis", "store=",
    "retry=2",
    "priority=urgent", "detach=yes", "scale=0", "scale=-1", "scale=10.1", "scale=1e1", "scale=.",
    "scale=1.", "scale=..5", "dpr=0", "width=0", "height=1.5", "q=101", "format=JPG", "scale=",
    "scale=+1",
    "scale=%201", "scale=nan", "scale=inf", "scale=0x1", "scale=1.2.3", "scale=0.000",
    "scale=000000000000000000001", "w=0", "w=-1", "w=65536", "w=1.0", "w=+1", "w=1%20", "w=",
    "w=99999999999999999999", "w=%D9%A1", "h=0", "h=abc", "fit=Cover", "fit=", "position=middle",
    "enlarge=true", "enlarge=2", "format=svg", "format=jp2", "quality=0",
    "quality=101", "background=ffff", "background=ggf", "background=%23ffffff", "background=ggffff",
    "crop=", "crop=faces,", "crop=faces,10.1", "crop=faces,1,2", "crop=faces,-1", "crop=1,2,3",
    "crop=1,2,3,4,5", "crop=1,2,0,4", "crop=1,2,3,0", "crop=-1,2,3,4",
    "crop=1.5,2,3,4", "crop=1,2,3,10000001", "crop=1,,3,4", "crop=1, 2,3,4", "crop=1,2,3,4,",
    "rotate=361", "rotate=a", "rotate=", "flip=none", "flip=", "flip=vh",
    "flip=H", "flip=both", "trim=0", "trim=256", "trim=1.5", "trim=", "position=0.3",
    "position=0.3,1.1", "position=-0.1,0", "position=0.3,0.3,0.3", "position=,", "position=a,b",
    "blur=0", "blur=0.29", "blur=250.1", "blur=-1", "blur=", "blur=1e2", "sharpen=0",
    "sharpen=10.1",
    "radius=0", "radius=65536", "radius=-1", "radius=1.5", "radius=MAX", "radius=", "tint=",
    "tint=red", "tint=ff", "tint=%23ff0000", "grayscale=2", "grayscale=", "brightness=-1",
    "brightness=10.1", "brightness=", "saturation=11", "saturation=nan", "maxbytes=0",
    "maxbytes=1.5", "maxbytes=1kB", "animated=2", "animated=", "strip=all", "strip=",
    "background=+12345", "limitbytes=0", "limitbytes=1MiB", "limitbytes=100000001",
    "frame=-1", "frame=1,2",
  ])
  func `a value out of range is refused with its parameter name`(parameter: String) {
    let given = String(parameter.prefix { $0 != "=" })
    let name = ["width": "w", "height": "h", "q": "quality", "dpr": "scale"][given] ?? given
    guard case .invalidParameter(name, _, let allowed)? = error("url=https://h/a&" + parameter)
    else {
      Issue.record("\(parameter) gave \(String(describing: error("url=https://h/a&" + parameter)))")
      return
    }
    #expect(!allowed.isEmpty)
  }

  @Test func `invalid percent-encoding is refused`() {
    for value in ["%", "%2", "%zz", "%00", "%ff", "a%C3", "%-1"] {
      guard case .invalidParameter("fit", _, _)? = error("url=https://h/a&fit=\(value)"),
        case .invalidURL? = error("url=https://h/\(value)")
      else {
        Issue.record("\(value) was not refused")
        continue
      }
    }
  }

  @Test func `refresh and cache cannot be combined`() {
    for query in ["refresh=1&cache=only", "cache=bypass&refresh=1"] {
      guard case .invalidParameter? = error("url=https://h/a&" + query) else {
        Issue.record("\(query) was not refused")
        continue
      }
    }
  }

  @Test func `unknown, repeated and missing parameters are refused by name`() {
    #expect(error("url=https://h/a&breadth=3") == .unknownParameter("breadth"))
    #expect(error("url=https://h/a&W=3") == .unknownParameter("W", hint: "; did you mean w?"))
    #expect(error("url=https://h/a&%zz=3") == .unknownParameter("%zz"))
    #expect(error("url=https://h/a&=3") == .unknownParameter(""))
    #expect(error("w=3") == .missingParameter("url"))
    #expect(error("") == .missingParameter("url"))
    #expect(
      error("url=https://h/a&w=3&w=3")
        == .invalidParameter(name: "w", value: "3", allowed: "it may be given only once"))
    #expect(
      error("url=https://h/a&url=https://h/b")
        == .invalidParameter(
          name: "url", value: "https://h/b", allowed: "it may be given only once"))
  }

  @Test(arguments: [
    ("size=3", "; did you mean w or h?"), ("FM=webp", "; did you mean format?"),
    ("src=a", "; did you mean url?"), ("qualty=3", "; did you mean quality?"),
    ("widht=3", "; did you mean width?"),
    ("amp;w=3", "; '&amp;' is '&' escaped for HTML, and a URL has '&'"), ("zzzz=1", ""),
  ])
  func `an unknown parameter comes with what the client probably meant`(query: String, end: String)
  {
    let message = error("url=https://h/a&" + query)?.message ?? ""
    #expect(message.hasPrefix("unknown parameter '") && message.hasSuffix("'" + end), "\(message)")
  }

  @Test(arguments: [
    ("format=WEBP", "did you mean webp?"), ("enlarge=true", "did you mean 1?"),
    ("strip=no", "did you mean 0?"), ("fit=covr", "did you mean cover?"),
  ])
  func `a value of the wrong spelling comes with the nearest one`(query: String, end: String) {
    let message = error("url=https://h/a&" + query)?.message ?? ""
    #expect(message.hasSuffix("; " + end), "\(message)")
  }

  @Test func `an invalid url is refused and truncated in the message`() {
    guard case .invalidURL("ftp://h/a", _)? = error("url=ftp://h/a") else {
      Issue.record("ftp was not refused")
      return
    }
    let long = "x" + String(repeating: "y", count: 5_000)
    #expect((error("url=\(long)")?.message.count ?? 9_999) < 400)
    #expect((error("url=https://h/a&fit=\(long)")?.message.count ?? 9_999) < 400)
    #expect((error("url=https://h/a&\(long)=1")?.message.count ?? 9_999) < 400)
  }

  @Test func `control characters of a client are escaped in messages`() {
    let message = error("url=https://h/a&fit=a%0Ab%7F%C2%85")?.message ?? ""
    #expect(message.contains("a\\u{a}b\\u{7f}\\u{85}"))
  }
}
