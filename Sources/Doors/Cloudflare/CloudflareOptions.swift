// CloudflareOptions: the options of Cloudflare's image transformations.

import Core

/// What the options of an address add up to.
struct CloudflareDraft: OptionDraft {
  var translation = DoorTranslation()
  private var scale = 1.0
  private var fit: String?
  private var flip: String?
  /// Cloudflare's `compression`.
  private var fast: String?
  /// Pixels cut off, by side; or the sides of what is kept.
  private var cut: [String: Int] = [:]

  /// How the fits are named here, and whether they enlarge.
  private static let fits = [
    "contain": (nil, true), "cover": ("cover", true), "crop": ("cover", false),
    "aspect-crop": ("cover-down", false), "pad": ("contain", true), "squeeze": ("fill", true),
  ]

  /// Returns the translation, with what depends on several options.
  func finished() throws(OptionFault) -> DoorTranslation {
    var result = translation
    result["scale"] = Argument.written(scale)
    // SVG is never rendered.
    result["pass"] = "vector"
    if let fit, let (name, enlarges) = Self.fits[fit] {
      result["fit"] = name
      result["enlarge"] = enlarges ? "1" : nil
    }
    switch result["format"] {
    case nil: result["format"] = "source"
    case "auto" where fast != nil, "avif" where fast != nil, "webp" where fast != nil,
      "baseline-jpeg":
      result["format"] = "jpeg"
    case "jpeg": result["progressive"] = "1"
    case "webp" where result["quality"] == "100": result["lossless"] = "1"
    default: break
    }
    if result["quality"] == nil { (result["q_jpeg"], result["q_webp"]) = ("85", "85") }
    if flip != "hv", result["rotate"] == "90" || result["rotate"] == "270" {
      // Cloudflare flips before it turns.
      result["flip"] = flip.map { $0 == "h" ? "v" : "h" }
    } else {
      result["flip"] = flip
    }
    if cut.values.contains(where: { $0 > 0 }) { result["crop"] = try crop(result) }
    return result
  }

  /// Returns the part that a trim keeps.
  private func crop(_ result: DoorTranslation) throws(OptionFault) -> String {
    guard cut["right", default: 0] == 0, cut["bottom", default: 0] == 0 else {
      throw .unsupported("trim: cutting right and bottom needs the source's size")
    }
    guard result["rotate"] == nil, flip == nil else {
      throw .unsupported("trim: not together with rotate or flip")
    }
    // Without a width or a height, up to the edge: more than any source has.
    let rest = Selection.cropRange.upperBound
    let sides = [("left", 0), ("top", 0), ("width", rest), ("height", rest)]
    return sides.map { side, other in
      "\(cut[side].map { Int((Double($0) * scale).rounded()) } ?? other)"
    }.joined(separator: ",")
  }
}

extension CloudflareDraft {
  static let options = OptionIndex(table)

  private static let size = Argument.whole(Argument.sides)
  private static let sides = 0...100_000

  /// Reads a factor; 0 changes nothing.
  private static let factor = Argument.decimal(0...1_000, neutral: 0, 1)

  private static func trim(_ side: String) -> DoorOption<CloudflareDraft> {
    DoorOption("trim." + side) { arguments, draft throws(OptionFault) in
      draft.cut[side] = try Argument.int(
        arguments[0], in: side == "width" || side == "height" ? 1...100_000 : sides)
    }
  }

