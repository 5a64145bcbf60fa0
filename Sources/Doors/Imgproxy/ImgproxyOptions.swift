// ImgproxyOptions: the options of imgproxy, and what they become.

import Core

extension ImgproxyDoor {
  /// The rows of imgproxy's page in `docs/moving/`.
  public static var rows: [DoorOptionRow] { table.map(\.row) }

  /// All options.
  static let table: [DoorOption<ImgproxyDraft>] = size + place + look + output + limits + pro

  /// The options by each of their names.
  static let options: [String: Option] = Dictionary(
    table.flatMap { option in option.names.map { ($0, option) } }, uniquingKeysWith: { $1 })

  typealias Option = DoorOption<ImgproxyDraft>
  private typealias Path<Value> = WritableKeyPath<ImgproxyDraft, Value> & Sendable

  private static let size: [Option] = [
    option(
      "resize rs", atMost: 8,
      standing: .near("force shrinks each side by itself; sides are at most 65535")
    ) { arguments, draft throws(OptionFault) in
      try readFit(arguments, &draft)
      try readSize(arguments, from: 1, &draft)
    },
    option("size s", atMost: 7) { arguments, draft throws(OptionFault) in
      try readSize(arguments, from: 0, &draft)
    },
    option("resizing_type rt", atMost: 1) { arguments, draft throws(OptionFault) in
      try readFit(arguments, &draft)
    },
    whole("width w", in: sides, \.width), whole("height h", in: sides, \.height),
    whole("min-width mw", in: sides, \.minWidth, .near("whole points before zoom")),
    whole("min-height mh", in: sides, \.minHeight, .near("whole points before zoom")),
    option(
      "zoom z", atMost: 2,
      standing: .near("two factors only without width and height, or with both and force")
    ) { arguments, draft throws(OptionFault) in
      draft.zoom.x = try arguments.factor(0) ?? draft.zoom.x
      draft.zoom.y = try arguments.factor(1) ?? draft.zoom.x
    },
    option(
      "dpr", atMost: 1,
      standing: .near("edges, boxes and offsets have it also where the source has few pixels")
    ) { arguments, draft throws(OptionFault) in
      draft.dpr = try arguments.factor(0) ?? draft.dpr
    },
    flag("enlarge el", into: \.enlarges),
    option(
      "extend ex",
      standing: .near(
        "the place is that of gravity if it cuts; a focal point is a share of the room")
    ) { arguments, draft throws(OptionFault) in
      try readExtend(arguments, from: 0, \.extend, &draft)
    },
    option(
      "extend_aspect_ratio extend_ar exar",
      standing: .near(
        "the place is that of gravity if it cuts; a focal point is a share of the room")
    ) { arguments, draft throws(OptionFault) in
      try readExtend(arguments, from: 0, \.extendRatio, &draft)
    },
  ]

  private static let place: [Option] = [
    option("gravity g", standing: .near("sm may find a part some pixels away; whole points")) {
      arguments, draft throws(OptionFault) in
      draft.gravity = try arguments.gravity(0, maySearch: true) ?? draft.gravity
    },
    option("crop c", standing: .near("gravity sm cuts around the centre")) {
      arguments, draft throws(OptionFault) in
      draft.crop = (
        try arguments.number(0, 0...1e7) ?? 0, try arguments.number(1, 0...1e7) ?? 0,
        try arguments.gravity(2, maySearch: true)
      )
    },
    option(
      "trim t", atMost: 4,
      standing: .near("whole thresholds from 1 to 255; after crop; ff00ff is the corner's colour")
    ) { arguments, draft throws(OptionFault) in
      guard let threshold = try arguments.number(0, 0...1_000_000) else { return }
      draft.own["trim"] = "\(min(max(wholePixels(threshold), 1), 255))"
      // imgproxy trims transparent edges by this colour. The corner's is transparent there, too.
      let color = try arguments.color(1)
      draft.own["trim_color"] = color == "ff00ff" ? nil : color
      draft.own["trim_equal"] = axes(arguments, from: 2)
    },
    option("padding pd", atMost: 4, standing: .near("whole points before zoom")) {
      arguments, draft throws(OptionFault) in
      let across = try arguments.whole(1, Edges.range)
      if let all = try arguments.whole(0, Edges.range), let edges = Edges([all]) {
        draft.padding = edges
      }
      draft.padding.right = across ?? draft.padding.right
      draft.padding.bottom = try arguments.whole(2, Edges.range) ?? draft.padding.bottom
      draft.padding.left = try arguments.whole(3, Edges.range) ?? across ?? draft.padding.left
    },
    ownFlag("auto_rotate ar", "orient", standard: true),
    option("rotate rot", atMost: 1) { arguments, draft throws(OptionFault) in
      guard let degrees = try arguments.whole(0, -36_000...36_000) else { return }
      guard degrees % 90 == 0 else { throw OptionFault("\(degrees) is no multiple of 90") }
      draft.own["rotate"] = degrees % 360 == 0 ? nil : "\((degrees % 360 + 360) % 360)"
    },
    option("flip fl", atMost: 2) { arguments, draft throws(OptionFault) in
      draft.own["flip"] = axes(arguments, from: 0)
    },
  ]

