// Imgix: the addresses of imgix, and its parameters.

import Core

/// The door of imgix: `/PATH?PARAMETERS` below the base URL, and its web proxy's `/ENCODED_URL?…`.
struct ImgixDoor: PeerDoor {
  let name = Peer.imgix.rawValue
  let rows = ImgixDraft.table.rows
  private let sources: SourceRules
  private let keys: [[UInt8]]

  init(_ options: DoorOptions) { (sources, keys) = (SourceRules(options), options.keys) }

  /// Claims every path but `/`, which is Pictor's page.
  func claims(_ address: DoorAddress) -> Bool { address.path != "/" }

  /// Of repeated parameters the first counts.
  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    guard keys.isEmpty || isSigned(address) else {
      throw .denied("s: the signature is missing, or of another address or key")
    }
    var draft = ImgixDraft()
    draft.translation.isSigned = !keys.isEmpty
    var seen: Set<String> = []
    for (name, value) in address.query.queryItems() {
      let (name, value) = try Self.decoded(name, value)
      guard name == "auto" || seen.insert(name).inserted else { continue }
      // The words of `auto` add up; those of `fit` after the first are fallbacks without a face.
      let words = name == "auto" || name == "fit" ? value.split(separator: ",") : [value[...]]
      for word in name == "fit" ? words.prefix(1) : words[...] {
        try ImgixDraft.table.read(name, String(word), of: .imgix, into: &draft)
      }
    }
    try draft.finish()
    draft["url"] = try url(of: address.path)
    if let mark = draft.words["mark"] { draft["watermark"] = try url(of: mark) }
    return draft.translation
  }

  /// Returns a parameter without the base64 that `64` after its name announces.
  private static func decoded(
    _ name: String, _ value: String
  ) throws(DoorFault) -> (String, String) {
    let plain = String(name.dropLast(2))
    guard name.hasSuffix("64"), ImgixDraft.table[plain] != nil else { return (name, value) }
    guard let text = Base64URL.text(value) else {
      throw .invalid("\(name): the value is not base64url")
    }
    return (plain, text)
  }

  /// Returns whether a key signed an address: `s` is the last parameter, and not among the signed.
  private func isSigned(_ address: DoorAddress) -> Bool {
    let query = address.query[...]
    let end = query.utf8.lastIndex(of: UInt8(ascii: "&"))
    let item = end.map { query[query.utf8.index(after: $0)...] } ?? query
    guard item.hasPrefix("s=") else { return false }
    let message = address.path + (end.map { "?" + query[..<$0] } ?? "")
    return keys.map { HMAC.md5Hex(of: $0 + message.utf8) }.hasSignature(item.dropFirst(2))
  }

  private func url(of path: String) throws(DoorFault) -> String {
    let plain = path.drop { $0 == "/" }.percentDecoded
    return try sources.url(of: SourceRules.isWeb(plain) ? plain : path)
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    let isForbidden = fault.kind == .denied || fault.kind == .forbidden
    return answer(isForbidden ? 403 : 400, fault.reason, reason: fault.reason)
  }

  func status(of error: ImageError) -> (Int, String) {
    switch error.cause {
    case .expiredSignature, .sourceUnreachable, .sourceTLS, .forbiddenSource, .tooManyRedirects,
      .sourceError(400...499, _, _):
      (404, error.message)
    case .tooManyPixels, .tooManyFrames: (413, error.message)
    case .undecodable: (421, error.message)
    case .unsupportedFormat, .unsupportedKind: (422, error.message)
    default: (error.status, error.message)
    }
  }
}

private struct ImgixDraft: OptionDraft {
  var translation = DoorTranslation()
  /// The parameters whose meaning depends on others, as text and as numbers.
  var words: [String: String] = [:]
  var numbers: [String: Double] = [:]

