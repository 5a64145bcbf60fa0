// Cloudflare: the addresses of its image transformations and hosted images, and their options.

import Core

/// The door of Cloudflare: `/cdn-cgi/image/OPTIONS/SOURCE` and
/// `/cdn-cgi/imagedelivery/ACCOUNT/ID/VARIANT`, where a variant is a preset or options.
struct CloudflareDoor: PeerDoor {
  let name = Peer.cloudflare.rawValue
  let rows = CloudflareDraft.table.rows
  private let sources: SourceRules
  private let variants: [String: String]
  private static let remote = "/cdn-cgi/image/"
  private static let hosted = "/cdn-cgi/imagedelivery/"

  init(_ options: DoorOptions) {
    sources = SourceRules(options)
    variants = options.presets
  }

  func claims(_ address: DoorAddress) -> Bool {
    address.path.hasPrefix(Self.remote) || address.path.hasPrefix(Self.hosted)
  }

  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    var draft = CloudflareDraft()
    let source =
      address.path.hasPrefix(Self.hosted)
      ? try readHosted(address, into: &draft) : try readRemote(address, into: &draft)
    let url = try sources.url(of: source)
    try draft.finish()
    draft["url"] = url
    // Elsewhere Cloudflare ignores the option, too.
    let isOfZone = !SourceRules.isWeb(source) && sources.isBelowPublicBase(url)
    if draft.translation.redirectsFailures, !isOfZone {
      draft.translation.redirectsFailures = false
      draft.note("onerror", .ignored("only for sources of the zone"))
    }
    return draft.translation
  }

  /// Returns the source, which has the query, and is not encoded.
  private func readRemote(
    _ address: DoorAddress, into draft: inout CloudflareDraft
  ) throws(DoorFault) -> String {
    guard let (options, tail) = address.path.dropFirst(Self.remote.count).cutAtSlash else {
      throw .invalid("the address has no source")
    }
    try draft.read(String(options))
    let start = tail.prefix(8).lowercased()
    let isEncoded = start.hasPrefix("http%3a") || start.hasPrefix("https%3a")
    let source = isEncoded ? tail.percentDecoded : String(tail)
    guard !("/" + source).contains("/cdn-cgi/image") else {
      throw .answered(answer(508, resize(9403), reason: "the source is a resized image"))
    }
    return address.query.isEmpty ? source : source + "?" + address.query
  }

  /// Returns the source: the image's identifier, below the base URL.
  private func readHosted(
    _ address: DoorAddress, into draft: inout CloudflareDraft
  ) throws(DoorFault) -> String {
    let parts = address.path.dropFirst(Self.hosted.count).split(separator: "/")
    guard parts.count >= 3, let variant = parts.last else {
      throw .answered(answer(404, fetch(9431), reason: "the path is ACCOUNT/ID/VARIANT"))
    }
    guard !address.query.queryItems().contains(where: { $0.name == "sig" }) else {
      throw .denied("sig: signatures of private images are not verified here")
    }
    draft["format"] = "auto"
    let hasOptions = variant.contains("=") || variant.percentDecoded.contains("=")
    guard let options = hasOptions ? String(variant) : variants[variant.percentDecoded] else {
      let reason = "the variant '\(variant)' is not among the presets"
      throw .answered(answer(404, fetch(9431), reason: reason))
    }
    try draft.read(options)
    return "/" + parts.dropFirst().dropLast().joined(separator: "/")
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    switch fault.kind {
    case .invalid, .unsupported: answer(400, Self.options, reason: fault.reason)
    case .denied: answer(403, fetch(9425), reason: fault.reason)
    case .source: answer(403, fetch(9406), reason: fault.reason)
    case .forbidden: answer(403, fetch(9401), reason: fault.reason)
    }
  }

  /// The codes are those of Cloudflare's public table.
  func status(of error: ImageError) -> (Int, String) {
    switch error.cause {
    case .invalidURL: (403, fetch(9406))
    case .forbiddenSource: (403, fetch(9401))
    case .sourceNotFound: (404, fetch(9404))
    case .sourceError(let status, _, _):
      400...499 ~= status ? (status, fetch(9408)) : (502, fetch(9509))
    // 522 to 524 are Cloudflare's own; they are 504 here.
    case .sourceUnreachable: (504, fetch(9510))
    case .sourceTimeout: (504, fetch(9504))
    case .sourceTLS, .sourceIncomplete: (502, fetch(9402))
    case .sourceTooLarge: (413, fetch(9402))
    case .tooManyRedirects: (400, fetch(9421))
    case .unsupportedFormat, .unsupportedKind: (415, resize(9412))
    case .undecodable: (422, resize(9516))
    case .tooManyPixels, .tooManyFrames, .tooCostly: (403, resize(9413))
    case .overloaded, .outOfMemory, .draining, .revoked: (503, resize(9522))
    case .rateLimited, .tooManyAttempts: (429, resize(9422))
    case .deadlineExceeded, .imagingTimeout: (504, resize(9529))
    case .internal: (500, resize(9523))
    default: (error.status, Self.options)
    }
  }

  private static let options = "9401: Missing or invalid resizing parameters"
  private func fetch(_ code: Int) -> String { "\(code): Could not fetch the image" }
  private func resize(_ code: Int) -> String { "\(code): Could not resize the image" }

  func answer(_ status: Int, _ message: String, reason: String) -> DoorAnswer {
    let code = HeaderField("Cf-Resized", value: "err=\(message.prefix { $0 != ":" })")
    return DoorAnswer(
      status: status, body: "ERROR \(message): \(reason)", fields: [code].compactMap(\.self),
      reason: reason)
  }
}

