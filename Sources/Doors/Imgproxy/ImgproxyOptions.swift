// ImgproxyOptions: the options of imgproxy, and what they become.

import Core

extension ImgproxyDraft {
  static let table = OptionTable(size + place + look + output + limits + pro)

  private typealias Option = DoorOption<Self>
  private typealias Path<Value> = WritableKeyPath<Self, Value> & Sendable

  private static let size: [Option] = [
    Option(
      "resize rs", atMost: 8, mostly: "force shrinks each side by itself; sides are at most 65535"
    ) { given, draft throws(DoorFault) in
      draft.fit = try given.fit(0) ?? draft.fit
      try draft.readSize(given, from: 1)
    },
    Option("size s", atMost: 7) { given, draft throws(DoorFault) in
      try draft.readSize(given, from: 0)
    },
    set("resizing_type rt", into: \.fit) { given throws(DoorFault) in try given.fit(0) },
    whole("width w", in: sides, \.width), whole("height h", in: sides, \.height),
    whole("min-width mw", in: sides, \.minWidth, mostly: "whole points before zoom"),
    whole("min-height mh", in: sides, \.minHeight, mostly: "whole points before zoom"),
    Option(
      "zoom z", atMost: 2,
      mostly: "two factors only without width and height, or with both and force"
    ) { given, draft throws(DoorFault) in
      draft.zoom.x = try given.factor(0) ?? draft.zoom.x
      draft.zoom.y = try given.factor(1) ?? draft.zoom.x
    },
    set(
      "dpr", into: \.dpr,
      mostly: "edges, boxes and offsets have it also where the source has few pixels"
    ) { given throws(DoorFault) in try given.factor(0) },
    set("enlarge el", into: \.enlarges) { $0.flag(0) },
    extend("extend ex", into: \.extend),
    extend("extend_aspect_ratio extend_ar exar", into: \.extendRatio),
  ]

  private static let place: [Option] = [
    Option("gravity g", mostly: "sm may find a part some pixels away; whole points") {
      given, draft throws(DoorFault) in
      draft.gravity = try given.gravity(0, maySearch: true) ?? draft.gravity
    },
    Option("crop c", mostly: "gravity sm cuts around the centre") {
      given, draft throws(DoorFault) in
      draft.crop = (
        try given.number(0, 0...1e7) ?? 0, try given.number(1, 0...1e7) ?? 0,
        try given.gravity(2, maySearch: true)
      )
    },
    Option(
      "trim t", .near("whole thresholds from 1 to 255; after crop; ff00ff is the corner's colour"),
      atMost: 4
    ) { given, draft throws(DoorFault) in
      guard let threshold = try given.number(0, 0...1_000_000) else { return }
      draft["trim"] = "\(wholePixels(threshold).clamped(to: 1...255))"
      // imgproxy trims transparent edges by this colour. The corner's is transparent there, too.
      let color = try given.color(1)
      draft["trim_color"] = color == "ff00ff" ? nil : color
      draft["trim_equal"] = axes(across: given.flag(2) ?? false, down: given.flag(3) ?? false)
    },
    Option("padding pd", atMost: 4, mostly: "whole points before zoom") {
      given, draft throws(DoorFault) in
      let across = try given.whole(1, Edges.range)
      if let all = try given.whole(0, Edges.range), let edges = Edges([all]) {
        draft.padding = edges
      }
      draft.padding.right = across ?? draft.padding.right
      draft.padding.bottom = try given.whole(2, Edges.range) ?? draft.padding.bottom
      draft.padding.left = try given.whole(3, Edges.range) ?? across ?? draft.padding.left
    },
    flag("auto_rotate ar", to: "orient", standard: true),
    own("rotate rot", to: "rotate", in: -36_000...36_000) { degrees throws(DoorFault) in
      guard degrees % 90 == 0 else { throw .invalid("\(degrees) is no multiple of 90") }
      return degrees.turned == 0 ? nil : degrees.turned
    },
    Option("flip fl", atMost: 2) { given, draft in
      draft["flip"] = axes(across: given.flag(0) ?? false, down: given.flag(1) ?? false)
    },
  ]

