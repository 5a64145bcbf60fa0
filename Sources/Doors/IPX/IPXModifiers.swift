// IPXModifiers: the modifiers of ipx, which are sharp's operations.

import Core

/// What the modifiers of an address add up to.
struct IPXDraft: OptionDraft {
  var translation = DoorTranslation()
  private var width: Int?
  private var height: Int?
  private var enlarges = false
  private var isUpright = false
  private var isAnimated = false
  private var hasFormat = false
  private var flips = false
  private var flops = false
  /// ipx clamps what is asked for to this.
  private static let longestSide = 8_192

  /// Returns the translation, with what depends on several modifiers.
  func finished() -> DoorTranslation {
    var result = translation
    result["scale"] = "1"
    // sharp turns by EXIF only if asked to.
    if !isUpright { result["orient"] = "0" }
    if let longest = [width, height].compactMap({ $0 }).max() {
      let ratio = min(1, Double(Self.longestSide) / Double(longest))
      func pixels(_ side: Int) -> String { "\(max(1, Int((Double(side) * ratio).rounded())))" }
      result["w"] = width.map(pixels)
      result["h"] = height.map(pixels)
    }
    let fit = result["fit"] ?? "cover"
    switch fit {
    case _ where width == nil || height == nil, "inside": result["fit"] = nil
    case "cover" where !enlarges: result["fit"] = "cover-down"
    default: result["fit"] = fit
    }
    if width != nil || height != nil {
      if enlarges {
        result["enlarge"] = "1"
      } else if result["fit"] == "contain" || result["fit"] == "fill" || fit == "inside" {
        result.notes.append(
          DoorNote("fit", .near("ipx shrinks the box into a smaller source; without enlarge here")))
      }
    }
    if !hasFormat {
      result["format"] = "source"
      result["pass"] = "vector"
    } else if !isAnimated, result["format"] != "gif" {
      result["animated"] = "0"
    }
    if flips || flops { result["flip"] = (flops ? "h" : "") + (flips ? "v" : "") }
    let fills = result["pad"] != nil || result["fit"] == "contain" || result["rotate"] != nil
    if fills || result["format"] == "jpeg", result["background"] == nil {
      result["background"] = "000000"
    }
    return result
  }
}

extension IPXDraft {
  static let options = OptionIndex(table)

  private static let sides = 1...1_000_000
  private static let factor = Argument.decimal(0...1_000_000, neutral: 1)
  private static let places = Argument.choice(
    "top north=top 1=top right-top northeast=right-top 5=right-top right east=right 2=right "
      + "right-bottom southeast=right-bottom 6=right-bottom bottom south=bottom 3=bottom "
      + "left-bottom southwest=left-bottom 7=left-bottom left west=left 4=left left-top "
      + "northwest=left-top 8=left-top center= centre= 0= entropy 16=entropy attention "
      + "17=attention")

  private static let hue = Argument.degrees(-999_999...999_999, steps: 1)

  private static let side: @Sendable (String) throws(OptionFault) -> Int = {
    text throws(OptionFault) in try Argument.int(text, in: sides)
  }

  /// Reads the first four arguments.
  private static func four(_ arguments: [String], in range: ClosedRange<Int>)
    throws(OptionFault) -> [Int]
  {
    try Argument.ints(arguments.prefix(4).joined(separator: "_"), "_", 4, in: range)
  }