private struct CloudflareDraft: OptionDraft {
  var translation = DoorTranslation()
  var scale: Double?
  var fit: String?
  var flip: String?
  /// Cloudflare's `compression`.
  var fast: String?
  /// Pixels cut off, by side; or the sides of what is kept.
  var cut: [String: Int] = [:]

  /// How the fits are named here, and whether they enlarge.
  private static let fits = [
    "contain": (nil, true), "cover": ("cover", true), "crop": ("cover", false),
    "aspect-crop": ("cover-down", false), "pad": ("contain", true), "squeeze": ("fill", true),
  ]

  /// Reads options between commas, but not in parentheses. Unknown ones are ignored.
  mutating func read(_ text: String) throws(DoorFault) {
    let options = text.contains("=") ? text : text.percentDecoded
    let parts = options.commaParts.filter { !$0.isEmpty }
    guard parts.contains(where: { $0.contains("=") }) else {
      throw .invalid("at least one option is required")
    }
    for part in parts {
      let name = part.prefix { $0 != "=" }
      let value = part.dropFirst(name.count + 1).percentDecoded
      let key = name.percentDecoded
      do {
        if try Self.table.read(key, [value], into: &self) { continue }
      } catch { throw error.of("\(key)='\(value)'") }
      note(key, .ignored("Cloudflare has no such option"))
    }
  }

  /// Writes what depends on several options.
  mutating func finish() throws(DoorFault) {
    self["scale"] = (scale ?? 1).written
    // SVG is never rendered.
    self["pass"] = "vector"
    if let fit, let (name, enlarges) = Self.fits[fit] {
      self["fit"] = name
      self["enlarge"] = enlarges ? "1" : nil
    }
    switch self["format"] {
    case nil: self["format"] = "source"
    case "auto" where fast != nil, "avif" where fast != nil, "webp" where fast != nil,
      "baseline-jpeg":
      self["format"] = "jpeg"
    case "jpeg": self["progressive"] = "1"
    case "webp" where self["quality"] == "100": self["lossless"] = "1"
    default: break
    }
    if self["quality"] == nil { (self["q_jpeg"], self["q_webp"]) = ("85", "85") }
    // Cloudflare flips before it turns.
    let isQuarter = self["rotate"] == "90" || self["rotate"] == "270"
    self["flip"] = isQuarter && flip != "hv" ? flip.map { $0 == "h" ? "v" : "h" } : flip
    if cut.values.contains(where: { $0 > 0 }) { self["crop"] = try crop() }
  }

  /// Returns the part that a trim keeps.
  private func crop() throws(DoorFault) -> String {
    guard cut["right", default: 0] == 0, cut["bottom", default: 0] == 0 else {
      throw .unsupported("trim: cutting right and bottom needs the source's size")
    }
    guard self["rotate"] == nil, flip == nil else {
      throw .unsupported("trim: not together with rotate or flip")
    }
    // Without a width or a height, up to the edge: more than any source has.
    let rest = Selection.cropRange.upperBound
    return [("left", 0), ("top", 0), ("width", rest), ("height", rest)].map { side, other in
      "\(cut[side].map { Int((Double($0) * (scale ?? 1)).rounded()) } ?? other)"
    }.joined(separator: ",")
  }
}