  /// The options, as their page has them.
  static let table: [DoorOption<CloudflareDraft>] = [
    DoorOption("anim", to: "animated", Argument.choice("true= false=0")),
    DoorOption("background", to: "background", Argument.color(Colors.css)),
    DoorOption(
      "blur", to: "blur", standing: .near("the radius is taken as the sigma"),
      Argument.decimal(0...250, within: 0.3...250, neutral: 0)),
    DoorOption(
      "border", "border.color", "border.width", "border.top", "border.right", "border.bottom",
      "border.left", standing: .refused("of Workers only; /image has pad")),
    DoorOption("brightness", to: "brightness", factor),
    DoorOption(
      "compression", into: \.fast, standing: .near("JPEG for auto, AVIF and WebP"),
      Argument.choice("fast")),
    DoorOption("contrast", to: "contrast", factor),
    DoorOption("dpr", into: \.scale) { text throws(OptionFault) in
      try Argument.number(text, in: 0.01...10)
    },
    DoorOption(
      "fit=crop", into: \.fit, standing: .near("a source larger on one side only is cropped"),
      Argument.always("crop")),
    DoorOption("fit=scale-up", standing: .refused("nothing here only enlarges")),
    DoorOption(
      "fit", into: \.fit, Argument.choice("scale-down= contain cover aspect-crop pad squeeze")),
    DoorOption("flip", into: \.flip, Argument.choice("h v hv vh=hv")),
    DoorOption(
      "format=json", "f=json", into: \.translation.isDescription,
      standing: .near("the description has the form of /info")
    ) { _ throws(OptionFault) in true },
    DoorOption(
      "format", "f", to: "format", Argument.choice("auto avif webp jpeg baseline-jpeg png")),
    DoorOption("gamma", to: "gamma", Argument.decimal(0...1_000, within: 0.1...10, neutral: 0, 1)),
    DoorOption(
      "gravity=auto", "g=auto", to: "position", standing: .near("another measure of attention"),
      Argument.always("attention")),
    DoorOption(
      "gravity=face", "g=face", to: "position",
      standing: .near("attention decides, not faces"), Argument.always("attention")),
    DoorOption("gravity", "g", to: "position") { text throws(OptionFault) in
      let parts = text.split(separator: "x", omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        return try Argument.choice("left right top bottom center=")(text)
      }
      return Argument.share(try Argument.number(parts[0], in: 0...1)) + ","
        + Argument.share(try Argument.number(parts[1], in: 0...1))
    },
    DoorOption("height", "h", to: "h", size),
    DoorOption("metadata=copyright", standing: .near("the copyright is removed, too")),
    DoorOption("metadata", to: "strip", Argument.choice("none= keep=0")),
    DoorOption("onerror") { arguments, draft throws(OptionFault) in
      _ = try Argument.choice("redirect")(arguments.first ?? "")
      draft.translation.redirectsFailures = true
    },
    DoorOption(
      "quality=high", "quality=medium-high", "quality=medium-low", "quality=low", "q=high",
      "q=medium-high", "q=medium-low", "q=low", to: "quality",
      standing: .near("a fixed quality: 90, 80, 65 or 50"),
      Argument.choice("high=90 medium-high=80 medium-low=65 low=50")),
    DoorOption("quality", "q", to: "quality", Argument.whole(1...100)),
    DoorOption("rotate", to: "rotate", Argument.choice("90 180 270 0= 360=")),
    DoorOption("saturation", to: "saturation", Argument.decimal(0...1_000, neutral: 1)),
    DoorOption("segment", standing: .refused("backgrounds are not recognized here")),
    DoorOption(
      "sharpen", to: "sharpen", standing: .near("the strength is taken as the sigma"),
      Argument.decimal(0...10, within: 0.1...10, neutral: 0)),
    DoorOption(
      "slow-connection-quality", "scq",
      standing: .ignored("imaging.save_data_reduction answers Save-Data")),
    DoorOption(
      "trim=border", to: "trim", standing: .near("a tolerance of 10"), Argument.always("10")),
    DoorOption("trim") { arguments, draft throws(OptionFault) in
      let numbers = try Argument.ints(arguments[0], ";", 4, in: sides)
      for (side, pixels) in zip(["top", "right", "bottom", "left"], numbers) {
        draft.cut[side] = pixels
      }
    },
    trim("left"), trim("top"), trim("width"), trim("height"), trim("right"), trim("bottom"),
    DoorOption(
      "trim.border.color", "trim.border.tolerance", "trim.border.keep",
      standing: .refused("of Workers only")),
    DoorOption("upscale=generate", standing: .refused("images are not generated here")),
    DoorOption("upscale=interpolate"),
    DoorOption(
      "width=auto", "w=auto", to: "w", standing: .near("the steps of server.size_steps"),
      Argument.always("auto")),
    DoorOption("width", "w", to: "w", size),
    DoorOption("zoom", "face-zoom", standing: .near("the result is not narrowed to the faces")),
  ]
}
