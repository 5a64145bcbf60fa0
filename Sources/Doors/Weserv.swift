// Weserv: the addresses of weserv (wsrv.nl, images.weserv.nl), and its parameters.

import Core

/// The door of weserv: `/?url=…` and nginx's `/images?url=…`.
struct WeservDoor: PeerDoor {
  let name = Peer.weserv.rawValue
  let rows = WeservDraft.table.rows
  private let sources: SourceRules

  init(_ options: DoorOptions) { sources = SourceRules(options) }

  /// Whether the path is one of weserv's two, and there is a source: `/` is also Pictor's page.
  func claims(_ address: DoorAddress) -> Bool {
    ["/", "/images"].contains(address.path)
      && address.query.queryItems().contains { $0.name == "url" && !$0.value.isEmpty }
  }

  /// Of repeated parameters the first counts.
  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    var draft = WeservDraft()
    var source = ""
    var seen: Set<String> = []
    for (name, value) in address.query.queryItems() where seen.insert(name).inserted {
      if name == "url" {
        source = value
      } else {
        try WeservDraft.table.read(name, value, of: .weserv, into: &draft)
      }
    }
    // `ssl:` is how weserv once wrote `https://`.
    if source.hasPrefix("ssl:") { source = "https://" + source.dropFirst(4).drop { $0 == "/" } }
    let url = try sources.url(of: source, areHosts: true)
    try draft.finish()
    draft["url"] = url
    return draft.translation
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    switch fault.kind {
    case .source: answer(400, "Unable to parse URI", reason: "url: " + fault.reason)
    case .forbidden: answer(404, Self.blocked, reason: "url: " + fault.reason)
    default: answer(400, fault.reason, reason: fault.reason)
    }
  }

  private static let blocked =
    "The hostname of the origin is unresolvable (DNS) or blocked by policy."

  func status(of error: ImageError) -> (Int, String) {
    switch error.cause {
    case .sourceNotFound(let status), .sourceError(let status, _, _):
      (404, "The requested URL returned error: \(status)")
    case .sourceTimeout: (404, "The requested URL timed out.")
    case .sourceUnreachable, .sourceTLS, .forbiddenSource: (404, Self.blocked)
    case .tooManyRedirects(let limit): (404, "Will not follow more than \(limit) redirects")
    case .sourceTooLarge(let limit, _):
      (404, "The image is too large to be downloaded. Max image size: \(limit) bytes")
    case .unsupportedFormat, .unsupportedKind, .undecodable:
      (404, "Invalid or unsupported image format. Is it a valid image?")
    case .tooManyPixels(_, let limit):
      (413, "Input image exceeds pixel limit. Width x height should be less than \(limit)")
    case .invalidURL: (400, "Unable to parse URI")
    default: (error.status, error.message)
    }
  }

  func answer(_ status: Int, _ message: String, reason: String) -> DoorAnswer {
    DoorAnswer(
      status: status, contentType: "application/json",
      body: "{\"status\":\"error\",\"code\":\(status),\"message\":\(message.json)}",
      reason: reason)
  }
}

private struct WeservDraft: OptionDraft {
  var translation = DoorTranslation()
  var density: String?
  var fit: String?
  var enlarges = true
  var isFocal = false
  var focus: [String: Double] = [:]
  /// The rectangle crop: x, y, w and h.
  var crop: [String: Int] = [:]
  var cropsFirst = false
  var mask: String?
  var frames: Int?
  var backgrounds: [String: String] = [:]
  var trimColor: String?
  var flips = false
  var flops = false

  /// Writes what depends on several parameters.
  mutating func finish() throws(DoorFault) {
    let hasBox = self["w"] != nil || self["h"] != nil
    self["scale"] = hasBox ? density ?? "1" : "1"
    if hasBox {
      self["fit"] = fit == "inside" ? nil : fit
      if enlarges { self["enlarge"] = "1" }
    }
    if isFocal {
      self["position"] = ["fpx", "fpy"].map { (focus[$0] ?? 0.5).share }.joined(separator: ",")
    }
    if self["format"] == nil { self["format"] = "source" }
    if self["frame"] == nil, frames ?? 1 == 1 { self["animated"] = "0" }
    self["flip"] = Self.axes(across: flops, down: flips)
    if self["trim"] != nil { self["trim_color"] = trimColor.map { String($0.prefix(6)) } }
    try finishCrop()
    try finishMask()
    finishBackground()
  }

  /// The rectangle is of the result; it is one of the source only if nothing is resized before.
  private mutating func finishCrop() throws(DoorFault) {
    guard !crop.isEmpty else { return }
    let isResized = self["w"] != nil || self["h"] != nil || self["trim"] != nil
    guard cropsFirst || !isResized else {
      throw .unsupported("cx, cy, cw, ch: after a resize; with precrop they work")
    }
    let rest = Selection.cropRange.upperBound
    let sides = [("x", 0), ("y", 0), ("w", rest), ("h", rest)].map { "\(crop[$0] ?? $1)" }
    self["crop"] = sides.joined(separator: ",")
  }

