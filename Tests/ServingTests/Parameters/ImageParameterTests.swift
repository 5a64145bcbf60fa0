// ImageParameterTests: tests of the parameters of /image and their errors.

import Model
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

  @Test func `the url is percent-decoded once, and a plus stays a plus`() throws {
    let request = try parse("url=https%3A%2F%2Fh%2Fa%2520b%2Bc+d.png%3Fq%3D1%26w%3D2")
    #expect(request.source.text == "https://h/a%20b+c+d.png?q=1&w=2")
    #expect(request.transform == Transform())
  }

  @Test func `an unencoded url ends at the next parameter`() throws {
    #expect(try parse("url=https://h/a.png?x=y&w=3").source.text == "https://h/a.png?x=y")
    #expect(try parse("w=3&url=https://h/é.png&&").transform.width == 3)
  }

  @Test func `each parameter sets its part of the transform`() throws {
    #expect(try transform("scale=0.5").scale == 0.5)
    #expect(try transform("scale=10").scale == 10)
    #expect(try transform("w=1").width == 1)
    #expect(try transform("h=65535").height == 65_535)
    #expect(try transform("fit=cover").fit == .cover)
    #expect(try transform("position=left-top").position == .leftTop)
    #expect(try transform("enlarge=1").enlarge)
    #expect(try !transform("enlarge=0").enlarge)
    #expect(try transform("format=webp").format == .webp)
    #expect(try transform("format=auto").format == nil)
    #expect(try transform("quality=100").quality == 100)
    #expect(try transform("background=00ff7F80").background.hexadecimal == "00ff7f80")
    #expect(try transform("limitbytes=1").limitBytes == 1)
    #expect(try transform("frame=0").frame == 0)
    #expect(try transform("progressive=1").progressive)
    #expect(try !transform("progressive=0").progressive)
    #expect(try transform("%77=5").width == 5)
  }

  @Test func `limitbytes is limited by the maximum pixels of a result`() throws {
    #expect(try transform("limitbytes=100000000").limitBytes == 100_000_000)
    #expect(throws: ImageError.self) { try self.transform("limitbytes=100000001") }
    var configuration = ServerConfiguration()
    configuration.maximumResultPixels = 1_000
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

  @Test func `crop takes whole numbers, and rotate, flip and position take their names`() throws {
    let crop = PixelArea(x: 0, y: 20, size: PixelSize(width: 300, height: 10_000_000))
    #expect(try transform("crop=0,20,300,10000000").crop == crop)
    #expect(try transform("crop=0%2C20%2C300%2C10000000").crop == crop)
    #expect(try transform("rotate=90").rotation == .quarter)
    #expect(try transform("rotate=180").rotation == .half)
    #expect(try transform("rotate=270").rotation == .threeQuarters)
    #expect(try transform("flip=h").flip == .horizontal)
    #expect(try transform("flip=v").flip == .vertical)
    #expect(try transform("flip=hv").flip == .both)
    #expect(try transform("trim=1").trim == 1)
    #expect(try transform("trim=255").trim == 255)
    #expect(try transform("position=0.3,1").focalPoint == FocalPoint(x: 0.3, y: 1))
    #expect(try transform("position=0.3,1").position == .center)
    #expect(try transform("position=top").focalPoint == nil)
  }

  @Test func `each effect is accepted at both ends of its range`() throws {
    func effects(_ parameter: String) throws -> Effects { try transform(parameter).effects }
    #expect(try effects("blur=0.3").blur == 0.3)
    #expect(try effects("blur=250").blur == 250)
    #expect(try effects("sharpen=0.1").sharpen == 0.1)
    #expect(try effects("sharpen=10").sharpen == 10)
    #expect(try effects("radius=1").radius == .points(1))
    #expect(try effects("radius=65535").radius == .points(65_535))
    #expect(try effects("radius=max").radius == .maximum)
    #expect(try effects("tint=ff8000").tint?.hexadecimal == "ff8000ff")
    #expect(try effects("tint=FF800040").tint?.hexadecimal == "ff800040")
    #expect(try effects("grayscale=1").isGrayscale)
    #expect(try !effects("grayscale=0").isGrayscale)
    #expect(try effects("brightness=0").brightness == 0)
    #expect(try effects("brightness=10").brightness == 10)
    #expect(try effects("saturation=0.5").saturation == 0.5)
  }

  @Test func `maxbytes, animated and strip set their part of the transform`() throws {
    #expect(try transform("maxbytes=1").maxBytes == 1)
    #expect(try transform("animated=1").isAnimated)
    #expect(try !transform("animated=0").isAnimated)
    #expect(try transform("strip=1").stripsMetadata)
    #expect(try !transform("strip=0").stripsMetadata)
  }

  @Test(arguments: [
    ("brightness=1&saturation=1.0&grayscale=0&animated=1&strip=1", ""),
    ("position=0.50,0.250", "focus=0.5,0.25"), ("tint=FF0000", "tint=ff0000ff"),
    ("crop=01,2,03,4", "crop=1,2,3,4"), ("blur=2.50", "blur=2.5"), ("radius=008", "radius=8"),
    (
      "saturation=2&tint=00000080&rotate=90&w=9&crop=1,2,3,4&flip=h&trim=5&blur=1&maxbytes=7&radius=max",
      "w=9&rotate=90&flip=h&crop=1,2,3,4&trim=5&maxbytes=7&blur=1.0&radius=max&tint=00000080&saturation=2.0"
    ),
  ])
  func `equivalent queries have one canonical text without defaults`(
    parameters: String, text: String
  ) throws {
    #expect(try transform(parameters).canonicalText == text)
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
    "crop=", "crop=1,2,3", "crop=1,2,3,4,5", "crop=1,2,0,4", "crop=1,2,3,0", "crop=-1,2,3,4",
    "crop=1.5,2,3,4", "crop=1,2,3,10000001", "crop=1,,3,4", "crop=1, 2,3,4", "crop=1,2,3,4,",
    "rotate=0", "rotate=45", "rotate=-90", "rotate=360", "rotate=", "flip=none", "flip=", "flip=vh",
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

  @Test(arguments: [
    ("width=30", "w=30"), ("height=30", "h=30"), ("q=70", "quality=70"), ("dpr=2", "scale=2"),
    ("w%69dth=30", "w=30"), ("format=jpg", "format=jpeg"), ("scale=.5", "scale=0.5"),
    ("blur=.5", "blur=0.5"), ("position=.25,.5", "position=0.25,0.5"),
    ("background=f80", "background=ff8800"), ("background=F80", "background=ff8800ff"),
    ("tint=123", "tint=112233"),
    ("width=3&q=9&dpr=.5&format=jpg", "w=3&quality=9&scale=.5&format=jpeg"),
  ])
  func `an alias has the key of its parameter`(alias: String, name: String) throws {
    #expect(try transform(alias) == transform(name))
    #expect(try transform(alias).canonicalText == transform(name).canonicalText)
  }

  @Test(arguments: [("w=3&width=3", "w"), ("q=1&quality=1", "quality"), ("dpr=1&scale=1", "scale")])
  func `a parameter together with its alias is refused as repeated`(query: String, name: String) {
    guard
      case .invalidParameter(name, _, "it may be given only once")? =
        error("url=https://h/a&" + query)
    else {
      Issue.record("\(query) gave \(String(describing: error("url=https://h/a&" + query)))")
      return
    }
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

  @Test func `equivalent requests have one key`() throws {
    let one = try parse("url=https%3A%2F%2FH%2Fa.png&w=10&fit=inside&format=auto")
    let two = try parse("w=010&url=https://h:443/a.png")
    #expect(one.key == two.key)
  }
}