  private static let look: [Option] = [
    Option("background bg", atMost: 3) { given, draft throws(DoorFault) in
      guard given.count != 2 else { throw .invalid("a colour has 1 or 3 arguments") }
      var color = given.count == 3 ? "" : try given.color(0)
      for index in 0..<3 where given.count == 3 {
        color? += (try given.whole(index, 0...255) ?? 0).hexadecimal(2)
      }
      (draft["background"], draft["flatten"]) = (color, color.map { _ in "1" })
    },
    strength("blur bl", Effects.blurRange), strength("sharpen sh", Effects.sharpenRange),
    own("pixelate pix", to: "pixelate") {
      $0 < 2 ? nil : min($0, Effects.pixelateRange.upperBound)
    },
    Option(
      "watermark wm", atMost: 5,
      mostly: "the watermark 'default', inside the image"
    ) { given, draft throws(DoorFault) in
      let opacity = try given.number(0, 0...1) ?? 0
      let name = given.text(1) ?? "ce"
      let position = ImgproxyGravity.positions[name]
      guard name != "ch" else {
        throw .invalid("imgproxy Pro: there is no chessboard of watermarks")
      }
      guard name == "re" || position != nil else {
        throw .invalid("'\(name.prefix(32))' is no place of a watermark")
      }
      let x = try given.number(2, ImgproxyGravity.offsets) ?? 0
      let y = try given.number(3, ImgproxyGravity.offsets) ?? 0
      let scale = min(try given.number(4, 0...1_000_000) ?? 0, 1)
      let isSeen = opacity > 0
      draft["watermark"] = isSeen ? "default" : nil
      draft["watermark_opacity"] = isSeen && opacity < 1 ? opacity.written : nil
      draft["watermark_scale"] = isSeen && scale > 0 ? scale.written : nil
      // Tiles go on from the middle.
      draft["watermark_position"] = isSeen ? (position ?? .center).rawValue : nil
      draft["watermark_repeat"] = isSeen && position == nil ? "xy" : nil
      let gap =
        Int(x.clamped(to: 0...65_535)).description + ","
        + Int(y.clamped(to: 0...65_535)).description
      draft["watermark_gap"] = isSeen && position == nil && gap != "0,0" ? gap : nil
      draft.watermarkOffset = isSeen && position != nil && (x != 0 || y != 0) ? (x, y) : nil
    },
  ]

  private static let output: [Option] = [
    flag("strip_metadata sm", to: "strip", standard: true),
    Option(
      "keep_copyright kcr", .near("the copyright is kept or dropped with all other metadata")),
    Option("strip_color_profile scp", atMost: 1) { given, draft in
      draft["profile"] = given.flag(0) == false ? "keep" : nil
    },
    Option("preserve_hdr ph", .near("results have 8 bits a channel")),
    Option("enforce_thumbnail eth", .ignored("the image itself looks better")),
    whole("quality q", in: 0...100, \.quality),
    Option("format_quality fq") { given, draft throws(DoorFault) in
      guard given.count % 2 == 0 else { throw .invalid("each format has a quality") }
      for index in stride(from: 0, to: given.count, by: 2) {
        draft.qualities[try given.format(index)] = try given.whole(index + 1, 0...100)
      }
    },
    own(
      "max_bytes mb", to: "maxbytes",
      .near("the size is reduced, too, if the least quality does not suffice")
    ) { $0 == 0 ? nil : $0 },
    Option("format f ext", atMost: 1, mostly: "ico, bmp and heic are refused") {
      given, draft throws(DoorFault) in
      if given.text(0) != nil { draft.format = try given.format(0) }
    },
    Option("skip_processing skp", .near("the source's format is known by its name only")) {
      given, draft throws(DoorFault) in
      draft.skipped = []
      for index in 0..<given.count where given.text(index) != nil {
        draft.skipped.insert(try given.format(index))
      }
    },
    set("raw", into: \.isRaw) { $0.flag(0) },
    Option("cachebuster cb", .ignored("sources are revalidated, and can be purged")),
    whole("expires exp", in: 0...253_402_300_799, \.expiry),
    Option("filename fn", atMost: 2) { given, draft throws(DoorFault) in
      guard let text = given.text(0) else { return }
      guard let name = given.flag(1) == true ? Base64URL.text(text) : text else {
        throw .invalid("the name is no base64url of a text")
      }
      draft["filename"] = name.isEmpty ? nil : String(name.prefix(100))
    },
    flag("return_attachment att", to: "download", standard: false),
    Option("preset pr") { given, draft in draft.presets = given.texts },
  ]

