// IPX: the addresses of ipx, the image server of Nuxt, and its modifiers, sharp's operations.

import Core

/// The door of ipx 4: `/MODIFIERS/ID` and `/_ipx/MODIFIERS/ID`.
struct IPXDoor: PeerDoor {
  let name = Peer.ipx.rawValue
  let rows = IPXDraft.table.rows
  private let sources: SourceRules
  private static let prefix = "/_ipx/"

  init(_ options: DoorOptions) { sources = SourceRules(options) }

  /// Whether the path begins with `/_ipx/`, or with `_` or known modifiers and has an ID.
  func claims(_ address: DoorAddress) -> Bool {
    guard !address.path.hasPrefix(Self.prefix) else { return true }
    let (modifiers, id) = Self.parts(of: address.path)
    return !id.isEmpty
      && (modifiers == "_"
        || Self.split(modifiers).contains { IPXDraft.table[$0.name] != nil })
  }

  /// Returns the modifiers and the ID, still encoded.
  private static func parts(of path: String) -> (modifiers: Substring, id: Substring) {
    let rest = path.dropFirst(path.hasPrefix(prefix) ? prefix.count : 1)
    let modifiers = rest.prefix { $0 != "/" }
    return (modifiers, rest.dropFirst(modifiers.count + 1))
  }

  /// Returns the modifiers, whose arguments `_`, `=` or `:` separate.
  private static func split(_ modifiers: Substring) -> [(name: String, arguments: [String])] {
    modifiers.split { $0 == "&" || $0 == "," }.map { modifier in
      let parts = modifier.split(omittingEmptySubsequences: false) { "_=:".contains($0) }
      return (String(parts[0]), parts.dropFirst().map(\.percentDecoded))
    }
  }

  /// Unknown modifiers are ignored; the query counts for nothing.
  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    let (modifiers, encoded) = Self.parts(of: address.path)
    let id = encoded.percentDecoded
    func check(_ isThere: Bool, _ code: String, _ message: String) throws(DoorFault) {
      if !isThere { throw .answered(answer(400, code, reason: message)) }
    }
    try check(!modifiers.isEmpty, "IPX_MISSING_MODIFIERS", "Modifiers are missing: \(id)")
    try check(
      id.contains { $0 != "/" }, "IPX_MISSING_ID", "Resource id is missing: \(address.path)")
    var draft = IPXDraft()
    for (name, arguments) in modifiers == "_" ? [] : Self.split(modifiers) {
      do {
        if try IPXDraft.table.read(name, arguments, into: &draft) { continue }
      } catch {
        let fault = error.of("\(name)_\(arguments.joined(separator: "_"))")
        try check(
          !arguments.isEmpty || fault.kind != .invalid, "IPX_MISSING_MODIFIER_ARG", fault.reason)
        throw fault
      }
      draft.note(name, .ignored("ipx has no such modifier"))
    }
    // The ID is decoded, so a path is encoded again; a URL has its query.
    let isWeb = SourceRules.isWeb(id)
    let path = isWeb ? id : "/" + PercentEncoding.encodePath(String(id.drop { $0 == "/" }))
    do { draft["url"] = try sources.url(of: path) } catch {
      guard error.kind == .forbidden, !isWeb else { throw error }
      throw .answered(answer(403, "IPX_FORBIDDEN_PATH", reason: error.reason))
    }
    draft.finish()
    return draft.translation
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    switch fault.kind {
    case .source: answer(400, "IPX_INVALID_URL", reason: fault.reason)
    case .forbidden: answer(403, "IPX_FORBIDDEN_HOST", reason: fault.reason)
    default: answer(400, "IPX_INVALID_MODIFIER_ARG", reason: fault.reason)
    }
  }

  func status(of error: ImageError) -> (Int, String) {
    switch error.cause {
    case .sourceNotFound: (404, "IPX_RESOURCE_NOT_FOUND")
    case .sourceError(let status, _, _):
      (400...599 ~= status ? status : 502, "IPX_FETCH_ERROR")
    case .tooManyRedirects: (502, "IPX_TOO_MANY_REDIRECTS")
    case .invalidURL: (400, "IPX_INVALID_URL")
    case .forbiddenSource: (403, "IPX_FORBIDDEN_HOST")
    case .unsupportedFormat, .unsupportedKind, .undecodable: (400, "IPX_INVALID_IMAGE")
    case .invalidParameter: (400, "IPX_INVALID_MODIFIER")
    default: (error.status, "IPX_ERROR")
    }
  }

  func answer(_ status: Int, _ code: String, reason: String) -> DoorAnswer {
    DoorAnswer(
      status: status, contentType: "application/json",
      body: "{\"status\":\(status),\"statusText\":\(code.json),\"message\":\(reason.json)}",
      reason: reason)
  }
}