  private static let look: [Option] = [
    option("background bg", atMost: 3) { arguments, draft throws(OptionFault) in
      guard arguments.count != 2 else { throw OptionFault("a colour has 1 or 3 arguments") }
      var color = arguments.count == 3 ? "" : try arguments.color(0)
      for index in 0..<3 where arguments.count == 3 {
        color? += (try arguments.whole(index, 0...255) ?? 0).hexadecimal(2)
      }
      (draft.own["background"], draft.own["flatten"]) = (color, color.map { _ in "1" })
    },
    strength("blur bl", Effects.blurRange), strength("sharpen sh", Effects.sharpenRange),
    option("pixelate pix", atMost: 1) { arguments, draft throws(OptionFault) in
      guard let size = try arguments.whole(0, sides) else { return }
      draft.own["pixelate"] = size < 2 ? nil : "\(min(size, Effects.pixelateRange.upperBound))"
    },
    option(
      "watermark wm", atMost: 5,
      standing: .near("the watermark 'default', inside the image, and its tiles without space")
    ) { arguments, draft throws(OptionFault) in
      let opacity = try arguments.number(0, 0...1) ?? 0
      let name = arguments.text(1) ?? "ce"
      let position = ImgproxyGravity.positions[name]
      guard name != "ch" else {
        throw OptionFault("imgproxy Pro: there is no chessboard of watermarks")
      }
      guard name == "re" || position != nil else {
        throw OptionFault("'\(name.prefix(32))' is no place of a watermark")
      }
      let x = try arguments.number(2, ImgproxyGravity.offsets) ?? 0
      let y = try arguments.number(3, ImgproxyGravity.offsets) ?? 0
      let scale = min(try arguments.number(4, 0...1_000_000) ?? 0, 1)
      let isSeen = opacity > 0
      draft.own["watermark"] = isSeen ? "default" : nil
      draft.own["watermark_opacity"] = isSeen && opacity < 1 ? Argument.written(opacity) : nil
      draft.own["watermark_scale"] = isSeen && scale > 0 ? Argument.written(scale) : nil
      draft.own["watermark_position"] = isSeen ? position?.rawValue : nil
      draft.own["watermark_repeat"] = isSeen && position == nil ? "1" : nil
      draft.watermarkOffset = isSeen && position != nil && (x != 0 || y != 0) ? (x, y) : nil
    },
  ]

  private static let output: [Option] = [
    ownFlag("strip_metadata sm", "strip", standard: true),
    option(
      "keep_copyright kcr",
      standing: .near("the copyright is kept or dropped with all other metadata")),
    option(
      "strip_color_profile scp", atMost: 1, standing: .near("results are always in sRGB")
    ) { arguments, draft throws(OptionFault) in
      draft.mark("strip_color_profile", if: arguments.flag(0) == false)
    },
    option("preserve_hdr ph", standing: .near("results have 8 bits a channel")),
    option("enforce_thumbnail eth", standing: .ignored("the image itself looks better")),
    whole("quality q", in: 0...100, \.quality),
    option("format_quality fq") { arguments, draft throws(OptionFault) in
      guard arguments.count % 2 == 0 else { throw OptionFault("each format has a quality") }
      for index in stride(from: 0, to: arguments.count, by: 2) {
        draft.qualities[try arguments.format(index)] = try arguments.whole(index + 1, 0...100)
      }
    },
    option(
      "max_bytes mb", atMost: 1,
      standing: .near("the size is reduced, too, if the least quality does not suffice")
    ) { arguments, draft throws(OptionFault) in
      guard let bytes = try arguments.whole(0, sides) else { return }
      draft.own["maxbytes"] = bytes == 0 ? nil : "\(bytes)"
    },
    option("format f ext", atMost: 1, standing: .near("ico, bmp and heic are refused")) {
      arguments, draft throws(OptionFault) in
      if arguments.text(0) != nil { draft.format = try arguments.format(0) }
    },
    option(
      "skip_processing skp", standing: .near("the source's format is known by its name only")
    ) { arguments, draft throws(OptionFault) in
      draft.skipped = []
      for index in 0..<arguments.count where arguments.text(index) != nil {
        draft.skipped.insert(try arguments.format(index))
      }
    },
    flag("raw", into: \.isRaw),
    option("cachebuster cb", standing: .ignored("sources are revalidated, and can be purged")),
    whole("expires exp", in: 0...253_402_300_799, \.expiry),
    option("filename fn", atMost: 2) { arguments, draft throws(OptionFault) in
      guard var name = arguments.text(0) else { return }
      if arguments.flag(1) == true {
        guard let text = Base64URL.decode(name).flatMap({ String(validating: $0, as: UTF8.self) }),
          !text.utf8.contains(0)
        else { throw OptionFault("the name is no base64url of a text") }
        name = text
      }
      draft.own["filename"] = name.isEmpty ? nil : String(name.prefix(100))
    },
    ownFlag("return_attachment att", "download", standard: false),
    option("preset pr") { arguments, draft throws(OptionFault) in
      draft.presets = arguments.texts
    },
  ]