  /// The modifiers, in the order of ipx' own page.
  static let table: [DoorOption<IPXDraft>] = [
    DoorOption("width", "w", into: \.width, side),
    DoorOption("height", "h", into: \.height, side),
    DoorOption("resize", "s") { arguments, draft throws(OptionFault) in
      let parts = (arguments.first ?? "").split(separator: "x", omittingEmptySubsequences: false)
      guard (1...2).contains(parts.count), let last = parts.last else {
        throw OptionFault("WIDTHxHEIGHT")
      }
      draft.width = try Argument.int(parts[0], in: sides)
      draft.height = try Argument.int(last, in: sides)
    },
    DoorOption("kernel=lanczos3"),
    DoorOption("kernel", standing: .ignored("all is resized with lanczos3")),
    DoorOption(
      "fit", to: "fit",
      Argument.choice("contain cover= fill inside outside")),
    DoorOption("position", "pos", to: "position") { text throws(OptionFault) in
      try places(String(text.map { $0 == " " ? "-" : $0 }))
    },
    DoorOption("trim", to: "trim") { text throws(OptionFault) in
      let threshold = text.isEmpty ? 10 : try Argument.number(text, in: 0...1_000_000)
      return threshold == 0 ? nil : "\(min(255, max(1, Int(threshold.rounded()))))"
    },
    DoorOption("extend") { arguments, draft throws(OptionFault) in
      let edges = try four(arguments, in: 0...10_000)
      let with = arguments.count > 4 ? arguments[4] : "background"
      guard ["background", "copy", "repeat", "mirror"].contains(with) else {
        throw OptionFault("background, copy, repeat or mirror")
      }
      guard with == "background" else { throw .unsupported("edges have the background only") }
      if edges.contains(where: { $0 > 0 }) {
        draft.translation["pad"] = edges.map { "\($0)" }.joined(separator: ",")
      }
    },
    DoorOption("background", "b", to: "background", Argument.color(Colors.css)),
    DoorOption("extract", "crop") { arguments, draft throws(OptionFault) in
      let area = try four(arguments, in: 0...1_000_000)
      guard area[2] > 0, area[3] > 0 else { throw OptionFault("a width and a height above 0") }
      draft.translation["crop"] = area.map { "\($0)" }.joined(separator: ",")
    },
    DoorOption(
      "format=heif", "format=heic", "f=heif", "f=heic",
      standing: .refused("HEIC is read, and not written")),
    DoorOption(
      "format=auto", "f=auto",
      standing: .near("imaging.auto_formats decides; else JPEG, or PNG with alpha")
    ) { _, draft throws(OptionFault) in
      (draft.hasFormat, draft.translation["format"]) = (true, "auto")
    },
    DoorOption("format", "f") { arguments, draft throws(OptionFault) in
      // An unknown format is the source's, and SVG stays one.
      let formats = [
        "jpg": "jpeg", "jpeg": "jpeg", "png": "png", "webp": "webp", "avif": "avif", "gif": "gif",
        "tiff": "tiff",
      ]
      draft.translation["format"] = formats[arguments.first ?? ""]
      draft.hasFormat = draft.translation["format"] != nil
    },
    DoorOption("quality", "q", to: "quality", Argument.whole(1...100)),
    DoorOption("rotate=", "autoorient", into: \.isUpright) { _ throws(OptionFault) in true },
    DoorOption(
      "rotate=90", "rotate=180", "rotate=270", to: "rotate", Argument.choice("90 180 270")),
    DoorOption(
      "rotate", to: "rotate",
      standing: .near("by quarters only, before the resize: w and h count the turned image"),
      Argument.quarters(-3_600...3_600)),
    DoorOption("enlarge", into: \.enlarges, Argument.isOn),
    DoorOption("flip", into: \.flips, Argument.isOn),
    DoorOption("flop", into: \.flops, Argument.isOn),
    DoorOption(
      "sharpen=", to: "sharpen", standing: .near("a sigma of 0.5"),
      Argument.always("0.5")),
    DoorOption("sharpen") { arguments, draft throws(OptionFault) in
      let sigma = try Argument.number(arguments[0], in: 0.000_001...10)
      draft.translation["sharpen"] = Argument.written(max(0.1, sigma))
      if arguments.count > 1 {
        let standing = DoorStanding.near("one strength for flat and jagged areas")
        draft.translation.notes.append(DoorNote("sharpen", standing))
      }
    },
    DoorOption(
      "blur=", to: "blur", standing: .near("a sigma of 0.5"), Argument.always("0.5")),
    DoorOption("blur", to: "blur", Argument.decimal(0.3...1_000, within: 0.3...250)),
    DoorOption("gamma", to: "gamma", standing: .near("after the resize only; one gamma")) {
      text throws(OptionFault) in
      text.isEmpty ? "2.2" : Argument.written(try Argument.number(text, in: 1...3))
    },
    DoorOption("negate", to: "negate", standing: .near("alpha stays"), Argument.flag),
    DoorOption("tint", to: "tint", standing: .near("the colour lies half transparent on the image"))
    { text throws(OptionFault) in
      try Argument.color(Colors.css)(text).map { $0.prefix(6) + "80" }
    },
    DoorOption("grayscale", "greyscale", to: "grayscale", Argument.flag),
    DoorOption("flatten", standing: .near("formats with alpha keep it")),
    DoorOption("modulate") { arguments, draft throws(OptionFault) in
      if arguments.count > 3, try Argument.number(arguments[3], in: -1_000...1_000) != 0 {
        throw .unsupported("lightness is not added here")
      }
      let names = [("brightness", factor), ("saturation", factor), ("hue", hue)]
      for (argument, (name, read)) in zip(arguments, names) where !argument.isEmpty {
        draft.translation[name] = try read(argument)
      }
    },
    DoorOption("brightness", to: "brightness", factor),
    DoorOption("saturation", to: "saturation", factor),
    DoorOption("hue", to: "hue", hue),
    DoorOption(
      "median", "dilate", "erode", "clahe", "unflatten", "normalize", "normalise",
      "threshold", "linear", "lightness", "opacity",
      standing: .refused("/image has no such effect")),
    DoorOption("animated", "a", into: \.isAnimated) { _ throws(OptionFault) in true },
  ]
}