  private mutating func finishMask() throws(DoorFault) {
    guard let mask else { return }
    guard mask == "circle" else { return self["radius"] = mask }
    guard self["w"] != nil, self["w"] == self["h"], enlarges,
      ["cover", "contain", "fill"].contains(fit)
    else {
      throw .unsupported("mask: \(mask) needs w = h with fit=cover, contain or fill, without we")
    }
    self["radius"] = "max"
  }

  /// Pictor has one background: of the turn, of the box, of the mask, or behind the image.
  private mutating func finishBackground() {
    let turns = (Int(self["rotate"] ?? "") ?? 0) % 90 != 0
    let used =
      (self["fit"] == "contain" ? ["cbg"] : []) + (turns ? ["rbg"] : [])
      + (mask != nil ? ["mbg"] : [])
    let given = (used + ["bg"]).compactMap { backgrounds[$0] }
    if let color = given.first {
      self["background"] = color
      if Set(given).count > 1 { note("bg", .near("one background for cbg, rbg, mbg and bg")) }
    } else if !used.isEmpty {
      self["background"] = "00000000"
    } else if self["format"] == "jpeg" {
      self["background"] = "000000"
    }
  }
}

extension WeservDraft {
  private typealias Option = DoorOption<Self>
  private typealias Text = Reader<String?>

  private static let color = Text.color(Colors.argb)
  private static let lightness = "a factor of the lightness, not of each channel"
  private static let oneStrength = "one strength for flat and jagged areas"
  private static let factor = Text.number(0...1_000, neutral: 1)
  private static let hue = Text.degrees(-1e9...1e9)

  /// Pixels, or a share of the source's side.
  private static let side = Text { text throws(DoorFault) in
    guard text.hasSuffix("%") else { return try Text.side.read(text) }
    return try text.dropLast().number(in: 0.01...100).written + "%"
  }

  /// −100 to 100 as a factor.
  private static let percent = Text { text throws(DoorFault) in
    let number = try text.number(in: -100...100)
    return number == 0 ? nil : (1 + number / 100).written
  }

  /// Reads the places of `a`, also in old forms: letters, `crop-X-Y` and `focal-X-Y` in percent.
  private mutating func align(_ text: String) throws(DoorFault) {
    let parts = text.split(separator: "-").map { String($0) }
    if parts.count == 3, parts[0] == "crop" || parts[0] == "focal" {
      focus["fpx"] = try parts[1].number(in: 0...100) / 100
      focus["fpy"] = try parts[2].number(in: 0...100) / 100
      isFocal = true
    } else if text == "focal" {
      isFocal = true
    } else {
      self["position"] = try Self.places.read(text)
    }
  }

  private static let places = Text.choice(
    "center= c= top t=top right r=right bottom b=bottom left l=left top-left=left-top tl=left-top "
      + "bottom-left=left-bottom bl=left-bottom bottom-right=right-bottom br=right-bottom "
      + "top-right=right-top tr=right-top entropy attention")

  /// One day to one year.
  private static let seconds = Text { text throws(DoorFault) in
    let units = ["d": 1, "w": 7, "M": 30, "y": 365]
    guard let unit = text.last.flatMap({ units[String($0)] }),
      let count = try? text.dropLast().whole(in: 1...365), count * unit <= 365
    else { throw .invalid("1d to 1y, in d, w, M or y") }
    return "\(count * unit * 86_400)"
  }

