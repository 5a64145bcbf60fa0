// Next: the addresses of Next.js' image optimizer, on Vercel and Netlify too.

import Core

/// The door of Next.js: `/_next/image`, `/_vercel/image` and `/.netlify/images`.
struct NextDoor: PeerDoor {
  let name = Peer.nextjs.rawValue
  /// What Next.js says of its cache.
  var cacheField: StaticString? { "X-Nextjs-Cache" }
  private let sources: SourceRules
  private let widths: Set<Int>
  private let qualities: Set<Int>
  private let allowsVectors: Bool
  private static let standardWidths = [
    16, 32, 48, 64, 96, 128, 256, 384, 640, 750, 828, 1080, 1200, 1920, 2048, 3840,
  ]
  private static let longestSource = 3_072
  private static let netlifyPath: Substring = "/.netlify/images"

  init(_ options: DoorOptions) {
    sources = SourceRules(options)
    widths = Set(options.widths.isEmpty ? Self.standardWidths : options.widths)
    qualities = Set(options.qualities.isEmpty ? [75] : options.qualities)
    allowsVectors = options.allowsVectors
  }

  func claims(_ address: DoorAddress) -> Bool {
    ["/_next/image", "/_vercel/image", Self.netlifyPath].contains(Self.path(of: address))
  }

  private static func path(of address: DoorAddress) -> Substring {
    address.path.hasSuffix("/") ? address.path.dropLast() : address.path[...]
  }