  /// How fits are named here, and whether they enlarge.
  private static let fits = [
    "clip": (nil, true), "crop": ("cover", true), "facearea": ("cover", true),
    "clamp": ("contain", true), "fill": ("contain", true), "fillmax": ("contain", false),
    "max": (nil, false), "min": ("cover-down", false), "scale": ("fill", true),
  ]
  /// The clockwise degrees, and the flip after them, of each EXIF orientation.
  private static let turns = [
    (0, ""), (0, ""), (0, "h"), (180, ""), (0, "v"), (90, "h"), (90, ""), (90, "v"), (270, ""),
  ]

  /// Writes what depends on several parameters.
  mutating func finish() throws(DoorFault) {
    let fit = words["fit"] ?? "clip"
    var sides = numbers.filter { $0.key == "w" || $0.key == "h" }
    self["pad"] = try edges(&sides)
    try finishBox(fit, sides)
    if ["crop", "facearea", "min"].contains(fit) { try finishPosition(fit) }
    if let mask = words["mask"] { self["radius"] = try radius(mask, sides) }
    finishBackground(fills: Self.fits[fit]?.0 == "contain")
    finishTurn()
    self["watermark_position"] = words["mark-align"].map(Self.place)
    if words["mark"] == nil {
      for name in ["position", "scale", "opacity", "repeat"] { self["watermark_" + name] = nil }
    }
    if let trim = words["trim"] {
      let tolerance = trim == "auto" ? 10 : numbers["trim-tol"] ?? 1
      self["trim"] = tolerance.clamped(to: 1...255).written
      self["trim_color"] = trim == "color" ? words["trim-color"].map { "\($0.prefix(6))" } : nil
    }
    self["format"] = words["auto"] ?? self["format"] ?? "source"
    if self["format"] == "jpeg" { self["progressive"] = words["jpg-progressive"] ?? "1" }
    translation.expiry = numbers["expires"].map { UnixTime(seconds: Int($0)) }
  }

  private mutating func finishBox(_ fit: String, _ given: [String: Double]) throws(DoorFault) {
    var (name, enlarges) = Self.fits[fit] ?? (nil, true)
    let ratio = ["crop", "fill", "fillmax"].contains(fit) ? numbers["ar"] : nil
    for (side, other) in [("w", "h"), ("h", "w")] {
      let (most, least) = (numbers["max-" + side], numbers["min-" + side])
      if fit == "crop", given[side] == nil, self[side] == nil, most ?? least != nil {
        guard ratio == nil else { throw .unsupported("max-, min-: not together with ar") }
        // The other side is reached, and what then exceeds this one is cut off.
        (name, enlarges) = (nil, given[other] != nil)
        self[side] = most?.written
        self["min-" + side] = least?.written
        if most != nil { self["min-" + other] = given[other]?.written }
      } else if let length = given[side] {
        let limited = fit == "crop" ? min(max(length, least ?? 1), most ?? 8_192) : length
        self[side] = limited.written
      }
    }
    let count = ["w", "h"].count { self[$0] != nil }
    if count < 2, let ratio { self["ar"] = ratio.written }
    let hasBox = count > 0 || self["ar"] != nil
    self["fit"] = !hasBox || fit == "scale" && count == 1 ? nil : name
    self["enlarge"] = hasBox && enlarges ? "1" : nil
    self["scale"] = hasBox ? self["scale"] ?? "1" : "1"
  }

  /// The focal point's zoom cuts out a part around it, in which the point has another place.
  private mutating func finishPosition(_ fit: String) throws(DoorFault) {
    self["position"] = fit == "facearea" ? "faces" : words["crop"]
    if fit == "facearea", self["crop"] == nil {
      self["crop"] = "faces," + ((numbers["facepad"] ?? 1) / 2 - 0.5).clamped(to: 0...10).written
    }
    guard self["position"] == "focalpoint" else { return }
    var point = ["fp-x", "fp-y"].map { numbers[$0] ?? 0.5 }
    if let zoom = numbers["fp-z"], zoom > 1 {
      guard self["crop"] == nil else { throw .unsupported("fp-z: not together with rect") }
      let part = (1 / zoom).share
      self["crop"] = ([part, part, "fp"] + point.map(\.share)).joined(separator: ",")
      point = point.map { ($0 - min(max($0 - 0.5 / zoom, 0), 1 - 1 / zoom)) * zoom }
    }
    self["position"] = point.map(\.share).joined(separator: ",")
  }

