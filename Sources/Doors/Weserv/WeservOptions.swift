// WeservOptions: the parameters of weserv.

import Core

/// What the parameters of an address add up to.
struct WeservDraft: OptionDraft {
  var translation = DoorTranslation()
  private var density: String?
  private var fit: String?
  private var enlarges = true
  private var isFocal = false
  private var focus: [String: Double] = [:]
  /// The rectangle crop: x, y, w and h.
  private var crop: [String: Int] = [:]
  private var cropsFirst = false
  private var mask: String?
  private var frames = 1
  private var backgrounds: [String: String] = [:]
  private var trimColor: String?
  private var flips = false
  private var flops = false

  /// Returns the translation, with what depends on several parameters.
  func finished() throws(OptionFault) -> DoorTranslation {
    var result = translation
    let (width, height) = (result["w"], result["h"])
    let fit = fit ?? "inside"
    let hasBox = width != nil || height != nil
    result["scale"] = hasBox ? density ?? "1" : "1"
    if hasBox {
      result["fit"] = fit == "inside" ? nil : fit
      if enlarges { result["enlarge"] = "1" }
    }
    if isFocal {
      result["position"] = ["fpx", "fpy"].map { Argument.share(focus[$0] ?? 0.5) }.joined(
        separator: ",")
    }
    if result["format"] == nil { result["format"] = "source" }
    if result["frame"] == nil, frames == 1 { result["animated"] = "0" }
    if flips || flops { result["flip"] = (flops ? "h" : "") + (flips ? "v" : "") }
    if result["trim"] != nil { result["trim_color"] = trimColor.map { String($0.prefix(6)) } }
    try finishCrop(&result)
    try finishMask(&result)
    finishBackground(&result)
    return result
  }

  /// The rectangle is of the result; it is one of the source only if nothing is resized before.
  private func finishCrop(_ result: inout DoorTranslation) throws(OptionFault) {
    guard !crop.isEmpty else { return }
    let isResized = result["w"] != nil || result["h"] != nil || result["trim"] != nil
    guard cropsFirst || !isResized else {
      throw .unsupported("cx, cy, cw, ch: after a resize; with precrop they work")
    }
    let rest = Selection.cropRange.upperBound
    let sides = [crop["x"] ?? 0, crop["y"] ?? 0, crop["w"] ?? rest, crop["h"] ?? rest]
    result["crop"] = sides.map { "\($0)" }.joined(separator: ",")
  }

  private func finishMask(_ result: inout DoorTranslation) throws(OptionFault) {
    guard let mask else { return }
    let isSquare =
      result["w"] != nil && result["w"] == result["h"] && enlarges
      && ["cover", "contain", "fill"].contains(fit ?? "")
    guard isSquare else {
      throw .unsupported("mask: \(mask) needs w = h with fit=cover, contain or fill, without we")
    }
    result["radius"] = "max"
  }

  /// Pictor has one background: of the turn, of the box, of the mask, or behind the image.
  private func finishBackground(_ result: inout DoorTranslation) {
    let used = [
      result["fit"] == "contain" ? "cbg" : nil,
      mask != nil ? "mbg" : nil,
    ].compactMap { $0 }
    let given = (used + ["bg"]).compactMap { backgrounds[$0] }
    if let color = given.first {
      result["background"] = color
      if Set(given).count > 1 {
        result.notes.append(DoorNote("bg", .near("one background for cbg, rbg, mbg and bg")))
      }
    } else if !used.isEmpty {
      result["background"] = "00000000"
    } else if result["format"] == "jpeg" {
      result["background"] = "000000"
    }
  }
}

extension WeservDraft {
  static let options = OptionIndex(table)

  private static let color = Argument.color(Colors.argb)
  private static let lightness = DoorStanding.near("a factor of the lightness, not of each channel")

  /// Reads pixels, or a share of the source's side.
  private static let side: ArgumentReader = { text throws(OptionFault) in
    guard text.hasSuffix("%") else { return "\(try Argument.int(text, in: Argument.sides))" }
    return Argument.written(try Argument.number(text.dropLast(), in: 0.01...100)) + "%"
  }

  private static let factor = Argument.decimal(0...1_000, neutral: 1)

  /// Reads −100 to 100 as a factor.
  private static let percent: ArgumentReader = { text throws(OptionFault) in
    let number = try Argument.number(text, in: -100...100)
    return number == 0 ? nil : Argument.written(1 + number / 100)
  }

  private static let hue = Argument.degrees(-1e9...1e9, steps: 1)

  private static let share: @Sendable (String) throws(OptionFault) -> Double? = {
    text throws(OptionFault) in try Argument.number(text, in: 0...1)
  }