  /// Options that only operators may set, unless the door allows limits.
  static let limits: [DoorOption<Self>] = [
    own("max_result_dimension mrd", to: "limitside") {
      $0 == 0 ? nil : min($0, Sizing.sideRange.upperBound)
    },
    Option("max_src_resolution msr", configured), Option("max_src_file_size msfs", configured),
    Option("max_animation_frames maf", configured),
    Option("max_animation_frame_resolution mafr", configured),
  ]
  private static let configured = DoorStanding.ignored(
    "the limits of Pictor's configuration hold")

  /// The options of imgproxy Pro, which the free imgproxy refuses.
  private static let pro =
    options(refused) { .refused("imgproxy Pro: " + $0) }
    + options(ignored) { .ignored("imgproxy Pro: " + $0) }

  private static func options(_ table: String, standing: (String) -> DoorStanding) -> [Option] {
    table.split(separator: "\n").flatMap { line in
      let reason = line.prefix { $0 != ":" }
      return line.dropFirst(reason.count + 1).split(separator: ",").map {
        Option(String($0), standing(String(reason)))
      }
    }
  }

  /// A reason in each line, and the options that have it.
  private static let refused = """
    a crop has its own shape: crop_aspect_ratio crop_ar car
    no objects are detected: objects_position obj_pos op, crop_objects, blur_detections bd, \
    draw_detections dd
    the background is opaque: background_alpha bga
    its scale or its curve is another here: adjust a, brightness br, contrast co, saturation sa, \
    monochrome mc, duotone dt, colorize col
    the whole image is treated alike: blur_areas ba, progressive_blur pbl, gradient gr
    watermarks are the operator's images: watermark_url wmu, watermark_text wmt, \
    watermark_size wms, watermark_rotate wm_rot wmr, watermark_shadow wmsh
    vectors are sent as they are: style st
    results are in sRGB, or keep their profile: color_profile cp icc
    an animation is whole, of pages the first is used: page pg, pages pgs, disable_animation da
    there are no videos: video_thumbnail_second vts, video_thumbnail_keyframes vtk, \
    video_thumbnail_tile vtt, video_thumbnail_animation vta
    fallback images are the operator's: fallback_image_url fiu
    sources are not compared with a digest: hashsum hs
    """

  private static let ignored = """
    always Lanczos, as by default: resizing_algorithm ra
    sharpening is that of sharpen: unsharp_masking ush
    browsers do not read it: dpi
    encoders have the operator's quality and effort: autoquality aq, jpeg_options jpgo, \
    png_options pngo, webp_options webpo, avif_options avifo
    """
}

extension ImgproxyDraft {
  /// Above Pictor's ranges, whole numbers are limited to these.
  private static let sides = 0...1_000_000_000

  /// An argument that becomes a property.
  private static func set<Value>(
    _ names: String, into path: Path<Value>, mostly: String? = nil,
    _ read: @escaping @Sendable (Arguments) throws(DoorFault) -> Value?
  ) -> Option {
    Option(names, atMost: 1, mostly: mostly) { given, draft throws(DoorFault) in
      if let value = try read(given) { draft[keyPath: path] = value }
    }
  }

  private static func whole(
    _ names: String, in range: ClosedRange<Int>, _ path: Path<Int>, mostly: String? = nil
  ) -> Option {
    set(names, into: path, mostly: mostly) { given throws(DoorFault) in try given.whole(0, range) }
  }

  /// A whole number that becomes a parameter of Pictor.
  private static func own(
    _ names: String, to parameter: String, in range: ClosedRange<Int> = sides,
    _ standing: DoorStanding = .exact,
    _ value: @escaping @Sendable (Int) throws(DoorFault) -> Int?
  ) -> Option {
    Option(names, standing, atMost: 1) { given, draft throws(DoorFault) in
      guard let number = try given.whole(0, range) else { return }
      draft[parameter] = try value(number).map { "\($0)" }
    }
  }

  /// A flag that is a flag of Pictor.
  private static func flag(_ names: String, to own: String, standard: Bool) -> Option {
    Option(names, atMost: 1) { given, draft in
      guard let value = given.flag(0) else { return }
      draft[own] = value == standard ? nil : value ? "1" : "0"
    }
  }