  /// Returns what is around the image, by which the box shrinks.
  private func edges(_ sides: inout [String: Double]) throws(DoorFault) -> String? {
    let name = numbers["border"] == nil ? "pad" : "border"
    let edges = ["-top", "-right", "-bottom", "-left"].map {
      numbers[name + $0] ?? numbers[name] ?? 0
    }
    guard edges.contains(where: { $0 > 0 }) else { return nil }
    for (side, both) in [("w", edges[1] + edges[3]), ("h", edges[0] + edges[2])] {
      guard let length = sides[side] else { continue }
      guard length > both else { throw .unsupported("\(name): nothing remains of \(side)") }
      sides[side] = length - both
    }
    return edges.map(\.written).joined(separator: ",")
  }

  private func radius(_ mask: String, _ sides: [String: Double]) throws(DoorFault) -> String {
    if mask == "ellipse" { return mask }
    if let radii = words["corner-radius"] { return radii }
    guard let width = sides["w"], let height = sides["h"] else {
      throw .unsupported("mask: without corner-radius, corners need w and h")
    }
    return max(1, (min(width, height) / 5).rounded()).written
  }

  /// Pictor has one background: of the edges, of the box, of the mask, or behind the image.
  private mutating func finishBackground(fills: Bool) {
    let given = [
      words["border"], fills && words["fill"] != nil ? words["fill-color"] ?? "ffffff" : nil,
      words["mask"] != nil ? words["mask-bg"] : nil, words["bg"],
    ].compactMap { $0 }
    // White where the format has no alpha.
    let isSeen = fills || self["pad"] != nil || self["radius"] != nil
    self["background"] = given.first ?? (isSeen ? "ffffff00" : nil)
    if words["bg"] != nil { self["flatten"] = "1" }
    if Set(given).count > 1 { note("bg", .near("one background for edges, box, mask and image")) }
  }

  /// The orientation, the rotation and the flip become one turn and one flip.
  private mutating func finishTurn() {
    let rotation = Int(words["rot"] ?? "") ?? 0
    let (turn, flip) = Self.turns[Int(words["orient"] ?? "") ?? 0]
    if words["orient"] != nil { self["orient"] = "0" }
    // A flip before a quarter turn is the other one after it.
    let own = rotation % 180 == 0 ? flip : flip == "h" ? "v" : flip == "v" ? "h" : ""
    let flips = Set(words["flip"] ?? "").symmetricDifference(own)
    self["flip"] = flips.isEmpty ? nil : String(flips.sorted())
    self["rotate"] = (turn + rotation) % 360 == 0 ? nil : "\((turn + rotation) % 360)"
  }

  /// Returns the name of the place that words between commas say.
  static func place(_ text: String) -> String {
    let words = text.split(separator: ",").map { String($0) }
    let sides = [["left", "right"], ["top", "bottom"]].compactMap { axis in
      words.first { axis.contains($0) }
    }
    return sides.isEmpty ? "center" : sides.joined(separator: "-")
  }
}

extension ImgixDraft {
  private typealias Option = DoorOption<Self>
  private typealias Text = Reader<String?>