private struct IPXDraft: OptionDraft {
  var translation = DoorTranslation()
  var width: Int?
  var height: Int?
  var enlarges = false
  var isUpright = false
  var isAnimated = false
  var hasFormat = false
  var flips = false
  var flops = false
  /// ipx clamps what is asked for to this.
  private static let longestSide = 8_192

  /// Writes what depends on several modifiers.
  mutating func finish() {
    self["scale"] = "1"
    // sharp turns by EXIF only if asked to.
    if !isUpright { self["orient"] = "0" }
    if let longest = [width, height].compactMap({ $0 }).max() {
      let ratio = min(1, Double(Self.longestSide) / Double(longest))
      func pixels(_ side: Int) -> String { "\(max(1, Int((Double(side) * ratio).rounded())))" }
      self["w"] = width.map(pixels)
      self["h"] = height.map(pixels)
    }
    let fit = self["fit"] ?? "cover"
    switch fit {
    case _ where width == nil || height == nil, "inside": self["fit"] = nil
    case "cover" where !enlarges: self["fit"] = "cover-down"
    default: self["fit"] = fit
    }
    if width != nil || height != nil {
      if enlarges {
        self["enlarge"] = "1"
      } else if self["fit"] == "contain" || self["fit"] == "fill" || fit == "inside" {
        note("fit", .near("ipx shrinks the box into a smaller source; without enlarge here"))
      }
    }
    if !hasFormat {
      self["format"] = "source"
      self["pass"] = "vector"
    } else if !isAnimated, self["format"] != "gif" {
      self["animated"] = "0"
    }
    self["flip"] = Self.axes(across: flops, down: flips)
    let fills = self["pad"] != nil || self["fit"] == "contain" || self["rotate"] != nil
    if fills || self["format"] == "jpeg", self["background"] == nil {
      self["background"] = "000000"
    }
  }
}

extension IPXDraft {
  private typealias Option = DoorOption<Self>
  private typealias Text = Reader<String?>

  private static let sides = 1...1_000_000
  private static let factor = Text.number(0...1_000_000, neutral: 1)
  private static let hue = Text.degrees(-999_999...999_999)
  private static let places = Text.choice(
    "top north=top 1=top right-top northeast=right-top 5=right-top right east=right 2=right "
      + "right-bottom southeast=right-bottom 6=right-bottom bottom south=bottom 3=bottom "
      + "left-bottom southwest=left-bottom 7=left-bottom left west=left 4=left left-top "
      + "northwest=left-top 8=left-top center= centre= 0= entropy 16=entropy attention "
      + "17=attention")

  private static func four(
    _ given: Arguments, in range: ClosedRange<Int>
  ) throws(DoorFault) -> [Int] {
    try given.texts.prefix(4).joined(separator: "_").wholes(4, between: "_", in: range)
  }

