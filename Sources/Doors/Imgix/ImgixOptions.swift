// ImgixOptions: the parameters of imgix.

import Core

extension DoorOption where Draft == ImgixDraft {
  /// Parameters, between blanks, that are not read.
  fileprivate init(_ standing: DoorStanding, _ names: String) {
    (self.names, self.standing) = (names.split(separator: " ").map { String($0) }, standing)
    read = { _, _ throws(OptionFault) in }
  }
}

extension ImgixDraft {
  private typealias Option = DoorOption<ImgixDraft>
  static let options = OptionIndex(table)

  private static let unread: [Option] = [
    Option(
      .exact, "high=0 shad=0 nr=0 nrs=0 htn=0 px=0 px=1 rot=0 bg-remove=false cs=srgb cs=strip"),
    Option(.near("not narrowed to a face, and no marks"), "faceindex facepad fp-debug"),
    Option(.near("one tolerance, and no padding"), "trim-md trim-sd trim-alpha trim-pad"),
    Option(.near("one colour, up to the box"), "fill=blur fill=gradient fill-max"),
    Option(.near("a border has square corners"), "border-radius border-radius-inner"),
    Option(.near("noise is not reduced; the sigma of usm is 2.5"), "nr nrs usmrad"),
    Option(.near("not retouched"), "auto=enhance auto=true auto=redeye"),
    Option(.near("w and dpr count"), "ch"), Option(.near("sRGB without a profile"), "cs"),
    Option(.near("metadata is removed"), "iptc=allow"),
    Option(.near("as in the source"), "loop interval skip fps reverse gif-q"),
    Option(.near("at the edge, in its shape"), "mark-h mark-fit mark-pad mark-x mark-y"),
    Option(
      .refused("nothing here draws, blends, styles or generates so"),
      """
      txt blend blend-color mark-rot mark-base high shad hue-set htn duotone lp-blur transparency \
      border-stroke-color border-stroke-size fill=gen bg-remove bg-replace upscale palette \
      object-removal-rect fm=jp2 fm=jxr fm=mp4 fm=webm fm=mp3 fm=blurhash video-generate
      """),
    Option(.ignored("no pixel differs"), "s iptc dpi rot-type svg-sanitize pdf-annotation"),
    Option(
      .ignored("only of what is refused"),
      """
      duotone-alpha colors prefix faces grid-colors grid-size fill-gradient-cs fill-gradient-linear \
      fill-gradient-linear-direction fill-gradient-radial fill-gradient-radial-radius \
      fill-gradient-radial-x fill-gradient-radial-y fill-gradient-type fill-gen-fallback \
      fill-gen-neg-prompt fill-gen-pos fill-gen-prompt fill-gen-seed bg-remove-add-shadow \
      bg-remove-fallback bg-remove-fg-type bg-remove-semi-transparency \
      bg-remove-transparency-threshold bg-replace-fallback bg-replace-neg-prompt upscale-fallback \
      blend-align blend-alpha blend-crop blend-fit blend-h blend-mode blend-pad blend-size blend-w \
      blend-x blend-y video-gif-start video-gif-end video-gif-fps video-thumbnail-time txt-align \
      txt-clip txt-color txt-fit txt-font txt-lead txt-lig txt-line txt-line-color txt-pad txt-shad \
      txt-size txt-track txt-width txt-x txt-y
      """),
  ]

  private static let color = Argument.color(Colors.argb)
  private static let text: ArgumentReader = { text throws(OptionFault) in text }
  private static let attends = "attention decides, not faces, edges or objects"

  /// A parameter that becomes one of Pictor's.
  private static func own(
    _ name: String, _ parameter: String, near: String? = nil, _ value: @escaping ArgumentReader
  ) -> Option {
    Option(name, to: parameter, standing: near.map { .near($0) } ?? .exact, value)
  }

  /// A word whose meaning depends on other parameters.
  private static func word(
    _ name: String, near: String? = nil, _ value: @escaping ArgumentReader
  ) -> Option {
    let key = String(name.prefix { $0 != "=" })
    return Option(name, into: \.words[key], standing: near.map { .near($0) } ?? .exact, value)
  }

  /// A number whose meaning depends on other parameters; whole if it is a length.
  private static func number(_ range: ClosedRange<Double>) -> (String) -> Option {
    { name in
      Option(name, into: \.numbers[name]) { text throws(OptionFault) in
        let number = try Argument.number(text, in: range)
        return range.upperBound > 100 ? number.rounded() : number
      }
    }
  }