  private static let unread: [Option] = [
    Option(
      "high=0 shad=0 nr=0 nrs=0 htn=0 px=0 px=1 rot=0 bg-remove=false cs=srgb cs=strip", .exact),
    Option("faceindex fp-debug", .near("all faces count, and no marks")),
    Option("trim-md trim-sd trim-alpha trim-pad", .near("one tolerance, and no padding")),
    Option("fill=blur fill=gradient fill-max", .near("one colour, up to the box")),
    Option("border-radius border-radius-inner", .near("a border has square corners")),
    Option("nr nrs usmrad", .near("noise is not reduced; the sigma of usm is 2.5")),
    Option("auto=enhance auto=true auto=redeye", .near("not retouched")),
    Option("ch", .near("w and dpr count")), Option("cs", .near("sRGB without a profile")),
    Option("iptc=allow", .near("metadata is removed")),
    Option("loop interval skip fps reverse gif-q", .near("as in the source")),
    Option("mark-h mark-fit mark-pad mark-x mark-y", .near("at the edge, in its shape")),
    Option(
      """
      txt blend blend-color mark-rot mark-base high shad hue-set htn duotone lp-blur transparency \
      border-stroke-color border-stroke-size fill=gen bg-remove bg-replace upscale palette \
      object-removal-rect fm=jp2 fm=jxr fm=mp4 fm=webm fm=mp3 fm=blurhash video-generate
      """, .refused("nothing here draws, blends, styles or generates so")),
    Option("s iptc dpi rot-type svg-sanitize pdf-annotation", .ignored("no pixel differs")),
    Option(
      """
      duotone-alpha colors prefix faces grid-colors grid-size fill-gradient-cs \
      fill-gradient-linear fill-gradient-linear-direction fill-gradient-radial \
      fill-gradient-radial-radius fill-gradient-radial-x fill-gradient-radial-y fill-gradient-type \
      fill-gen-fallback fill-gen-neg-prompt fill-gen-pos fill-gen-prompt fill-gen-seed \
      bg-remove-add-shadow bg-remove-fallback bg-remove-fg-type bg-remove-semi-transparency \
      bg-remove-transparency-threshold bg-replace-fallback bg-replace-neg-prompt upscale-fallback \
      blend-align blend-alpha blend-crop blend-fit blend-h blend-mode blend-pad blend-size blend-w \
      blend-x blend-y video-gif-start video-gif-end video-gif-fps video-thumbnail-time txt-align \
      txt-clip txt-color txt-fit txt-font txt-lead txt-lig txt-line txt-line-color txt-pad \
      txt-shad txt-size txt-track txt-width txt-x txt-y
      """, .ignored("only of what is refused")),
  ]

  private static let color = Text.color(Colors.argb)
  private static let attends = "faces, else attention decides, not edges or objects"
  private static let finds = "frontal faces; their boxes differ"

  /// A word whose meaning depends on other parameters.
  private static func word(_ name: String, near: String? = nil, _ reader: Text) -> Option {
    let key = String(name.prefix { $0 != "=" })
    return Option(name, into: \.words[key], near: near, reader)
  }

  /// Numbers whose meaning depends on other parameters; whole if they are lengths.
  private static func numbers(_ names: String, _ range: ClosedRange<Double>) -> [Option] {
    names.split(separator: " ").map { String($0) }.map { name in
      Option(name) { given, draft throws(DoorFault) in
        let number = try given[0].number(in: range)
        draft.numbers[name] = range.upperBound > 100 ? number.rounded() : number
      }
    }
  }

  /// A number that changes nothing at 0; `part` of it is added to `base`.
  private static func scaled(
    _ base: Double = 1, by part: Double = 0.01, within limits: ClosedRange<Double> = 0...10
  ) -> Text {
    Text { text throws(DoorFault) in
      let number = try text.number(in: (base == 0 ? 0 : -10_000)...10_000)
      return number == 0 ? nil : (base + number * part).clamped(to: limits).written
    }
  }

  /// A side: pixels, of which a result has 8,192 at most, or a share of the source's.
  private static func side(_ name: String, _ alias: String) -> Option {
    Option(name + " " + alias) { given, draft throws(DoorFault) in
      let number = try given[0].number(in: 0.0001...1_000_000)
      let isShare = number <= 1 && given[0].contains(".")
      draft[name] = isShare ? (number * 100).written + "%" : nil
      draft.numbers[name] = isShare ? nil : min(number.rounded(), 8_192)
    }
  }