  /// The first mistake decides the sentence, in the order of Next.js.
  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    let isNetlify = Self.path(of: address) == Self.netlifyPath
    let items = Dictionary(grouping: address.query.queryItems(hasForms: true), by: \.name)
      .mapValues { $0.map(\.value) }
    var draft = Draft()
    draft.source = try one(items["url"], "\"url\" parameter")
    try check(draft.source)
    if isNetlify {
      for option in Self.netlify {
        let name = option.row.names[0]
        guard let values = items[name] else { continue }
        do { try option.read(Arguments(texts: values), &draft) } catch {
          throw error.of("\"\(name)\" parameter")
        }
      }
    } else {
      try readLimits(items, into: &draft)
    }
    let suffix = draft.source.prefix { $0 != "?" && $0 != "#" }.suffix(4)
    if !allowsVectors, suffix.lowercased() == ".svg" {
      throw .invalid("\"url\" parameter is valid but image type is not allowed")
    }
    draft["url"] = try sources.url(of: draft.source)
    draft["scale"] = "1"
    if draft["format"] == nil { draft["format"] = "auto" }
    if let quality = draft.quality {
      for name in ["q_jpeg", "q_webp"] { draft[name] = "\(quality)" }
      draft["q_avif"] = "\(isNetlify ? quality : max(1, quality - 20))"
    }
    if isNetlify {
      let isBox = draft["w"] != nil && draft["h"] != nil
      if draft["fit"] == "cover", !isBox { draft["fit"] = nil }
    } else {
      draft["pass"] = allowsVectors ? "animated,vector" : "animated"
      draft.note("Accept", Self.accept)
    }
    return draft.translation
  }

  private func check(_ source: String) throws(DoorFault) {
    func fail(_ text: String) -> DoorFault { .invalid("\"url\" parameter " + text) }
    guard source.utf16.count <= Self.longestSource else { throw fail("is too long") }
    guard !source.hasPrefix("//") else { throw fail("cannot be a protocol-relative URL (//)") }
    guard source.hasPrefix("/") || SourceRules.isWeb(source) else { throw fail("is invalid") }
    let path = source.prefix { $0 != "?" && $0 != "#" }.percentDecoded
    guard !source.hasPrefix("/") || !(path + "/").contains("/_next/image/") else {
      throw fail("cannot be recursive")
    }
  }

  /// Reads `w` and `q`, of which the operator allows some values.
  private func readLimits(
    _ items: [String: [String]], into draft: inout Draft
  ) throws(DoorFault) {
    let (w, q) = ("\"w\" parameter (width)", "\"q\" parameter (quality)")
    let noWidth = DoorFault.invalid(w + " must be an integer greater than 0")
    let noQuality = DoorFault.invalid(q + " must be an integer between 1 and 100")
    let width = try one(items["w"], w)
    guard width.isDigits else { throw noWidth }
    let quality = try one(items["q"], q)
    guard quality.isDigits else { throw noQuality }
    let (pixels, percent) = (Int(width) ?? .max, Int(quality) ?? .max)
    guard pixels > 0 else { throw noWidth }
    guard widths.contains(pixels) else { throw .invalid(w + " of \(pixels) is not allowed") }
    guard 1...100 ~= percent else { throw noQuality }
    guard qualities.contains(percent) else { throw .invalid(q + " of \(percent) is not allowed") }
    draft["w"] = "\(pixels)"
    draft.quality = percent
  }

  /// Returns the only value of a parameter.
  private func one(_ values: [String]?, _ name: String) throws(DoorFault) -> String {
    guard let values, let value = values.first, values != [""] else {
      throw .invalid(name + " is required")
    }
    guard values.count == 1 else { throw .invalid(name + " cannot be an array") }
    return value
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    switch fault.kind {
    case .source: answer(400, "\"url\" parameter is invalid", reason: "url: " + fault.reason)
    case .forbidden:
      answer(400, "\"url\" parameter is not allowed", reason: "url: " + fault.reason)
    default: answer(400, fault.reason, reason: fault.reason)
    }
  }

  func status(of error: ImageError) -> (Int, String) {
    let invalid = "\"url\" parameter is valid but upstream response is invalid"
    return switch error.cause {
    case .sourceNotFound(let status), .sourceError(let status, _, _):
      (400...599 ~= status ? status : 500, invalid)
    case .sourceTimeout: (504, "\"url\" parameter is valid but upstream response timed out")
    case .tooManyRedirects: (508, invalid)
    case .sourceTooLarge: (413, invalid)
    case .sourceUnreachable, .sourceTLS, .sourceIncomplete: (500, invalid)
    case .forbiddenSource: (400, "\"url\" parameter is not allowed")
    case .invalidURL: (400, "\"url\" parameter is invalid")
    case .unsupportedFormat, .unsupportedKind, .undecodable:
      (400, "The requested resource isn't a valid image.")
    case .tooManyPixels, .tooManyFrames, .tooCostly:
      (400, "Unable to optimize image and unable to fallback to upstream image")
    default: (error.status, error.message)
    }
  }
}

extension NextDoor {
  private struct Draft: OptionDraft {
    var translation = DoorTranslation()
    var source = ""
    var quality: Int?
  }

  private typealias Option = DoorOption<Draft>

  private static let accept = DoorStanding.near(
    "imaging.auto_formats decides; a client that names none of them gets JPEG, or PNG with alpha")

  /// The parameters of `/_next/image` and `/_vercel/image`, and those of `/.netlify/images`.
  var rows: [DoorOptionRow] {
    ["url", "w", "q"].map { DoorOptionRow(names: [$0], standing: .exact) }
      + [DoorOptionRow(names: ["Accept"], standing: Self.accept)]
      + Self.netlify.map(\.row).map { row in
        DoorOptionRow(names: row.names.map { "/.netlify/images " + $0 }, standing: row.standing)
      }
  }

  /// The parameters of `/.netlify/images` beside `url`.
  private static let netlify: [Option] = [
    Option("w", .side), Option("h", .side),
    Option("fit", .choice("contain= cover fill")),
    Option("position", .choice("center= top right bottom left")),
    Option("q", into: \.quality, .whole(1...100)),
    Option("fm=blurhash", .refused("its text is format=placeholder of /image")),
    Option("fm", to: "format", .choice("avif webp jpg=jpeg jpeg png gif")),
  ]
}
