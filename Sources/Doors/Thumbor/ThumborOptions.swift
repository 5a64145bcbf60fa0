// ThumborOptions: the tables of thumbor's and imagor's parts and filters.

import Core

/// The parts of an address before the filters. One that is invalid is another part, or the image.
extension ThumborDraft {
  typealias Option = DoorOption<ThumborDraft>

  static let thumborParts = [debug, meta, trim, crop, fitIn, sides, across, down, faces]
  static let imagorParts = [
    meta, trim, crop, fitIn, stretch, sides, padding, across, down, smart,
  ]

  private static let another = DoorFault.invalid("it is not this part")

  private static let debug = words("debug", .ignored("thumbor draws focal points")) { _, _ in }
  private static let meta = words("meta", .near("Pictor's own description of the source")) {
    draft, _ in draft.translation.isDescription = true
  }
  private static let stretch = words("stretch") { draft, _ in draft.isStretched = true }
  private static let smart = words("smart") { draft, _ in draft.isSmart = true }
  private static let faces = words(
    "smart", .near("frontal faces, else what attracts attention; detectors find other parts")
  ) { draft, _ in draft.isSmart = true }
  private static let across = words("left center right") { $0.align.x = $1 }
  private static let down = words("top middle bottom") { $0.align.y = $1 }
  private static let fitIn = words("adaptive-full-fit-in adaptive-fit-in full-fit-in fit-in") {
    $0.isFitIn = true
    $0.isFull = $1 % 2 == 0
    $0.isAdaptive = $1 < 2
  }

  /// A part that is one of some words; sets their index.
  private static func words(
    _ names: String, _ standing: DoorStanding = .exact,
    set: @escaping @Sendable (inout ThumborDraft, Int) -> Void
  ) -> Option {
    let words = names.split(separator: " ").map { String($0) }
    return Option(names, standing) { given, draft throws(DoorFault) in
      guard let index = words.firstIndex(of: given[0]) else { throw another }
      set(&draft, index)
    }
  }

  private static let trim = Option(
    "trim", .near("differences are counted by channel, not as a distance of colours")
  ) { given, draft throws(DoorFault) in
    var words = given[0].split(separator: ":", omittingEmptySubsequences: false)
    guard words.removeFirst() == "trim", words.count <= 2 else { throw another }
    try draft.trim(words.map(String.init))
  }

  private static let crop = Option("AxB:CxD") { given, draft throws(DoorFault) in
    var area = try corners(given[0], isDecimal: draft.isImagor)
    // A part without an area is the whole image.
    guard area.edges[2] > area.edges[0], area.edges[3] > area.edges[1] else { return }
    if !area.isShare { area.edges = area.edges.map { $0.rounded(.down) } }
    draft.crop = area
  }

  private static let sides = Option("ExF origxF Exorig") { given, draft throws(DoorFault) in
    let words = given[0].split(separator: "x", omittingEmptySubsequences: false)
    guard words.count == 2, given[0].utf8.count <= 64 else { throw another }
    let sides = try words.map { word throws(DoorFault) in
      let size = word.hasPrefix("-") ? word.dropFirst() : word
      if size == "orig", !draft.isImagor { return Side.original }
      guard size.utf8.allSatisfy(\.isDigit) else { throw another }
      // Too large a number is refused later.
      let pixels = size.isEmpty ? 0 : min(Int(size) ?? .max, 1_000_000_000)
      return pixels == 0 ? .free : .pixels(pixels)
    }
    draft.width = sides[0]
    draft.height = sides[1]
    draft.flipsAcross = words[0].hasPrefix("-")
    draft.flipsDown = words[1].hasPrefix("-")
  }