  /// Reads x,y,w,h: pixels, shares, or names of places and of the whole side.
  private static let rect = Text { text throws(DoorFault) in
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { String($0) }
    guard parts.count == 4 else { throw .invalid("x,y,w,h") }
    let names = ["left", "center", "right", "top", "middle", "bottom", "full"]
    var lengths: [String] = []
    for part in parts {
      let least = lengths.count < 2 || names.contains(part) ? 0 : 0.0001
      let number = try (names.contains(part) ? "0" : part).number(in: least...1_000_000)
      lengths.append(part.contains(".") && number <= 1 ? number.share : number.rounded().written)
    }
    guard parts.contains(where: { names.contains($0) }) else {
      return lengths.joined(separator: ",")
    }
    let place = zip(parts, ["left", "top"]).map { names.contains($0) ? $0 : $1 }
    return (lengths[2...] + [Self.place(place.joined(separator: ","))] + lengths[..<2])
      .joined(separator: ",")
  }

  static let table = OptionTable(
    read + unread + numbers("fp-x fp-y", 0...1) + numbers("fp-z", 1...100)
      + numbers("max-w max-h min-w min-h", 1...8_192) + numbers("expires", 0...253_402_300_799)
      + numbers(
        """
        pad pad-top pad-right pad-bottom pad-left border-top border-right border-bottom \
        border-left trim-tol facepad
        """, 0...8_192)
      + ["bg", "fill-color", "mask-bg", "trim-color"].map { word($0, color) })

