// ThumborFilters: the tables of thumbor's and imagor's filters.

import Core

/// The filters. One that is broken is ignored, as at the peers.
enum ThumborFilters {
  private typealias Filter = DoorOption<ThumborDraft>

  /// A filter as an address has it, its arguments decoded.
  struct Call: Hashable, Sendable {
    let name: String
    let arguments: [String]
  }

  /// Pictor's order of the steps that an address may order otherwise.
  static let order = [
    ["blur"], ["sharpen"], ["pixelate"], ["round_corner"],
    ["grayscale", "brightness", "saturation", "hue", "rgb"], ["contrast"], ["fill"], ["watermark"],
  ]

  static let thumbor: [DoorOption<ThumborDraft>] =
    shared + [
      Filter("blur") { given, draft throws(OptionFault) in
        let radius = min(try whole(given, 0, 0...Int.max), 150)
        let sigma = given.count > 1 ? try decimal(given, 1, 0...1e9) : Double(radius)
        draft.blur(sigma: sigma, radius: radius)
      },
      Filter("rotate") { given, draft throws(OptionFault) in
        let degrees = try whole(given, 0, -1_000_000...1_000_000)
        // Other angles change nothing, as at thumbor.
        if degrees % 90 == 0 { try draft.rotate(quarters: -degrees / 90) }
      },
      // 7.8.0 takes a factor, although its documentation says per cent.
      decimal("saturation", -1e6...1e6, .near("scales the chroma")) {
        $0.set("saturation", $1, within: 0...10)
      },
      Filter("sharpen", standing: .near("an unsharp mask of the radius, with its own amount")) {
        given, draft throws(OptionFault) in
        guard given.count == 3 else { throw OptionFault("three arguments") }
        let amount = try decimal(given, 0, 0...1e6)
        let radius = try decimal(given, 1, 0...1e6)
        if amount > 0, radius > 0 { draft.set("sharpen", radius, within: 0.1...10) }
      },
      Filter("round_corner", standing: .near(roundsAlike)) { given, draft throws(OptionFault) in
        let radii = given.first?.split(separator: "|").map(String.init) ?? []
        var colour = ""
        for index in 1...3 { colour += (try whole(given, index, 0...255)).hexadecimal(2) }
        try draft.round(radii, colour: colour)
      },
      Filter("stretch") { _, draft in draft.isStretched = !draft.isFitIn },
      decimal("proportion", 0...1, .near(keepsSmall)) { if $1 > 0 { $0.proportion *= $1 } },
      Filter("cover") { _, draft in draft.translation["animated"] = "0" },
      whole("max_age", 0...1_000_000_000) { $0.translation["maxage"] = "\($1)" },
      Filter("autojpg", standing: .near("PNG stays PNG, as where AUTO_PNG_TO_JPG is off")),
      Filter("gifv", standing: .near("GIF stays GIF, as without the optimizer")),
      Filter("equalize", "noise", "red_eye", standing: .near("the image is left as it is")),
      Filter("convolution", "colorize", "curve", standing: .refused("there is no such step")),
      Filter("frame", "distributed_collage", standing: .refused("images are not put together")),
      Filter("extract_focal", standing: .refused("the source is another address of thumbor")),
    ]