  private static let padding = Option("GxH:IxJ GxH") { given, draft throws(DoorFault) in
    let text = given[0].contains(":") ? given[0] : given[0] + ":" + given[0]
    let edges = try corners(text, isDecimal: false).edges.map { Int($0) }
    guard edges.allSatisfy(Edges.range.contains) else {
      throw .unsupported("an edge has at most \(Edges.range.upperBound) pixels")
    }
    draft.padding = edges
  }

  static func corners(_ text: String, isDecimal: Bool) throws(DoorFault) -> Area {
    let points = text.split(separator: ":", omittingEmptySubsequences: false)
      .map { $0.split(separator: "x", omittingEmptySubsequences: false) }
    guard points.map(\.count) == [2, 2], text.utf8.count <= 100 else { throw another }
    let edges = try points.joined().map { word throws(DoorFault) in
      guard isDecimal || word.isDigits else { throw another }
      let range = 0...Double(Selection.cropRange.upperBound)
      return try Arguments(texts: [String(word)]).decimal(0, range)
    }
    return (edges, text.contains(".") && edges.allSatisfy { $0 <= 1 })
  }
}

/// The filters. One that is invalid is ignored, as at the peers.
extension ThumborDraft {
  /// Pictor's order of the steps that an address may order otherwise.
  static let order = [
    ["blur"], ["sharpen"], ["pixelate"], ["round_corner"],
    ["grayscale", "brightness", "saturation", "hue", "rgb"], ["contrast"], ["fill"], ["watermark"],
  ]

  static let thumborFilters = OptionTable(
    shared + [
      Option("blur") { given, draft throws(DoorFault) in
        let radius = min(try given.integer(0, 0...Int.max), 150)
        let sigma = given.count > 1 ? try given.decimal(1, 0...1e9) : Double(radius)
        draft.blur(sigma: sigma, radius: radius)
      },
      Option("rotate") { given, draft throws(DoorFault) in
        let degrees = try given.integer(0, -1_000_000...1_000_000)
        // Other angles change nothing, as at thumbor.
        if degrees % 90 == 0 { try draft.rotate(quarters: -degrees / 90) }
      },
      // 7.8.0 takes a factor, although its documentation says per cent.
      decimal("saturation", -1e6...1e6, .near("scales the chroma")) {
        $0["saturation"] = $1.clamped(to: 0...10).written
      },
      Option("sharpen", .near("an unsharp mask of the radius, with its own amount")) {
        given, draft throws(DoorFault) in
        guard given.count == 3 else { throw .invalid("three arguments") }
        let amount = try given.decimal(0, 0...1e6)
        let radius = try given.decimal(1, 0...1e6)
        if amount > 0, radius > 0 { draft["sharpen"] = radius.clamped(to: 0.1...10).written }
      },
      Option("round_corner", .near(roundsAlike)) { given, draft throws(DoorFault) in
        let radii = given[0].split(separator: "|").map(String.init)
        var colour = ""
        for index in 1...3 { colour += (try given.integer(index, 0...255)).hexadecimal(2) }
        try draft.round(Arguments(texts: radii), colour: colour)
      },
      Option("stretch") { _, draft in draft.isStretched = !draft.isFitIn },
      decimal("proportion", 0...1, .near(keepsSmall)) { if $1 > 0 { $0.proportion *= $1 } },
      Option("cover") { _, draft in draft["animated"] = "0" },
      whole("max_age", 0...1_000_000_000) { $0["maxage"] = "\($1)" },
      Option("autojpg", .near("PNG stays PNG, as where AUTO_PNG_TO_JPG is off")),
      Option("gifv", .near("GIF stays GIF, as without the optimizer")),
      Option("equalize noise red_eye", .near("the image is left as it is")),
      Option("convolution colorize curve", .refused("there is no such step")),
      Option("frame distributed_collage", .refused("images are not put together")),
      Option("extract_focal", .refused("the source is another address of thumbor")),
    ])