  /// Reads a number that changes nothing at 0; `part` of it is added to `base`.
  private static func scaled(
    _ base: Double = 1, by part: Double = 0.01, within limits: ClosedRange<Double> = 0...10
  ) -> ArgumentReader {
    { text throws(OptionFault) in
      let number = try Argument.number(text, in: (base == 0 ? 0 : -10_000)...10_000)
      let value = min(max(base + number * part, limits.lowerBound), limits.upperBound)
      return number == 0 ? nil : Argument.written(value)
    }
  }

  /// A side: pixels, of which a result has 8,192 at most, or a share of the source's.
  private static func side(_ name: String, _ alias: String) -> Option {
    Option(name, alias) { arguments, draft throws(OptionFault) in
      let number = try Argument.number(arguments[0], in: 0.0001...1_000_000)
      let isShare = number <= 1 && arguments[0].contains(".")
      draft.translation[name] = isShare ? Argument.written(number * 100) + "%" : nil
      draft.numbers[name] = isShare ? nil : min(number.rounded(), 8_192)
    }
  }

  /// Reads x,y,w,h: pixels, shares, or names of places and of the whole side.
  private static let rect: ArgumentReader = { text throws(OptionFault) in
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { String($0) }
    guard parts.count == 4 else { throw OptionFault("x,y,w,h") }
    let names = ["left", "center", "right", "top", "middle", "bottom", "full"]
    var lengths: [String] = []
    for part in parts {
      let least = lengths.count < 2 || names.contains(part) ? 0 : 0.0001
      let number = try Argument.number(names.contains(part) ? "0" : part, in: least...1_000_000)
      let isShare = part.contains(".") && number <= 1
      lengths.append(isShare ? Argument.share(number) : Argument.written(number.rounded()))
    }
    guard parts.contains(where: { names.contains($0) }) else {
      return lengths.joined(separator: ",")
    }
    let place = zip(parts, ["left", "top"]).map { names.contains($0) ? $0 : $1 }
    return (lengths[2...] + [Self.place(place.joined(separator: ","))] + lengths[..<2])
      .joined(separator: ",")
  }

  /// The parameters.
  static let table: [DoorOption<ImgixDraft>] =
    read + unread + ["fp-x", "fp-y"].map(number(0...1)) + ["fp-z"].map(number(1...100))
    + ["max-w", "max-h", "min-w", "min-h"].map(number(1...8_192))
    + ["expires"].map(number(0...253_402_300_799))
    + [
      "pad", "pad-top", "pad-right", "pad-bottom", "pad-left", "border-top", "border-right",
      "border-bottom", "border-left", "trim-tol", "corner-radius",
    ].map(number(0...8_192))
    + ["bg", "fill-color", "mask-bg", "trim-color"].map { word($0, color) }

