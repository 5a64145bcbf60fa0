// ParameterTableTests: each parameter from the query to the transform, the key, the worker and
// back.

@testable import Core
import TestSupport
import Testing

@testable import Serving

struct ParameterTableTests {
  /// Parameters of a query, their text in keys and for workers, and what they change.
  struct Row: CustomTestStringConvertible, Sendable {
    let query: String
    let text: String
    let change: @Sendable (inout Transform) -> Void

    init(_ query: String, _ text: String, change: @escaping @Sendable (inout Transform) -> Void) {
      self.query = query
      self.text = text
      self.change = change
    }

    var testDescription: String { query }
  }

  static let rows = [
    Row("", "") { _ in },
    Row("scale=.50", "scale=0.5") { $0.scale = 0.5 },
    Row("dpr=10", "scale=10") { $0.scale = 10 },
    Row("scale=0.0000000000000012", "scale=1.2e-15") { $0.scale = 1.2e-15 },
    Row("scale=.1234567890123456789", "scale=0.12345678901234568") {
      $0.scale = 0.12345678901234568
    },
    Row("%77=01", "w=1") { $0.width = 1 },
    Row("width=2", "w=2") { $0.width = 2 },
    Row("h=65535", "h=65535") { $0.height = 65_535 },
    Row("height=2", "h=2") { $0.height = 2 },
    Row("w=50%25&h=012.50%25", "w=50%&h=12.5%") {
      ($0.sizing.widthShare, $0.sizing.heightShare) = (50, 12.5)
    },
    Row("limitside=512", "limitside=512") { $0.sizing.limitSide = 512 },
    Row("fit=cover", "fit=cover") { $0.fit = .cover },
    Row("position=left-top", "position=left-top") { $0.position = .leftTop },
    Row("position=.3,1", "position=0.3,1") { $0.focalPoint = FocalPoint(x: 0.3, y: 1) },
    Row("position=120px,8px", "position=120px,8px") {
      $0.focalPoint = FocalPoint(x: 120, y: 8, isInPixels: true)
    },
    Row("position=top&offset=-3,.25", "position=top&offset=-3,0.25") {
      ($0.position, $0.sizing.offset) = (.top, Offset(x: .pixels(-3), y: .share(0.25)))
    },
    Row("crop=9,8,right,-0.5,7", "crop=9,8,right,-0.5,7") {
      $0.selection.crop = Crop(
        width: .pixels(9), height: .pixels(8),
        at: .named(.right, Offset(x: .share(-0.5), y: .pixels(7))))
    },
    Row("crop=9,8,fp,.5,1", "crop=9,8,fp,0.5,1") {
      $0.selection.crop = Crop(
        width: .pixels(9), height: .pixels(8), at: .around(FocalPoint(x: 0.5, y: 1)))
    },
    Row("trim=9&trim_color=f80&trim_equal=h", "trim=9&trim_color=ff8800&trim_equal=h") {
      $0.trim = 9
      $0.selection.trimColor = Color(red: 255, green: 136, blue: 0)
      $0.selection.trimEqual = .horizontal
    },
    Row("enlarge=1", "enlarge=1") { $0.enlarge = true },
    Row("limitbytes=1", "limitbytes=1") { $0.limitBytes = 1 },
    Row("frame=0", "frame=0") { $0.frame = 0 },
    Row("rotate=90", "rotate=90") { $0.rotation = .quarter },
    Row("rotate=180", "rotate=180") { $0.rotation = .half },
    Row("rotate=270.0", "rotate=270") { $0.rotation = .threeQuarters },
    Row("rotate=-30.5", "rotate=329.5") { $0.sizing.angle = 329.5 },
    Row("flip=h", "flip=h") { $0.flip = .horizontal },
    Row("flip=v", "flip=v") { $0.flip = .vertical },
    Row("flip=hv", "flip=hv") { $0.flip = .both },
    Row("crop=0%2C020,300,10000000", "crop=0,20,300,10000000") {
      $0.crop = PixelArea(x: 0, y: 20, size: PixelSize(width: 300, height: 10_000_000))
    },
    Row("trim=1", "trim=1") { $0.trim = 1 },
    Row("trim=255", "trim=255") { $0.trim = 255 },
    Row("blur=0.3", "blur=0.3") { $0.effects.blur = 0.3 },
    Row("blur=250", "blur=250") { $0.effects.blur = 250 },
    Row("sharpen=0.10", "sharpen=0.1") { $0.effects.sharpen = 0.1 },
    Row("radius=008", "radius=8") { $0.effects.radius = .points(8) },
    Row("radius=max", "radius=max") { $0.effects.radius = .maximum },
    Row("radius=ellipse", "radius=ellipse") { $0.effects.radius = .ellipse },
    Row("radius=8,0,05,8", "radius=8,0,5,8") { $0.effects.radius = .corners([8, 0, 5, 8]) },
    Row("w=160&ar=16:9", "w=160&ar=1.7777777777777777") {
      $0.width = 160
      $0.sizing.aspectRatio = AspectRatio(16.0 / 9)
    },
    Row("ar=1.50:1&fit=cover-down", "ar=1.5&fit=cover-down") {
      $0.sizing.aspectRatio = AspectRatio(1.5)
      $0.fit = .coverDown
    },
    Row("crop=0.50,0,left", "crop=0.5,0,left") {
      $0.selection.crop = Crop(width: .share(0.5), height: .pixels(0), at: .named(.left))
    },
    Row("position=faces", "position=faces") { $0.position = .faces },
    Row("crop=faces,.50", "crop=faces") {
      $0.selection.crop = Crop(
        width: .pixels(0), height: .pixels(0), at: .faces(margin: Crop.usualMargin))
    },
    Row("crop=faces,0", "crop=faces,0") {
      $0.selection.crop = Crop(width: .pixels(0), height: .pixels(0), at: .faces(margin: 0))
    },
    Row("crop=9,1.0,center", "crop=9,1.0") {
      $0.selection.crop = Crop(width: .pixels(9), height: .share(1), at: .named(.center))
    },
    Row("crop=0.1,2,.5,3", "crop=0.1,2,0.5,3") {
      $0.selection.crop = Crop(
        width: .share(0.5), height: .pixels(3), at: .at(x: .share(0.1), y: .pixels(2)))
    },
    Row("pad=3&extend=ratio", "extend=ratio&pad=3,3,3,3") {
      ($0.sizing.extend, $0.sizing.padding) = (.ratio, Edges([3]) ?? Edges())
    },
    Row("pad=1,2,3", "pad=1,2,3,2") { $0.sizing.padding = Edges([1, 2, 3, 2]) ?? Edges() },
    Row("min-h=20&min-w=10&fit=auto", "min-w=10&min-h=20&fit=auto") {
      ($0.sizing.minWidth, $0.sizing.minHeight, $0.fit) = (10, 20, .auto)
    },
    Row("tint=f80", "tint=ff8800") { $0.effects.tint = Color(red: 255, green: 136, blue: 0) },
    Row("tint=FF880040", "tint=ff880040") {
      $0.effects.tint = Color(red: 255, green: 136, blue: 0, alpha: 64)
    },
    Row("grayscale=1", "grayscale=1") { $0.effects.isGrayscale = true },
    Row("brightness=0", "brightness=0") { $0.effects.brightness = 0 },
    Row("saturation=0.50", "saturation=0.5") { $0.effects.saturation = 0.5 },
    Row("pixelate=8&hue=90", "pixelate=8&hue=90") {
      ($0.effects.pixelate, $0.effects.hue) = (8, 90)
    },
    Row("negate=1&gamma=2.20&contrast=.5&sepia=1", "sepia=1&contrast=0.5&gamma=2.2&negate=1") {
      ($0.effects.sepia, $0.effects.contrast, $0.effects.gamma) = (1, 0.5, 2.2)
      $0.effects.isNegative = true
    },
    Row("background=00ff7F80", "background=00ff7f80") {
      $0.background = Color(red: 0, green: 255, blue: 127, alpha: 128)
    },
    Row("flatten=1", "flatten=1") { $0.output.flattens = true },
    Row("format=png", "format=png") { $0.format = .png },
    Row("format=jpg&quality=79", "format=jpeg&quality=79") {
      $0.format = .jpeg
      $0.quality = 79
    },
    Row("format=source", "format=source") { $0.output.keepsFormat = true },
    Row("orient=0", "orient=0") { $0.selection.isUpright = false },
    Row("q_jpeg=60", "q_jpeg=60") { $0.output.qualities[.jpeg] = 60 },
    Row("q_webp=60&format=webp", "format=webp&q_webp=60") {
      ($0.format, $0.output.qualities[.webp]) = (.webp, 60)
    },
    Row("q_avif=60&format=source", "format=source&q_avif=60") {
      ($0.output.keepsFormat, $0.output.qualities[.avif]) = (true, 60)
    },
    Row("q_jxl=60&format=jxl", "format=jxl&q_jxl=60") {
      ($0.format, $0.output.qualities[.jxl]) = (.jxl, 60)
    },
    Row("q=80", "quality=80") { $0.quality = 80 },
    Row("maxbytes=9223372036854775807", "maxbytes=9223372036854775807") { $0.maxBytes = .max },
    Row("colours=16&pass=animated,vector", "colours=16&pass=animated,vector") {
      ($0.output.colours, $0.output.passed) = (16, [.animated, .vector])
    },
    // What is sent as it is has one key.
    Row("w=9&blur=2&pass=vector,all&strip=0", "pass=all&strip=0") {
      ($0.output.passed, $0.stripsMetadata) = (.all, false)
    },
    Row("lossless=1&chroma=444&swap=1", "swap=1&lossless=1&chroma=444") {
      ($0.output.isLossless, $0.output.chroma, $0.sizing.adapts) = (true, .full, true)
    },
    Row("strip=0", "strip=0") { $0.stripsMetadata = false },
    Row("profile=keep", "profile=keep") { $0.output.profile = .keep },
    Row("progressive=1", "progressive=1") { $0.progressive = true },
    Row("animated=0", "animated=0") { $0.isAnimated = false },
    Row("format=placeholder", "format=placeholder&placeholder=lqip") {
      $0.product = .placeholder(.lqip)
    },
    Row("placeholder=color&format=placeholder", "format=placeholder&placeholder=color") {
      $0.product = .placeholder(.color)
    },
    Row(
      "saturation=2&tint=00000080&rotate=90&w=9&crop=1,2,3,4&flip=h&trim=5&blur=1&maxbytes=7",
      "w=9&rotate=90&flip=h&crop=1,2,3,4&trim=5&blur=1&tint=00000080&saturation=2&maxbytes=7"
    ) {
      $0.effects.saturation = 2
      $0.effects.tint = Color(red: 0, green: 0, blue: 0, alpha: 128)
      $0.rotation = .quarter
      $0.width = 9
      $0.crop = PixelArea(x: 1, y: 2, size: PixelSize(width: 3, height: 4))
      $0.flip = .horizontal
      $0.trim = 5
      $0.effects.blur = 1
      $0.maxBytes = 7
    },
  ]