  static let imagorFilters = OptionTable(
    shared + [
      decimal("blur", 0...1e6) { $0.blur(sigma: $1) },
      Option("rotate") { given, draft throws(DoorFault) in
        try draft.rotate(quarters: -(try quarters(given)))
      },
      Option("orient") { given, draft throws(DoorFault) in
        draft.quartersBefore = (4 - (try quarters(given))) % 4
      },
      decimal("saturation", -1e6...1e6, .near("scales the chroma in CIE LCh")) {
        $0["saturation"] = (1 + $1 / 100).clamped(to: 0...10).written
      },
      decimal("hue", -1e6...1e6) { $0["hue"] = "\(Int($1.rounded()).turned)" },
      decimal("sharpen", 0...1e6, .near("an unsharp mask with its own amount")) {
        if $1 > 0 { $0["sharpen"] = $1.clamped(to: 0.1...10).written }
      },
      Option("pixelate") { given, draft throws(DoorFault) in
        let side = given.count == 0 ? 10 : try given.integer(0, Effects.pixelateRange)
        draft["pixelate"] = "\(side)"
      },
      Option("round_corner", .near(roundsAlike)) { given, draft throws(DoorFault) in
        try draft.round(given, colour: given.count > 2 ? try colour(given[2]) : nil)
      },
      Option("padding") { given, _ throws(DoorFault) in
        if given.count > 1 { throw .unsupported("imagor does not document it; GxH:IxJ is served") }
      },
      Option("trim", .near("differences are counted by channel")) {
        given, draft throws(DoorFault) in
        try draft.trim(given.texts.reversed())
      },
      decimal("proportion", 0.0001...100, .near(keepsSmall)) {
        $0.proportion *= $1 > 1 ? $1 / 100 : $1
      },
      whole("page", 1...Int(Int32.max), .near("a page beyond the last is refused")) {
        $0["frame"] = "\($1 - 1)"
      },
      whole("max_frames", 1...1_000_000, .near("all frames, or one")) {
        if $1 == 1 { $0["animated"] = "0" }
      },
      Option("autojpg") { _, draft in
        if draft["format"] == "source" { draft["format"] = "jpeg" }
      },
      Option("lossless") { _, draft in draft["lossless"] = "1" },
      whole("expire", 0...Int.max) { $0.translation.expiry = UnixTime(seconds: $1 / 1_000) },
      Option("attachment") { given, draft in
        draft["download"] = "1"
        draft["filename"] = given.texts.first
      },
      Option("raw") { _, draft in draft["pass"] = "all" },
      Option("preview", .ignored("all results are stored alike")),
      Option("blurhash thumbhash avgcolor", .ignored("only descriptions have it")),
      Option("draw_detections", .near("no boxes are drawn, as without a detector")),
      Option("dpi", .near("vectors are drawn at the size of the result")),
      Option("frame seek", .ignored("videos are no sources")),
      Option("to_colorspace", .near("always sRGB")),
      // Without its detector imagor shows all; what is to be hidden must not be shown here.
      Option("redact redact_oval", .refused("nothing is detected and hidden")),
      Option("crop", .refused("only the source is cropped, not the result")),
      Option("image", .refused("images are not put together")),
      Option("label text", .refused("no text is drawn")),
    ])