  /// The parameters, in the order of weserv's quick reference.
  static let table = OptionTable<Self>([
    Option("w", side),
    Option("h", side),
    Option("dpr", into: \.density, .number(1...8)),
    Option("fit", into: \.fit, .choice("inside outside cover fill contain")),
    Option("t") { given, draft throws(DoorFault) in
      let fits = "fit=inside fitup=inside square=cover squaredown=cover absolute=fill"
      draft.fit = try Text.choice(fits + " letterbox=contain").read(given[0])
      draft.enlarges = given[0] != "fit" && given[0] != "squaredown"
    },
    Option("cbg", into: \.backgrounds["cbg"], color),
    Option("we") { given, draft throws(DoorFault) in
      draft.enlarges = try !Reader<Bool>.flag.read(given[0])
    },
    Option("a") { given, draft throws(DoorFault) in try draft.align(given[0]) },
    Option("fpx", into: \.focus["fpx"], .number(0...1)),
    Option("fpy", into: \.focus["fpy"], .number(0...1)),
    Option("cx", into: \.crop["x"], .whole(0...100_000)),
    Option("cy", into: \.crop["y"], .whole(0...100_000)),
    Option("cw", into: \.crop["w"], .whole(1...100_000)),
    Option("ch", into: \.crop["h"], .whole(1...100_000)),
    Option("crop") { given, draft throws(DoorFault) in
      let numbers = try given[0].wholes(4, between: ",", in: 0...100_000)
      guard numbers[0] > 0, numbers[1] > 0 else { throw .invalid("a size above 0") }
      draft.crop = ["w": numbers[0], "h": numbers[1], "x": numbers[2], "y": numbers[3]]
    },
    Option("precrop", into: \.cropsFirst, .flag),
    Option("trim") { given, draft throws(DoorFault) in
      draft["trim"] = given[0].isEmpty ? "10" : "\(try given[0].whole(in: 1...254))"
    },
    Option("tbg", into: \.trimColor, color),
    Option(
      """
      mask=triangle mask=triangle-180 mask=pentagon mask=pentagon-180 mask=hexagon mask=square \
      mask=star mask=heart
      """, .refused("only a circle or an ellipse")),
    Option("mask shape", into: \.mask, .choice("circle ellipse")),
    Option("mtrim strim", .ignored("no mask that is built leaves an edge")),
    Option("mbg", into: \.backgrounds["mbg"], color),
    Option("flip", into: \.flips, .flag),
    Option("flop", into: \.flops, .flag),
    Option("ro="), Option("ro", to: "rotate", .degrees(-1e9...1e9)),
    Option("rbg", into: \.backgrounds["rbg"], color),
    Option("bg", into: \.backgrounds["bg"], near: "formats with alpha keep it", color),
    Option("blur=", near: "a sigma of 0.5", .always("0.5")),
    Option("blur", .number(0...100, within: 0.3...100, neutral: 0)),
    Option("bri", to: "brightness", near: lightness, percent),
    Option("con", to: "contrast", percent),
    Option("filt=duotone", .refused("two colours are not mapped here")),
    Option("start stop", .ignored("only of filt=duotone")),
    Option("filt=greyscale", to: "grayscale", .always("1")),
    Option("filt=sepia", to: "sepia", near: "the sepia() of CSS", .always("1")),
    Option("filt=negate", to: "negate", .always("1")),
    Option("filt") { _, _ throws(DoorFault) in throw .invalid("a filter") },
    Option("gam", to: "gamma", .gamma),
    Option("mod") { given, draft throws(DoorFault) in
      let parts = given[0].split(separator: ",", omittingEmptySubsequences: false)
      guard (1...3).contains(parts.count) else { throw .invalid("brightness,saturation,hue") }
      let read = try zip(parts, [factor, factor, hue]).map { part, reader throws(DoorFault) in
        try reader.read(String(part))
      }
      for (name, value) in zip(["brightness", "saturation", "hue"], read) { draft[name] = value }
    },
    Option("sat", to: "saturation", factor),
    Option("hue", hue),
    Option("sharp= sharp=true sharp=1", to: "sharpen", near: "a sigma of 0.5", .always("0.5")),
    Option("sharp", .near(oneStrength)) { given, draft throws(DoorFault) in
      // The old form is flat,jagged,sigma.
      let sigma = given[0].split(separator: ",").last ?? ""
      draft["sharpen"] = max(0.1, try sigma.number(in: 0.000001...10)).written
    },
    Option("sharpf sharpj", .near(oneStrength)),
    Option("tint", near: "the colour lies half transparent on the image", .tint(Colors.argb)),
    Option("af l fsol", .ignored("of the encoder or decoder; no pixel differs")),
    Option("ll", to: "lossless", .flag),
    Option("encoding=base64", .refused("a data URL is text; here are images only")),
    Option("maxage", near: "at most the source's lifetime", seconds),
    Option(
      "default errorredirect",
      .near("a failure is answered as JSON; fallbacks hold the operator's images")),
    Option("filename") { given, draft throws(DoorFault) in
      guard !given[0].isEmpty, given[0].utf8.count <= 255, given[0].isPlain(with: "") else {
        throw .invalid("letters and digits")
      }
      draft["filename"] = given[0]
    },
    Option("il", to: "progressive", .flag),
    Option("n=1"),
    Option("n=-1", into: \.frames, .always(0)),
    Option("n", into: \.frames, near: "all frames", .whole(1...100_000)),
    Option("loop delay", .near("as in the source")),
    Option(
      "output=json", into: \.translation.isDescription,
      near: "the description has the form of /info", .always(true)),
    Option("output", to: "format", .choice("jpg=jpeg jpeg png gif tiff tif=tiff webp avif")),
    Option("page=-1", .ignored("the largest page of an icon is used")),
    Option("page=-2", .near("the largest page of an icon is used")),
    Option("page", to: "frame", .whole(0...100_000)),
    Option("q", to: "quality", .whole(1...100)),
  ])
}