  private static func pixels(from least: Int) -> @Sendable (String) throws(OptionFault) -> Int? {
    { text throws(OptionFault) in try Argument.int(text, in: least...100_000) }
  }

  /// Reads the places of `a`, also in their old forms: letters, `crop-X-Y` and `focal-X-Y` in
  /// percent.
  private mutating func align(_ text: String) throws(OptionFault) {
    let parts = text.split(separator: "-").map { String($0) }
    if parts.count == 3, parts[0] == "crop" || parts[0] == "focal" {
      focus["fpx"] = try Argument.number(parts[1], in: 0...100) / 100
      focus["fpy"] = try Argument.number(parts[2], in: 0...100) / 100
      isFocal = true
    } else if text == "focal" {
      isFocal = true
    } else {
      translation["position"] = try Self.places(text)
    }
  }

  private static let places = Argument.choice(
    "center= c= top t=top right r=right bottom b=bottom left l=left top-left=left-top tl=left-top "
      + "bottom-left=left-bottom bl=left-bottom bottom-right=right-bottom br=right-bottom "
      + "top-right=right-top tr=right-top entropy attention")

  /// Reads one day to one year.
  private static let seconds: ArgumentReader = { text throws(OptionFault) in
    let units = ["d": 1, "w": 7, "M": 30, "y": 365]
    guard let unit = text.last.flatMap({ units[String($0)] }),
      let count = try? Argument.int(text.dropLast(), in: 1...365), count * unit <= 365
    else { throw OptionFault("1d to 1y, in d, w, M or y") }
    return "\(count * unit * 86_400)"
  }