  /// The rules of a server with watermarks.
  private func rules(
    _ change: (inout ServerConfiguration) -> Void = { _ in }
  ) throws -> RequestRules {
    var configuration = ServerConfiguration()
    configuration.watermarks = ["logo": try SourceURL(parsing: "http://marks/logo.png?v=1")]
    configuration.allowsLocalWatermarks = true
    change(&configuration)
    return RequestRules(configuration)
  }

  private func parse(
    _ parameters: String, by rules: RequestRules? = nil, kind: ImageQuery.Kind = .image
  ) throws -> Transform {
    try ImageParameter.parse(
      Array("url=https://h/a.png&\(parameters)".utf8), rules: rules ?? self.rules(), kind: kind
    ).transform
  }

  private func parameter(refusedIn parameters: String, by rules: RequestRules? = nil) -> String? {
    do {
      _ = try parse(parameters, by: rules)
      return nil
    } catch {
      let error = error as? ImageError
      return error?.code == "invalid_parameter" ? error?.parameter : error?.code
    }
  }

  @Test(arguments: rows)
  func `a parameter changes its part, and key and worker have its one text`(row: Row) throws {
    let transform = try parse(row.query)
    var expected = Transform()
    row.change(&expected)
    #expect(transform == expected)
    #expect(transform.canonicalText == row.text)
    #expect(TransformDraft(text: row.text)?.transform == expected)
    // A client has no exponents, and encodes a per cent sign.
    let encoded = row.text.replacing("%", with: "%25")
    #expect((try? parse(encoded)) == expected || row.text.contains("e-"))
  }