extension CloudflareDraft {
  private typealias Option = DoorOption<Self>

  /// A factor; 0 changes nothing.
  private static let factor = Reader<String?>.number(0...1_000, neutral: 0, 1)

  private static func trim(_ side: String, from least: Int = 0) -> Option {
    Option("trim." + side, into: \.cut[side], .whole(least...100_000))
  }

  /// The options, as their page has them.
  static let table = OptionTable<Self>([
    Option("anim", to: "animated", .choice("true= false=0")),
    Option("background", .color(Colors.css)),
    Option(
      "blur", near: "the radius is taken as the sigma",
      .number(0...250, within: 0.3...250, neutral: 0)),
    Option(
      "border border.color border.width border.top border.right border.bottom border.left",
      .refused("of Workers only; /image has pad")),
    Option("brightness", factor),
    Option("compression", into: \.fast, near: "JPEG for auto, AVIF and WebP", .choice("fast")),
    Option("contrast", factor),
    Option("dpr", into: \.scale, .number(0.01...10)),
    Option(
      "fit=crop", into: \.fit, near: "a source larger on one side only is cropped", .text),
    Option("fit=scale-up", .refused("nothing here only enlarges")),
    Option("fit", into: \.fit, .choice("scale-down= contain cover aspect-crop pad squeeze")),
    Option("flip", into: \.flip, .choice("h v hv vh=hv")),
    Option(
      "format=json f=json", into: \.translation.isDescription,
      near: "the description has the form of /info", .always(true)),
    Option("format f", .choice("auto avif webp jpeg baseline-jpeg png")),
    Option("gamma", .number(0...1_000, within: 0.1...10, neutral: 0, 1)),
    Option(
      "gravity=auto g=auto", to: "position", near: "another measure of attention",
      .always("attention")),
    Option(
      "gravity=face g=face", to: "position", near: "frontal faces, else attention",
      .always("faces")),
    Option("gravity g") { given, draft throws(DoorFault) in
      let parts = given[0].split(separator: "x", omittingEmptySubsequences: false)
      if parts.count == 2 {
        let point = try parts.map { part throws(DoorFault) in try part.number(in: 0...1).share }
        draft["position"] = point.joined(separator: ",")
      } else {
        let places = Reader<String?>.choice("left right top bottom center=")
        draft["position"] = try places.read(given[0])
      }
    },
    Option("height h", to: "h", .side),
    Option("metadata=copyright", .near("the copyright is removed, too")),
    Option("metadata", to: "strip", .choice("none= keep=0")),
    Option("onerror") { given, draft throws(DoorFault) in
      _ = try Reader<String?>.choice("redirect").read(given[0])
      draft.translation.redirectsFailures = true
    },
    Option(
      """
      quality=high quality=medium-high quality=medium-low quality=low q=high q=medium-high \
      q=medium-low q=low
      """, to: "quality", near: "a fixed quality: 90, 80, 65 or 50",
      .choice("high=90 medium-high=80 medium-low=65 low=50")),
    Option("quality q", .whole(1...100)),
    Option("rotate", .choice("90 180 270 0= 360=")),
    Option("saturation", .number(0...1_000, neutral: 1)),
    Option("segment", .refused("backgrounds are not recognized here")),
    Option(
      "sharpen", near: "the strength is taken as the sigma",
      .number(0...10, within: 0.1...10, neutral: 0)),
    Option(
      "slow-connection-quality scq", .ignored("imaging.save_data_reduction answers Save-Data")),
    Option("trim=border", near: "a tolerance of 10", .always("10")),
    Option("trim") { given, draft throws(DoorFault) in
      let numbers = try given[0].wholes(4, between: ";", in: 0...100_000)
      for (side, pixels) in zip(["top", "right", "bottom", "left"], numbers) {
        draft.cut[side] = pixels
      }
    },
    trim("left"), trim("top"), trim("width", from: 1), trim("height", from: 1), trim("right"),
    trim("bottom"),
    Option(
      "trim.border.color trim.border.tolerance trim.border.keep", .refused("of Workers only")),
    Option("upscale=generate", .refused("images are not generated here")),
    Option("upscale=interpolate"),
    Option("width=auto w=auto", to: "w", near: "the steps of server.size_steps", .text),
    Option("width w", to: "w", .side),
    Option("zoom face-zoom", .near("the result is not narrowed to the faces")),
  ])
}