  static let imagor: [DoorOption<ThumborDraft>] =
    shared + [
      decimal("blur", 0...1e6) { $0.blur(sigma: $1) },
      Filter("rotate") { given, draft throws(OptionFault) in
        try draft.rotate(quarters: -(try quarters(given)))
      },
      Filter("orient") { given, draft throws(OptionFault) in
        draft.quartersBefore = (4 - (try quarters(given))) % 4
      },
      decimal("saturation", -1e6...1e6, .near("scales the chroma in CIE LCh")) {
        $0.set("saturation", 1 + $1 / 100, within: 0...10)
      },
      decimal("hue", -1e6...1e6) {
        $0.translation["hue"] = "\((Int($1.rounded()) % 360 + 360) % 360)"
      },
      decimal("sharpen", 0...1e6, .near("an unsharp mask with its own amount")) {
        if $1 > 0 { $0.set("sharpen", $1, within: 0.1...10) }
      },
      Filter("pixelate") { given, draft throws(OptionFault) in
        let side = given.isEmpty ? 10 : try whole(given, 0, Effects.pixelateRange)
        draft.translation["pixelate"] = "\(side)"
      },
      Filter("round_corner", standing: .near(roundsAlike)) { given, draft throws(OptionFault) in
        try draft.round(given, colour: given.count > 2 ? try colour(given[2]) : nil)
      },
      Filter("padding") { given, _ throws(OptionFault) in
        if given.count > 1 { throw .unsupported("imagor does not document it; GxH:IxJ is served") }
      },
      Filter("trim", standing: .near("differences are counted by channel")) {
        given, draft throws(OptionFault) in
        try trim(given.reversed(), into: &draft)
      },
      decimal("proportion", 0.0001...100, .near(keepsSmall)) {
        $0.proportion *= $1 > 1 ? $1 / 100 : $1
      },
      whole("page", 1...Int(Int32.max), .near("a page beyond the last is refused")) {
        $0.translation["frame"] = "\($1 - 1)"
      },
      whole("max_frames", 1...1_000_000, .near("all frames, or one")) {
        if $1 == 1 { $0.translation["animated"] = "0" }
      },
      Filter("autojpg") { _, draft in
        if draft.translation["format"] == "source" { draft.translation["format"] = "jpeg" }
      },
      Filter("lossless") { _, draft in draft.translation["lossless"] = "1" },
      whole("expire", 0...Int.max) {
        $0.translation.expiry = UnixTime(seconds: $1 / 1_000)
      },
      Filter("attachment") { given, draft in
        draft.translation["download"] = "1"
        draft.translation["filename"] = given.first
      },
      Filter("raw") { _, draft in draft.translation["pass"] = "all" },
      Filter("preview", standing: .ignored("all results are stored alike")),
      Filter("blurhash", "thumbhash", "avgcolor", standing: .ignored("only descriptions have it")),
      Filter("draw_detections", standing: .near("no boxes are drawn, as without a detector")),
      Filter("dpi", standing: .near("vectors are drawn at the size of the result")),
      Filter("frame", "seek", standing: .ignored("videos are no sources")),
      Filter("to_colorspace", standing: .near("always sRGB")),
      // Without its detector imagor shows all; what is to be hidden must not be shown here.
      Filter("redact", "redact_oval", standing: .refused("nothing is detected and hidden")),
      Filter("crop", standing: .refused("only the source is cropped, not the result")),
      Filter("image", standing: .refused("images are not put together")),
      Filter("label", "text", standing: .refused("no text is drawn")),
    ]

  private static let shared: [DoorOption<ThumborDraft>] = [
    Filter("background_color") { given, draft throws(OptionFault) in
      draft.translation["background"] = try colour(given.first ?? "")
      draft.translation["flatten"] = "1"
    },
    Filter("fill") { given, draft throws(OptionFault) in try draft.fill(given) },
    Filter("fill(auto)", "fill(blur)", standing: .near(fillsWhite)),
    decimal("brightness", -1e6...1e6, .near("scales the lightness; the peer adds to each value")) {
      $0.brighten(by: $1)
    },
    // The factor is that of thumbor 7.8.0, measured.
    decimal("contrast", -1e6...1e6) {
      let share = 1 + min(max($1, -100), 100) / 100
      $0.set("contrast", share * share, within: 0...4)
    },
    Filter("rgb", standing: .near("only equal amounts: brightness")) {
      given, draft throws(OptionFault) in
      let red = try decimal(given, 0, -100...100)
      let others = (try decimal(given, 1, -100...100), try decimal(given, 2, -100...100))
      guard (red, red) == others else { throw .unsupported("channels are not changed one by one") }
      draft.brighten(by: red)
    },
    Filter("grayscale") { _, draft in draft.translation["grayscale"] = "1" },
    Filter("focal") { given, draft throws(OptionFault) in try draft.focus(on: given) },
    Filter("format") { given, draft throws(OptionFault) in try draft.format(given) },
    whole("quality", 0...1_000_000) { $0.translation["quality"] = "\(min(max($1, 1), 100))" },
    whole("max_bytes", 1...Int.max, .near("a result that is too large gets fewer pixels")) {
      $0.translation["maxbytes"] = "\($1)"
    },
    Filter("upscale") { _, draft in draft.enlarges = true },
    Filter("no_upscale") { _, draft in draft.keepsSize = true },
    Filter("strip_metadata", "strip_exif", "strip_icc", standing: .ignored(stripped)),
    Filter("watermark", standing: .near("never larger than the result; its height has no limit")) {
      given, draft throws(OptionFault) in
      try draft.watermark(given)
    },
  ]

  static let fillsWhite = "white"
  private static let stripped = "metadata is left out, and colours become sRGB"
  private static let roundsAlike = "one radius; corners of PNG, WebP and AVIF are transparent"
  private static let keepsSmall = "a source smaller than the box keeps its size"

  /// A filter whose argument is a whole number.
  private static func whole(
    _ name: String, _ range: ClosedRange<Int>, _ standing: DoorStanding = .exact,
    set: @escaping @Sendable (inout ThumborDraft, Int) -> Void
  ) -> DoorOption<ThumborDraft> {
    Filter(name, standing: standing) { given, draft throws(OptionFault) in
      guard given.count == 1 else { throw OptionFault("one argument") }
      set(&draft, try whole(given, 0, range))
    }
  }