  @Test func `each parameter has a row here, and each row a key of its own`() throws {
    let names = Set(
      Self.rows.flatMap { $0.text.split(separator: "&").map { String($0.prefix { $0 != "=" }) } })
    for parameter in TransformParameter.table where parameter.group != nil {
      let isKnown =
        names.contains(parameter.name)
        || parameter.group == .watermark && parameter.name.hasPrefix("watermark_")
      #expect(isKnown, "\(parameter.name)")
    }
    #expect(Set(Self.rows.map(\.text)).count == Self.rows.count)
  }

  @Test(arguments: [
    "rotate=0&profile=srgb&brightness=0%25&hue=-0%25", "rotate=-360&contrast=-0%25",
    "brightness=1&saturation=1.0&grayscale=0&animated=1&strip=1&progressive=0&enlarge=0",
    "fit=inside&position=center&format=auto&background=ffffff&limitbytes=62914560",
    "orient=1&pad=0&hue=0&sepia=0&contrast=1&gamma=1.0&negate=0&q_webp=79",
  ])
  func `a parameter at its default has no text`(query: String) throws {
    #expect(try parse(query) == Transform())
    #expect(try parse(query).canonicalText.isEmpty)
  }

  @Test(arguments: [
    ("brightness=-20%25", "brightness=0.8"), ("contrast=100%25", "contrast=2"),
    ("saturation=-90%25", "saturation=0.1"), ("saturation=-100%25", "saturation=0"),
    ("brightness=12.5%25", "brightness=1.125"), ("hue=-50%25", "hue=270"),
    ("hue=100%25", "hue=180"), ("hue=-100%25", "hue=180"), ("rotate=-90", "rotate=270"),
    ("rotate=360", ""), ("rotate=450.0", nil), ("radius=7,7,7,7", "radius=7"),
    ("brightness=101%25", nil), ("contrast=%25", nil), ("hue=-101%25", nil), ("hue=-5", nil),
    ("saturation=--5%25", nil), ("contrast=+5%25", nil), ("blur=5%25", nil),
    ("rotate=-361", nil), ("rotate=--9", nil), ("rotate=1e1", nil), ("radius=0,0,0,0", nil),
    ("radius=1,2", nil), ("radius=1,2,3,", nil), ("radius=max,1,1,1", nil), ("profile=p3", nil),
  ])
  func `other spellings have the one key, and what is beyond is refused`(
    query: String, text: String?
  ) {
    #expect((try? parse(query).canonicalText) == text)
  }