  private static let read: [Option] = [
    side("w", "width"), side("h", "height"),
    Option("dpr", to: "scale", .number(0.01...10, within: 0.01...5)),
    Option("ar") { given, draft throws(DoorFault) in
      let parts = given[0].split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw .invalid("width:height") }
      let height = try parts[1].number(in: 0.1...1_000)
      let width = try parts[0].number(in: 0.1...1_000)
      draft.numbers["ar"] = (width / height).clamped(to: 0.001...1_000)
    },
    word("fit=clamp", near: "padded with the background", .text),
    word("fit=facearea", near: finds, .text), word("fit=fillmax", near: "pads a box only", .text),
    word("fit", .choice("clip crop fill max min scale")),
    word("fill", .choice("solid")),
    word("crop=faces", near: finds, .text),
    Option("crop") { given, draft throws(DoorFault) in
      // The first word decides: a place, or a way whose fallbacks are the others.
      let first = String(given[0].prefix { $0 != "," })
      let isPlace = ["left", "right", "top", "bottom", "center", ""].contains(first)
      let isWay = isPlace || first == "focalpoint" || first == "entropy"
      draft.words["crop"] = isPlace ? place(given[0]) : isWay ? first : "faces"
      if !isWay { draft.note("crop", .near(attends)) }
    },
    Option("rect", to: "crop", rect), word("flip", .choice("h v hv vh=hv")),
    word("orient", .choice("0 1 2 3 4 5 6 7 8 90=6 180=3 270=8")),
    Option("rot", .near("counter-clockwise; w and h count the turned image")) {
      given, draft throws(DoorFault) in
      guard let turn = ["90": "270", "180": "180", "270": "90"][given[0]] else {
        throw .unsupported("90, 180 or 270 only")
      }
      draft.words["rot"] = turn
    },
    word("trim", near: "one tolerance", .choice("auto color alpha colorunlessalpha=color")),
    Option("border", .near("the image shrinks by it")) { given, draft throws(DoorFault) in
      let width = given[0].prefix { $0 != "," }
      draft.words["border"] = try color.read(String(given[0].dropFirst(width.count + 1)))
      draft.numbers["border"] = Double(try width.whole(in: 0...8_192))
    },
    word("mask=ellipse", .text),
    Option("corner-radius") { given, draft throws(DoorFault) in
      let texts = given[0].split(separator: ",", omittingEmptySubsequences: false)
      let radii = try texts.map { text throws(DoorFault) in try text.whole(in: 0...8_192) }
      guard radii.count == 1 || radii.count == 4 else { throw .invalid("1 or 4 radii") }
      let isSeen = radii.contains { $0 > 0 }
      draft.words["corner-radius"] =
        isSeen ? radii.map { "\($0)" }.joined(separator: ",") : nil
    },
    Option("mask") { given, draft throws(DoorFault) in
      guard given[0] == "corners" else { throw .unsupported("images are no masks here") }
      draft.words["mask"] = "corners"
    },
    Option("bri exp", to: "brightness", near: "a factor of lightness", scaled()),
    Option("con", to: "contrast", near: "the contrast() of CSS", scaled()),
    Option("gam", to: "gamma", near: "1 + n/100", scaled(within: 0.1...10)),
    Option("hue", near: "turned in LCh", .degrees(-1e6...1e6)),
    Option("sat vib", to: "saturation", near: "a factor of all chroma", scaled()),
    Option(
      "sharp", to: "sharpen", near: "a tenth is the sigma", scaled(0, by: 0.1, within: 0.1...10)),
    Option("usm", to: "sharpen", near: "one strength", scaled(0, by: 1, within: 0.1...2.5)),
    Option("blur", near: "a tenth is the sigma", scaled(0, by: 0.1, within: 0.3...250)),
    Option("sepia", near: "the sepia() of CSS", scaled(0, within: 0...1)),
    Option("monochrome", to: "grayscale", near: "gray for each colour", .always("1")),
    word("auto=format", .always("auto")),
    Option("auto=compress", to: "q_jpeg", near: "a JPEG quality of 45", .always("45")),
    Option("fm=json", into: \.translation.isDescription, near: "the form of /info", .always(true)),
    Option("fm=png8", to: "format", near: "not always a palette", .always("png")),
    Option("fm", to: "format", .choice("jpg=jpeg jpeg pjpg=jpeg png png32=png gif webp avif jxl")),
    Option("q", to: "quality", .whole(1...100)), Option("px", to: "pixelate", .whole(2...65_535)),
    Option("chromasub=422", to: "chroma", near: "4:4:4", .always("444")),
    Option("chromasub", to: "chroma", .choice("444 420")),
    Option("lossless", .flag), Option("invert", to: "negate", .flag),
    Option("colorquant", to: "colours", near: "2, 4, 16 or 256", .whole(2...256)),
    word("jpg-progressive", .choice("true=1 1 false=0 0")),
    Option("dl") { given, draft throws(DoorFault) in
      draft["download"] = "1"
      let name = given[0][..<(given[0].lastIndex(of: ".") ?? given[0].endIndex)]
      let isPlain = name.utf8.allSatisfy { $0 >= 0x20 && !"/\\\u{7f}".utf8.contains($0) }
      guard isPlain, name.utf8.count <= 100 else { throw .invalid("1 to 100 characters") }
      draft["filename"] = name.isEmpty ? nil : String(name)
    },
    Option("rasterize-bypass", to: "pass", .choice("true=vector 1=vector false= 0=")),
    Option("frame page") { given, draft throws(DoorFault) in
      draft["frame"] = "\(try given[0].whole(in: 1...100_000) - 1)"
    },
    word("mark", near: "never larger than the result", .text), word("mark-align", .text),
    Option("mark-alpha", to: "watermark_opacity", scaled(0, within: 0.01...1)),
    Option(
      "mark-scale", to: "watermark_scale", near: "of the width", scaled(0, within: 0.0001...1)),
    Option("mark-w", to: "watermark_scale", .number(0.0001...1)),
    Option("mark-tile", to: "watermark_repeat", .choice("grid=1")),
  ]
}