  /// The parameters, in the order of weserv's quick reference.
  static let table: [DoorOption<WeservDraft>] = [
    DoorOption("w", to: "w", side),
    DoorOption("h", to: "h", side),
    DoorOption("dpr", into: \.density, Argument.decimal(1...8)),
    DoorOption("fit", into: \.fit, Argument.choice("inside outside cover fill contain")),
    DoorOption("t") { arguments, draft throws(OptionFault) in
      let fits = "fit=inside fitup=inside square=cover squaredown=cover absolute=fill"
      draft.fit = try Argument.choice(fits + " letterbox=contain")(arguments[0])
      draft.enlarges = arguments[0] != "fit" && arguments[0] != "squaredown"
    },
    DoorOption("cbg", into: \.backgrounds["cbg"], color),
    DoorOption("we", into: \.enlarges) { text throws(OptionFault) in try !Argument.isOn(text) },
    DoorOption("a") { arguments, draft throws(OptionFault) in try draft.align(arguments[0]) },
    DoorOption("fpx", into: \.focus["fpx"], share),
    DoorOption("fpy", into: \.focus["fpy"], share),
    DoorOption("cx", into: \.crop["x"], pixels(from: 0)),
    DoorOption("cy", into: \.crop["y"], pixels(from: 0)),
    DoorOption("cw", into: \.crop["w"], pixels(from: 1)),
    DoorOption("ch", into: \.crop["h"], pixels(from: 1)),
    DoorOption("crop") { arguments, draft throws(OptionFault) in
      let numbers = try Argument.ints(arguments[0], ",", 4, in: 0...100_000)
      guard numbers[0] > 0, numbers[1] > 0 else { throw OptionFault("a size above 0") }
      draft.crop = ["w": numbers[0], "h": numbers[1], "x": numbers[2], "y": numbers[3]]
    },
    DoorOption("precrop", into: \.cropsFirst, Argument.isOn),
    DoorOption("trim", to: "trim") { text throws(OptionFault) in
      text.isEmpty ? "10" : "\(try Argument.int(text, in: 1...254))"
    },
    DoorOption("tbg", into: \.trimColor, color),
    DoorOption(
      "mask=triangle", "mask=triangle-180", "mask=pentagon", "mask=pentagon-180", "mask=hexagon",
      "mask=square", "mask=star", "mask=heart", standing: .refused("only a circle or an ellipse")),
    DoorOption("mask", "shape", into: \.mask, Argument.choice("circle ellipse")),
    DoorOption("mtrim", "strim", standing: .ignored("no mask that is built leaves an edge")),
    DoorOption("mbg", into: \.backgrounds["mbg"], color),
    DoorOption("flip", into: \.flips, Argument.isOn),
    DoorOption("flop", into: \.flops, Argument.isOn),
    DoorOption("ro="),
    DoorOption("ro=90", "ro=180", "ro=270", to: "rotate", Argument.choice("90 180 270")),
    DoorOption(
      "ro", to: "rotate",
      standing: .near("by quarters only, before the resize: w and h count the turned image"),
      Argument.quarters(-1e9...1e9)),
    DoorOption("rbg", into: \.backgrounds["rbg"], color),
    DoorOption(
      "bg", into: \.backgrounds["bg"], standing: .near("formats with alpha keep it"), color),
    DoorOption(
      "blur=", to: "blur", standing: .near("a sigma of 0.5"), Argument.always("0.5")),
    DoorOption("blur", to: "blur", Argument.decimal(0...100, within: 0.3...100, neutral: 0)),
    DoorOption("bri", to: "brightness", standing: lightness, percent),
    DoorOption("con", to: "contrast", percent),
    DoorOption("filt=duotone", standing: .refused("two colours are not mapped here")),
    DoorOption("start", "stop", standing: .ignored("only of filt=duotone")),
    DoorOption("filt=greyscale", to: "grayscale", Argument.always("1")),
    DoorOption(
      "filt=sepia", to: "sepia", standing: .near("the sepia() of CSS"),
      Argument.always("1")),
    DoorOption("filt=negate", to: "negate", Argument.always("1")),
    DoorOption("filt") { _, _ throws(OptionFault) in throw OptionFault("a filter") },
    DoorOption("gam", to: "gamma") { text throws(OptionFault) in
      text.isEmpty ? "2.2" : Argument.written(try Argument.number(text, in: 1...3))
    },
    DoorOption("mod") { arguments, draft throws(OptionFault) in
      let parts = arguments[0].split(separator: ",", omittingEmptySubsequences: false)
      guard (1...3).contains(parts.count) else { throw OptionFault("brightness,saturation,hue") }
      let readers = [factor, factor, hue]
      var found: [String?] = []
      for (part, reader) in zip(parts, readers) { found.append(try reader(String(part))) }
      for (name, value) in zip(["brightness", "saturation", "hue"], found) {
        draft.translation[name] = value
      }
    },
    DoorOption("sat", to: "saturation", factor),
    DoorOption("hue", to: "hue", hue),
    DoorOption(
      "sharp=", "sharp=true", "sharp=1", to: "sharpen", standing: .near("a sigma of 0.5"),
      Argument.always("0.5")),
    DoorOption("sharp", to: "sharpen", standing: .near("one strength for flat and jagged areas")) {
      text throws(OptionFault) in
      // The old form is flat,jagged,sigma.
      let sigma = text.split(separator: ",").last ?? ""
      return Argument.written(max(0.1, try Argument.number(sigma, in: 0.000001...10)))
    },
    DoorOption("sharpf", "sharpj", standing: .near("one strength for flat and jagged areas")),
    DoorOption("tint", to: "tint", standing: .near("the colour lies half transparent on the image"))
    { text throws(OptionFault) in
      try color(text).map { $0.prefix(6) + "80" }
    },
    DoorOption(
      "af", "l", "fsol", standing: .ignored("of the encoder or decoder; no pixel differs")),
    DoorOption("ll", to: "lossless", Argument.flag),
    DoorOption("encoding=base64", standing: .refused("a data URL is text; here are images only")),
    DoorOption(
      "maxage", to: "maxage", standing: .near("at most the source's lifetime"), seconds),
    DoorOption(
      "default", "errorredirect",
      standing: .near("a failure is answered as JSON; fallbacks hold the operator's images")),
    DoorOption("filename", to: "filename") { text throws(OptionFault) in
      guard !text.isEmpty, text.utf8.count <= 255, text.isPlain(with: "") else {
        throw OptionFault("letters and digits")
      }
      return text
    },
    DoorOption("il", to: "progressive", Argument.flag),
    DoorOption("n=1"),
    DoorOption("n=-1", into: \.frames) { _ throws(OptionFault) in 0 },
    DoorOption("n", into: \.frames, standing: .near("all frames")) { text throws(OptionFault) in
      try Argument.int(text, in: 1...100_000)
    },
    DoorOption("loop", "delay", standing: .near("as in the source")),
    DoorOption(
      "output=json", into: \.translation.isDescription,
      standing: .near("the description has the form of /info")
    ) { _ throws(OptionFault) in true },
    DoorOption(
      "output", to: "format",
      Argument.choice("jpg=jpeg jpeg png gif tiff tif=tiff webp avif")),
    DoorOption("page=-1", standing: .ignored("the largest page of an icon is used")),
    DoorOption("page=-2", standing: .near("the largest page of an icon is used")),
    DoorOption("page", to: "frame", Argument.whole(0...100_000)),
    DoorOption("q", to: "quality", Argument.whole(1...100)),
  ]
}