  private static let read: [Option] = [
    side("w", "width"), side("h", "height"),
    own("dpr", "scale", Argument.decimal(0.01...10, within: 0.01...5)),
    Option("ar", into: \.numbers["ar"]) { text throws(OptionFault) in
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw OptionFault("width:height") }
      let height = try Argument.number(parts[1], in: 0.1...1_000)
      return min(max(try Argument.number(parts[0], in: 0.1...1_000) / height, 0.001), 1_000)
    },
    word("fit=clamp", near: "padded with the background", text),
    word("fit=facearea", near: attends, text), word("fit=fillmax", near: "pads a box only", text),
    word("fit", Argument.choice("clip crop fill max min scale")),
    word("fill", Argument.choice("solid")),
    word("crop=faces", near: attends, Argument.always("attention")),
    Option("crop") { arguments, draft throws(OptionFault) in
      // The first word decides: a place, or a way whose fallbacks are the others.
      let first = String(arguments[0].prefix { $0 != "," })
      let isPlace = ["left", "right", "top", "bottom", "center", ""].contains(first)
      let isWay = isPlace || first == "focalpoint" || first == "entropy"
      draft.words["crop"] = isPlace ? place(arguments[0]) : isWay ? first : "attention"
      if !isWay { draft.translation.notes.append(DoorNote("crop", .near(attends))) }
    },
    own("rect", "crop", rect), word("flip", Argument.choice("h v hv vh=hv")),
    word("orient", Argument.choice("0 1 2 3 4 5 6 7 8 90=6 180=3 270=8")),
    word("rot", near: "counter-clockwise; w and h count the turned image") {
      text throws(OptionFault) in
      if let turn = ["90": "270", "180": "180", "270": "90"][text] { return turn }
      throw .unsupported("90, 180 or 270 only")
    },
    word("trim", near: "one tolerance", Argument.choice("auto color alpha colorunlessalpha=color")),
    Option("border", standing: .near("the image shrinks by it")) {
      arguments, draft throws(OptionFault) in
      let width = arguments[0].prefix { $0 != "," }
      draft.words["border"] = try color(String(arguments[0].dropFirst(width.count + 1)))
      draft.numbers["border"] = Double(try Argument.int(width, in: 0...8_192))
    },
    word("mask=ellipse", near: "round ends where the sides differ", text),
    word("mask") { text throws(OptionFault) in
      if text == "corners" { return text }
      throw .unsupported("images are no masks here")
    },
    Option("bri", "exp", to: "brightness", standing: .near("a factor of lightness"), scaled()),
    own("con", "contrast", near: "the contrast() of CSS", scaled()),
    own("gam", "gamma", near: "1 + n/100", scaled(within: 0.1...10)),
    own("hue", "hue", near: "turned in LCh", Argument.degrees(-1e6...1e6, steps: 1)),
    Option("sat", "vib", to: "saturation", standing: .near("a factor of all chroma"), scaled()),
    own("sharp", "sharpen", near: "a tenth is the sigma", scaled(0, by: 0.1, within: 0.1...10)),
    own("usm", "sharpen", near: "one strength", scaled(0, by: 1, within: 0.1...2.5)),
    own("blur", "blur", near: "a tenth is the sigma", scaled(0, by: 0.1, within: 0.3...250)),
    own("sepia", "sepia", near: "the sepia() of CSS", scaled(0, within: 0...1)),
    own("monochrome", "grayscale", near: "gray for each colour", Argument.always("1")),
    word("auto=format", Argument.always("auto")),
    own("auto=compress", "q_jpeg", near: "a JPEG quality of 45", Argument.always("45")),
    Option("fm=json", into: \.translation.isDescription, standing: .near("the form of /info")) {
      _ throws(OptionFault) in true
    },
    own("fm=png8", "format", near: "not always a palette", Argument.always("png")),
    own("fm", "format", Argument.choice("jpg=jpeg jpeg pjpg=jpeg png png32=png gif webp avif jxl")),
    own("q", "quality", Argument.whole(1...100)), own("px", "pixelate", Argument.whole(2...65_535)),
    own("chromasub=422", "chroma", near: "4:4:4", Argument.always("444")),
    own("chromasub", "chroma", Argument.choice("444 420")),
    own("lossless", "lossless", Argument.flag), own("invert", "negate", Argument.flag),
    own("colorquant", "colours", near: "2, 4, 16 or 256", Argument.whole(2...256)),
    word("jpg-progressive", Argument.choice("true=1 1 false=0 0")),
    Option("dl") { arguments, draft throws(OptionFault) in
      draft.translation["download"] = "1"
      let name = arguments[0][..<(arguments[0].lastIndex(of: ".") ?? arguments[0].endIndex)]
      let isPlain = name.utf8.allSatisfy { $0 >= 0x20 && !"/\\\u{7f}".utf8.contains($0) }
      guard isPlain, name.utf8.count <= 100 else { throw OptionFault("1 to 100 characters") }
      draft.translation["filename"] = name.isEmpty ? nil : String(name)
    },
    own("rasterize-bypass", "pass", Argument.choice("true=vector 1=vector false= 0=")),
    Option("frame", "page", to: "frame") { text throws(OptionFault) in
      "\(try Argument.int(text, in: 1...100_000) - 1)"
    },
    word("mark", near: "never larger than the result", text), word("mark-align", text),
    own("mark-alpha", "watermark_opacity", scaled(0, within: 0.01...1)),
    own("mark-scale", "watermark_scale", near: "of the width", scaled(0, within: 0.0001...1)),
    own("mark-w", "watermark_scale", Argument.decimal(0.0001...1)),
    own("mark-tile", "watermark_repeat", Argument.choice("grid=1")),
  ]
}