  /// A sigma, which has no effect below a range, and Pictor's most above it.
  private static func strength(_ names: String, _ range: ClosedRange<Double>) -> Option {
    let name = String(names.prefix { $0 != " " })
    return Option(names, atMost: 1, mostly: "at most \(range.upperBound)") {
      given, draft throws(DoorFault) in
      guard let sigma = try given.number(0, 0...1_000_000) else { return }
      draft[name] = sigma < range.lowerBound ? nil : min(sigma, range.upperBound).written
      draft.mark(name, if: sigma > range.upperBound)
    }
  }

  private static func extend(_ names: String, into path: Path<ImgproxyGravity?>) -> Option {
    Option(
      names,
      mostly: "the place is that of gravity if it cuts; a focal point is a share of the room"
    ) { given, draft throws(DoorFault) in try draft.readExtend(given, from: 0, into: path) }
  }

  /// Reads `WIDTH:HEIGHT:ENLARGE:EXTEND…`.
  private mutating func readSize(_ given: Arguments, from index: Int) throws(DoorFault) {
    width = try given.whole(index, Self.sides) ?? width
    height = try given.whole(index + 1, Self.sides) ?? height
    enlarges = given.flag(index + 2) ?? enlarges
    try readExtend(given, from: index + 3, into: \.extend)
  }

  /// Reads `EXTEND:GRAVITY…`.
  private mutating func readExtend(
    _ given: Arguments, from index: Int, into path: Path<ImgproxyGravity?>
  ) throws(DoorFault) {
    let gravity = try given.gravity(index + 1, maySearch: false) ?? ImgproxyGravity()
    if let extends = given.flag(index) { self[keyPath: path] = extends ? gravity : nil }
  }
}

/// The arguments of imgproxy. An empty one is as if it were absent.
extension Arguments {
  /// Reads `1`, `t` or `true`. Everything else is false, as at the peer.
  func flag(_ index: Int) -> Bool? {
    text(index).map { ["1", "t", "T", "true", "TRUE", "True"].contains($0) }
  }

  /// Reads how the image comes into its box.
  func fit(_ index: Int) throws(DoorFault) -> Fit? {
    guard let name = text(index) else { return nil }
    if let fit = ImgproxyDraft.fits[name] { return fit }
    throw .invalid("'\(name.prefix(32))' is none of fit, fill, fill-down, force, auto")
  }

  /// Reads a number above 0.
  func factor(_ index: Int) throws(DoorFault) -> Double? {
    let value = try number(index, 0...1_000_000)
    guard value != 0 else { throw .invalid("0 is not above 0") }
    return value
  }

  /// Reads a colour as `rgb` or `rrggbb`, and returns the latter.
  func color(_ index: Int) throws(DoorFault) -> String? {
    guard let text = text(index) else { return nil }
    guard text.utf8.count != 8, let color = Color(hexadecimal: text) else {
      throw .invalid("'\(text.prefix(32))' is no colour rgb or rrggbb in hexadecimal")
    }
    return String(color.hexadecimal.dropLast(2))
  }

  func format(_ index: Int) throws(DoorFault) -> String {
    if let format = ImgproxyDraft.formats[self[index]] { return format }
    throw .invalid("'\(self[index].prefix(32))' is no format")
  }

  /// Reads where to cut or to extend, from an index on; `nil` if it is absent.
  func gravity(_ index: Int, maySearch: Bool) throws(DoorFault) -> ImgproxyGravity? {
    guard index < count else { return nil }
    var gravity = ImgproxyGravity()
    let name = text(index) ?? "ce"
    guard !name.hasPrefix("obj") else { throw .invalid("imgproxy Pro: no objects are detected") }
    gravity.position = name == "sm" ? .attention : ImgproxyGravity.positions[name]
    gravity.isFocal = name == "fp"
    let isKnown = gravity.isFocal || gravity.position.map { $0 != .attention || maySearch } ?? false
    guard isKnown, count <= index + (gravity.isSearch ? 1 : 3),
      !gravity.isFocal || count == index + 3
    else { throw .invalid("'\(name.prefix(32))' is no gravity with its offsets") }
    let range = gravity.isFocal ? 0...1 : ImgproxyGravity.offsets
    gravity.x = try number(index + 1, range) ?? 0
    gravity.y = try number(index + 2, range) ?? 0
    return gravity
  }
}