  @Test func `what the server adds has a text, and the quality of the contract has none`() throws {
    let plain = try rules()
    #expect(try parse("format=jpeg&quality=80", by: plain).canonicalText == "format=jpeg")
    #expect(try parse("placeholder=color", kind: .info).canonicalText == "placeholder=color&info=1")
    let other = try rules { $0.imaging.qualities[.jpeg] = 70 }
    var open = try parse("w=9", by: other)
    open.accepted = [.avif, .webp]
    #expect(open.canonicalText == "w=9&q_jpeg=70&auto=avif,webp")
    #expect(TransformDraft(text: open.canonicalText)?.transform == open)
  }

  @Test(arguments: [
    "w", "w=", "w=0", "w=010", "w=+1", "w=1&", "&w=1", "h=1&w=1", "w=1&w=1", "W=1", "url=a",
    "width=1", "fit=inside", "fit=Cover", "scale=nan", "scale=inf", "scale=0", "scale=1e1",
    "scale=1e-400", "scale=0x1p-1", "blur=0.2", "blur=-1", "blur=2.0", "sharpen=10.1",
    "position=0.5", "position=0.50,1", "position=-0.1,0", "position=nan,0", "position=1,1.1",
    "crop=-1,0,1,1", "crop=0,0,0,1", "crop=0,0,1,10000001",
    "crop=1", "crop=1,1,entropy", "crop=1,1,center", "crop=1.1,1", "crop=0.0,0.0,0.0,1.0",
    "trim=256", "radius=0",
    "radius=65536", "pixelate=1", "hue=360", "sepia=1.1", "contrast=1", "gamma=0", "negate=0",
    "orient=1", "ar=0", "ar=1:2", "ar=1:2:3", "ar=:1", "min-w=0", "extend=auto", "pad=0",
    "pad=1,2,3,4,5", "pad=1,1,1", "pad=1,,1,1", "tint=FF0000", "tint=ff0000ff", "brightness=1",
    "saturation=10.1",
    "frame=2147483648", "limitbytes=0", "maxbytes=0", "quality=101", "format=auto",
    "format=jpg", "format=svg", "placeholder=color", "format=placeholder", "info=0",
    "auto=", "auto=png", "auto=webp,webp", "format=png&auto=webp", "q_jpeg=", "q_png=5",
    "q_jpeg=80", "q_jpeg=0", "q_jpeg=101", "q_webp=5",
    "watermark_position=entropy", "watermark_scale=0", "watermark_opacity=1.01",
    "offset=0,0", "offset=1", "offset=1,2,3", "offset=--1,2", "offset=1.5,2", "offset=65536,1",
    "position=1px,2", "position=1.5px,2px", "crop=1,2,fp,2,1", "crop=1,2,fp,1",
    "crop=1,2,entropy,1,1",
    "crop=1,2,left,0,0", "trim_equal=vh", "limitside=0", "pass=", "pass=all,animated",
    "pass=all,all", "colours=1", "chroma=422", "w=0%", "w=50%%", "h=10001%",
    "watermark_offset=0,0", "rotate=0", "rotate=-9", "rotate=90.0", "brightness=5%",
    "radius=5,5,5,5",
    "watermark_gap=1,2", "watermark_repeat=x&watermark_gap=-1,2", "profile=srgb",
    "watermark_repeat=0", "watermark_position=top&watermark_repeat=1", "watermark_url=http://a/",
  ])
  func `a worker refuses every text that no server writes`(text: String) {
    #expect(TransformDraft(text: text) == nil)
  }