  /// A filter whose first argument is a number.
  private static func decimal(
    _ name: String, _ range: ClosedRange<Double>, _ standing: DoorStanding = .exact,
    set: @escaping @Sendable (inout ThumborDraft, Double) -> Void
  ) -> DoorOption<ThumborDraft> {
    Filter(name, standing: standing) { given, draft throws(OptionFault) in
      set(&draft, try decimal(given, 0, range))
    }
  }
}

extension ThumborFilters {
  /// Splits `filters:NAME(ARGS):…/IMAGE`; `nil` if the text begins otherwise.
  static func split(_ text: Substring) -> (calls: [Call], image: Substring)? {
    guard text.hasPrefix("filters:") else { return nil }
    let bytes = text.utf8
    var calls: [Call] = []
    var at = bytes.index(text.startIndex, offsetBy: 8)
    while let open = bytes[at...].firstIndex(of: UInt8(ascii: "(")) {
      let name = text[at..<open]
      guard !name.isEmpty, name.isPlain(with: "_") else { return nil }
      var (depth, start, arguments) = (0, bytes.index(after: open), [String]())
      var end = open
      while end < bytes.endIndex {
        let byte = bytes[end]
        if byte == UInt8(ascii: "(") { depth += 1 }
        if byte == UInt8(ascii: ")") { depth -= 1 }
        if depth == 0 || depth == 1 && byte == UInt8(ascii: ",") {
          let raw = PercentEncoding.decode(bytes[start..<end]) ?? String(text[start..<end])
          arguments.append(String(raw.trimming { $0 == " " }))
          start = bytes.index(after: end)
        }
        if depth == 0 { break }
        end = bytes.index(after: end)
      }
      guard end < bytes.endIndex else { return nil }
      calls.append(Call(name: String(name), arguments: arguments == [""] ? [] : arguments))
      at = bytes.index(after: end)
      guard at < bytes.endIndex else { return nil }
      let mark = bytes[at]
      at = bytes.index(after: at)
      if mark == UInt8(ascii: "/") { return (calls, text[at...]) }
      guard mark == UInt8(ascii: ":") else { return nil }
    }
    return nil
  }

  /// Reads a whole number among the arguments.
  static func whole(
    _ arguments: [String], _ index: Int, _ range: ClosedRange<Int>
  ) throws(OptionFault) -> Int {
    guard arguments.indices.contains(index),
      let number = ThumborNumber.whole(arguments[index], in: range)
    else { throw OptionFault("argument \(index + 1) is a whole number, \(range)") }
    return number
  }

  /// Reads a number among the arguments.
  static func decimal(
    _ arguments: [String], _ index: Int, _ range: ClosedRange<Double>
  ) throws(OptionFault) -> Double {
    guard arguments.indices.contains(index),
      let number = ThumborNumber.decimal(arguments[index], in: range)
    else { throw OptionFault("argument \(index + 1) is a number, \(range)") }
    return number
  }

  /// Reads a quarter turn: 0 to 3 for 0 to 270 degrees.
  private static func quarters(_ arguments: [String]) throws(OptionFault) -> Int {
    let degrees = try whole(arguments, 0, 0...270)
    guard degrees % 90 == 0 else { throw OptionFault("0, 90, 180 or 270") }
    return degrees / 90
  }

  /// Reads a colour: a name, hexadecimal digits, or a word. Returns `rrggbbaa`.
  static func colour(_ text: String) throws(OptionFault) -> String {
    switch text.lowercased() {
    case "transparent", "none": return "00000000"
    case "auto", "blur": return Color.white.hexadecimal
    case let name:
      guard let colour = Colors.css(name).flatMap({ Color(hexadecimal: $0) }) else {
        throw OptionFault("a colour by its name or as rrggbb")
      }
      return colour.hexadecimal
    }
  }

  /// Reads `trim`'s corner and tolerance, each optional.
  static func trim(
    _ words: [String], into draft: inout ThumborDraft
  ) throws(OptionFault) {
    var (words, isOther) = (words[...], false)
    if let word = words.first,
      ["top-left", "bottom-right"].contains(word)
        || draft.dialect == .imagor && ["top-right", "bottom-left"].contains(word)
    {
      isOther = word != "top-left"
      words = words.dropFirst()
    }
    var tolerance = 0.0
    if let word = words.popFirst() {
      guard let given = ThumborNumber.whole(word, in: 0...1_000_000) else {
        throw OptionFault("a corner, a tolerance")
      }
      // thumbor's is the distance of two colours, which is √3 times that of equal channels.
      tolerance = Double(given) / (draft.dialect == .thumbor ? 1.732 : 1)
    }
    guard words.isEmpty else { throw OptionFault("a corner, a tolerance") }
    if isOther { draft.note("trim", .near("the colour is that of the corner at the top left")) }
    draft.translation["trim"] = "\(Int(min(max(tolerance.rounded(), 1), 255)))"
  }
}