  /// The modifiers, in the order of ipx' own page.
  static let table = OptionTable<Self>([
    Option("width w", into: \.width, .whole(sides)),
    Option("height h", into: \.height, .whole(sides)),
    Option("resize s") { given, draft throws(DoorFault) in
      let parts = given[0].split(separator: "x", omittingEmptySubsequences: false)
      guard (1...2).contains(parts.count), let last = parts.last else {
        throw .invalid("WIDTHxHEIGHT")
      }
      draft.width = try parts[0].whole(in: sides)
      draft.height = try last.whole(in: sides)
    },
    Option("kernel=lanczos3"),
    Option("kernel", .ignored("all is resized with lanczos3")),
    Option("fit", .choice("contain cover= fill inside outside")),
    Option("position pos") { given, draft throws(DoorFault) in
      draft["position"] = try places.read(String(given[0].map { $0 == " " ? "-" : $0 }))
    },
    Option("trim") { given, draft throws(DoorFault) in
      let threshold = given[0].isEmpty ? 10 : try given[0].number(in: 0...1_000_000)
      draft["trim"] = threshold == 0 ? nil : "\(Int(threshold.rounded()).clamped(to: 1...255))"
    },
    Option("extend") { given, draft throws(DoorFault) in
      let edges = try four(given, in: 0...10_000)
      let with = given.count > 4 ? given[4] : "background"
      guard ["background", "copy", "repeat", "mirror"].contains(with) else {
        throw .invalid("background, copy, repeat or mirror")
      }
      guard with == "background" else { throw .unsupported("edges have the background only") }
      if edges.contains(where: { $0 > 0 }) {
        draft["pad"] = edges.map { "\($0)" }.joined(separator: ",")
      }
    },
    Option("background b", .color(Colors.css)),
    Option("extract crop") { given, draft throws(DoorFault) in
      let area = try four(given, in: 0...1_000_000)
      guard area[2] > 0, area[3] > 0 else { throw .invalid("a width and a height above 0") }
      draft["crop"] = area.map { "\($0)" }.joined(separator: ",")
    },
    Option("format=heif format=heic f=heif f=heic", .refused("HEIC is read, and not written")),
    Option(
      "format=auto f=auto", .near("imaging.auto_formats decides; else JPEG, or PNG with alpha")
    ) { _, draft in (draft.hasFormat, draft["format"]) = (true, "auto") },
    Option("format f") { given, draft in
      // An unknown format is the source's, and SVG stays one.
      let formats = Text.choice("jpg=jpeg jpeg png webp avif gif tiff")
      draft["format"] = try? formats.read(given[0])
      draft.hasFormat = draft["format"] != nil
    },
    Option("quality q", .whole(1...100)),
    Option("rotate= autoorient", into: \.isUpright, .always(true)),
    Option("rotate", .degrees(-3_600...3_600)),
    Option("enlarge", into: \.enlarges, .flag),
    Option("flip", into: \.flips, .flag),
    Option("flop", into: \.flops, .flag),
    Option("sharpen=", near: "a sigma of 0.5", .always("0.5")),
    Option("sharpen") { given, draft throws(DoorFault) in
      draft["sharpen"] = max(0.1, try given[0].number(in: 0.000_001...10)).written
      if given.count > 1 { draft.note("sharpen", .near("one strength for flat and jagged areas")) }
    },
    Option("blur=", near: "a sigma of 0.5", .always("0.5")),
    Option("blur", .number(0.3...1_000, within: 0.3...250)),
    Option("gamma", near: "after the resize only; one gamma", .gamma),
    Option("negate", near: "alpha stays", .flag),
    Option("tint", near: "the colour lies half transparent on the image", .tint(Colors.css)),
    Option("grayscale greyscale", .flag),
    Option("flatten", .near("formats with alpha keep it")),
    Option("modulate") { given, draft throws(DoorFault) in
      if given.count > 3, try given[3].number(in: -1_000...1_000) != 0 {
        throw .unsupported("lightness is not added here")
      }
      let names = [("brightness", factor), ("saturation", factor), ("hue", hue)]
      for (argument, (name, reader)) in zip(given.texts, names) where !argument.isEmpty {
        draft[name] = try reader.read(argument)
      }
    },
    Option("brightness", factor),
    Option("saturation", factor),
    Option("hue", hue),
    Option(
      """
      median dilate erode clahe unflatten normalize normalise threshold linear lightness opacity
      """, .refused("/image has no such effect")),
    Option("animated a", into: \.isAnimated, .always(true)),
  ])
}