  /// Options that only operators may set, unless the door allows limits.
  static let limits: [Option] =
    [
      option("max_result_dimension mrd", atMost: 1) { arguments, draft throws(OptionFault) in
        guard let side = try arguments.whole(0, sides) else { return }
        draft.own["limitside"] =
          side == 0 ? nil : "\(min(side, Sizing.sideRange.upperBound))"
      }
    ]
    + [
      "max_src_resolution msr", "max_src_file_size msfs", "max_animation_frames maf",
      "max_animation_frame_resolution mafr",
    ].map { option($0, standing: .ignored("the limits of Pictor's configuration hold")) }
}

extension ImgproxyDoor {
  /// Returns an option by its names, with at most so many arguments, which only a reader
  /// reads.
  static func option(
    _ names: String, atMost count: Int = .max, standing: DoorStanding = .exact,
    read: @escaping @Sendable (ImgproxyArguments, inout ImgproxyDraft) throws(OptionFault) -> Void =
      { _, _ throws(OptionFault) in }
  ) -> Option {
    Option(names: names.split(separator: " ").map(String.init), standing: standing) {
      texts, draft throws(OptionFault) in
      guard texts.count <= count else {
        throw OptionFault("at most \(count) arguments are allowed")
      }
      try read(ImgproxyArguments(texts: texts), &draft)
    }
  }

  /// The whole numbers that are read. Above Pictor's ranges, they are limited to these.
  private static let sides = 0...1_000_000_000

  private static func whole(
    _ names: String, in range: ClosedRange<Int>, _ path: Path<Int>,
    _ standing: DoorStanding = .exact
  ) -> Option {
    option(names, atMost: 1, standing: standing) { arguments, draft throws(OptionFault) in
      let value = try arguments.whole(0, range)
      if let value { draft[keyPath: path] = value }
    }
  }

  private static func flag(_ names: String, into path: Path<Bool>) -> Option {
    option(names, atMost: 1) { arguments, draft throws(OptionFault) in
      if let value = arguments.flag(0) { draft[keyPath: path] = value }
    }
  }

  /// A flag that is a flag of Pictor.
  private static func ownFlag(
    _ names: String, _ own: String, standard: Bool
  ) -> Option {
    option(names, atMost: 1) { arguments, draft throws(OptionFault) in
      guard let value = arguments.flag(0) else { return }
      draft.own[own] = value == standard ? nil : value ? "1" : "0"
    }
  }

  /// A sigma, which has no effect below a range, and Pictor's most above it.
  private static func strength(
    _ names: String, _ range: ClosedRange<Double>
  ) -> Option {
    let name = String(names.prefix { $0 != " " })
    return option(names, atMost: 1, standing: .near("at most \(range.upperBound)")) {
      arguments, draft throws(OptionFault) in
      guard let sigma = try arguments.number(0, 0...1_000_000) else { return }
      draft.own[name] =
        sigma < range.lowerBound ? nil : Argument.written(min(sigma, range.upperBound))
      draft.mark(name, if: sigma > range.upperBound)
    }
  }

  /// Reads one flag across and one down.
  private static func axes(_ arguments: ImgproxyArguments, from index: Int) -> String? {
    let axes =
      (arguments.flag(index) == true ? "h" : "") + (arguments.flag(index + 1) == true ? "v" : "")
    return axes.isEmpty ? nil : axes
  }

  private static func readFit(
    _ arguments: ImgproxyArguments, _ draft: inout ImgproxyDraft
  ) throws(OptionFault) {
    guard let name = arguments.text(0) else { return }
    guard let fit = ImgproxyDraft.fits[name] else {
      throw OptionFault("'\(name.prefix(32))' is none of fit, fill, fill-down, force, auto")
    }
    draft.fit = fit
  }

  /// Reads `WIDTH:HEIGHT:ENLARGE:EXTEND…`.
  private static func readSize(
    _ arguments: ImgproxyArguments, from index: Int, _ draft: inout ImgproxyDraft
  ) throws(OptionFault) {
    draft.width = try arguments.whole(index, sides) ?? draft.width
    draft.height = try arguments.whole(index + 1, sides) ?? draft.height
    draft.enlarges = arguments.flag(index + 2) ?? draft.enlarges
    try readExtend(arguments, from: index + 3, \.extend, &draft)
  }

  /// Reads `EXTEND:GRAVITY…`.
  private static func readExtend(
    _ arguments: ImgproxyArguments, from index: Int, _ path: Path<ImgproxyGravity?>,
    _ draft: inout ImgproxyDraft
  ) throws(OptionFault) {
    let gravity = try arguments.gravity(index + 1, maySearch: false) ?? ImgproxyGravity()
    if let extends = arguments.flag(index) { draft[keyPath: path] = extends ? gravity : nil }
  }
}