  @Test func `a watermark is a configured name or a local file, placed by its parameters`() throws {
    let plain = try parse("watermark=logo")
    #expect(plain.watermark?.source.text == "http://marks/logo.png?v=1")
    #expect(plain.watermark?.placement == WatermarkPlacement())
    #expect(
      try parse("watermark=local:///a%2520b.png").canonicalText
        == "watermark_url=local:///a%20b.png")
    var placement = WatermarkPlacement()
    placement.position = .leftTop
    placement.scale = 0.25
    placement.opacity = 0.5
    placement.offset = Offset(x: .pixels(4), y: .share(-0.1))
    let placed = try parse(
      "watermark_scale=.25&watermark=logo&watermark_opacity=0.5&watermark_position=left-top&w=3"
        + "&watermark_offset=4,-.1")
    #expect(placed.watermark?.placement == placement)
    let text =
      "watermark_position=left-top&watermark_offset=4,-0.1&watermark_scale=0.25"
      + "&watermark_opacity=0.5"
    #expect(placed.canonicalText == "w=3&\(text)&watermark_url=http://marks/logo.png?v=1")
    #expect(TransformDraft(text: text)?.placement == placement)
    // The URL of the key is the filtered one.
    let filter = CacheKeyFilter(rules: [
      HostRule(
        host: try #require(HostPattern("marks")),
        parameters: .drop([try #require(ParameterPattern("v"))]))
    ])
    #expect(
      try parse("watermark=logo", by: rules { $0.keyFilter = filter }).canonicalText
        == "watermark_url=http://marks/logo.png")
  }

  @Test func `a repeated watermark has no position, and nine positions are allowed else`() throws {
    var texts = Set<String>()
    for position in WatermarkPlacement.positions {
      let query = "watermark=logo&watermark_position=\(position.rawValue)"
      #expect(try parse(query).watermark?.placement.position == position)
      texts.insert(try parse(query + "&watermark_repeat=1").canonicalText)
    }
    #expect(WatermarkPlacement.positions.count == 9 && texts.count == 1)
    let tiled = "watermark_position=top&watermark_density=2&watermark_repeat=xy&watermark_gap=9,0.1"
    let placement = try parse("watermark=local:///a&" + tiled).watermark?.placement
    #expect(placement?.tiling == .aligned && placement?.density == 2)
    #expect(placement?.gap == Offset(x: .pixels(9), y: .share(0.1)))
    #expect(TransformDraft(text: tiled)?.placement == placement)
    let plain = try parse("watermark=local:///a&watermark_repeat=0&watermark_gap=1,1")
    #expect(plain.canonicalText == "watermark_url=local:///a")
  }

  @Test(arguments: [
    "watermark=logos", "watermark=", "watermark=Logo", "watermark=http://marks/logo.png?v=1",
    "watermark=https://h/a.png", "watermark=local://host/a.png", "watermark=local:///",
    "watermark=file:///etc/passwd", "watermark_position=entropy", "watermark_position=0.5,0.5",
    "watermark_scale=0", "watermark_scale=1.01", "watermark_scale=-1", "watermark_opacity=0",
    "watermark_opacity=2", "watermark_opacity=", "watermark_repeat=2", "watermark_repeat=yx",
    "watermark_gap=1", "watermark_gap=-1,0", "watermark_density=0", "watermark_density=11",
  ])
  func `a wrong watermark is refused by name`(parameter: String) {
    let other = parameter.hasPrefix("watermark=") ? "" : "watermark=logo&"
    #expect(
      self.parameter(refusedIn: other + parameter) == String(parameter.prefix { $0 != "=" }))
  }

  @Test(arguments: ["position=top", "scale=1", "opacity=1", "repeat=0"])
  func `a placement without a watermark, or a local one without a root, is refused`(
    parameter: String
  ) throws {
    #expect(throws: ImageError.missingParameter("watermark")) {
      try parse("watermark_" + parameter)
    }
    let rootless = try rules { $0.allowsLocalWatermarks = false }
    #expect(self.parameter(refusedIn: "watermark=local:///a.png", by: rootless) == "watermark")
  }

  @Test(arguments: [("w=3&width=3", "w"), ("q=1&quality=1", "quality"), ("dpr=1&scale=1", "scale")])
  func `a parameter together with its alias is refused as repeated`(query: String, name: String) {
    #expect(parameter(refusedIn: query) == name)
  }
}