  private static let shared: [Option] = [
    Option("background_color") { given, draft throws(DoorFault) in
      draft["background"] = try colour(given[0])
      draft["flatten"] = "1"
    },
    Option("fill") { given, draft throws(DoorFault) in try draft.fill(given) },
    Option("fill(auto) fill(blur)", .near(fillsWhite)),
    decimal("brightness", -1e6...1e6, .near("scales the lightness; the peer adds to each value")) {
      $0["brightness"] = squared($1)
    },
    // The factor is that of thumbor 7.8.0, measured.
    decimal("contrast", -1e6...1e6) { $0["contrast"] = squared($1) },
    Option("rgb", .near("only equal amounts: brightness")) { given, draft throws(DoorFault) in
      let amounts = try (0...2).map { index throws(DoorFault) in
        try given.decimal(index, -100...100)
      }
      guard Set(amounts).count == 1 else {
        throw .unsupported("channels are not changed one by one")
      }
      draft["brightness"] = squared(amounts[0])
    },
    Option("grayscale") { _, draft in draft["grayscale"] = "1" },
    Option("focal") { given, draft throws(DoorFault) in try draft.focus(on: given) },
    Option("format") { given, draft throws(DoorFault) in try draft.format(given[0]) },
    whole("quality", 0...1_000_000) { $0["quality"] = "\($1.clamped(to: 1...100))" },
    whole("max_bytes", 1...Int.max, .near("a result that is too large gets fewer pixels")) {
      $0["maxbytes"] = "\($1)"
    },
    Option("upscale") { _, draft in draft.enlarges = true },
    Option("no_upscale") { _, draft in draft.keepsSize = true },
    Option(
      "strip_metadata strip_exif strip_icc",
      .ignored("metadata is left out, and colours become sRGB")),
    Option("watermark", .near("never larger than the result; its height has no limit")) {
      given, draft throws(DoorFault) in
      try draft.watermark(given)
    },
  ]

  static let fillsWhite = "white"
  private static let roundsAlike = "one radius; corners of PNG, WebP and AVIF are transparent"
  private static let keepsSmall = "a source smaller than the box keeps its size"

  /// A filter whose argument is a whole number.
  private static func whole(
    _ name: String, _ range: ClosedRange<Int>, _ standing: DoorStanding = .exact,
    set: @escaping @Sendable (inout ThumborDraft, Int) -> Void
  ) -> Option {
    Option(name, standing, atMost: 1) { given, draft throws(DoorFault) in
      set(&draft, try given.integer(0, range))
    }
  }

  /// A filter whose first argument is a number.
  private static func decimal(
    _ name: String, _ range: ClosedRange<Double>, _ standing: DoorStanding = .exact,
    set: @escaping @Sendable (inout ThumborDraft, Double) -> Void
  ) -> Option {
    Option(name, standing) { given, draft throws(DoorFault) in
      set(&draft, try given.decimal(0, range))
    }
  }

  /// Returns a factor for −100 to 100. Its square keeps the mean near that of added values.
  private static func squared(_ amount: Double) -> String {
    let share = 1 + amount.clamped(to: -100...100) / 100
    return (share * share).written
  }

  /// Reads a quarter turn: 0 to 3 for 0 to 270 degrees.
  private static func quarters(_ given: Arguments) throws(DoorFault) -> Int {
    let degrees = try given.integer(0, 0...270)
    guard degrees % 90 == 0 else { throw .invalid("0, 90, 180 or 270") }
    return degrees / 90
  }

  /// Reads a colour: a name, hexadecimal digits, or a word. Returns `rrggbbaa`.
  static func colour(_ text: String) throws(DoorFault) -> String {
    let words = [
      "transparent": "00000000", "none": "00000000", "auto": Color.white.hexadecimal,
      "blur": Color.white.hexadecimal,
    ]
    if let word = words[text.lowercased()] { return word }
    guard let colour = Colors.css(text).flatMap({ Color(hexadecimal: $0) }) else {
      throw .invalid("a colour by its name or as rrggbb")
    }
    return colour.hexadecimal
  }
}

extension Arguments {
  /// Reads a whole number that must be there.
  func integer(_ index: Int, _ range: ClosedRange<Int>) throws(DoorFault) -> Int {
    guard let number = try whole(index, range) else { throw .invalid("a whole number") }
    return number
  }

  /// Reads a number like `-1.5` or `.5` that must be there.
  func decimal(_ index: Int, _ range: ClosedRange<Double>) throws(DoorFault) -> Double {
    guard !self[index].hasSuffix("."), let number = try number(index, range) else {
      throw .invalid("a number")
    }
    return number
  }
}
