// NextDoor: the addresses of Next.js' image optimizer, on Vercel and Netlify too.

import Core

/// The door of Next.js: `/_next/image`, `/_vercel/image` and `/.netlify/images`.
public struct NextDoor: Door {
  /// The name of the peer.
  public let name = "nextjs"
  /// What Next.js says of its cache.
  public var cacheField: StaticString? { "X-Nextjs-Cache" }
  private let sources: SourceRules
  private let widths: Set<Int>
  private let qualities: Set<Int>
  private let allowsVectors: Bool
  private static let standardWidths = [
    16, 32, 48, 64, 96, 128, 256, 384, 640, 750, 828, 1080, 1200, 1920, 2048, 3840,
  ]
  private static let longestSource = 3_072

  /// Creates the door.
  public init(_ options: DoorOptions) {
    sources = SourceRules(options)
    widths = Set(options.widths.isEmpty ? Self.standardWidths : options.widths)
    qualities = Set(options.qualities.isEmpty ? [75] : options.qualities)
    allowsVectors = options.allowsVectors
  }

  /// Whether the path is one of the three.
  public func claims(_ address: DoorAddress) -> Bool {
    ["/_next/image", "/_vercel/image", Self.netlifyPath].contains(Self.path(of: address))
  }

  private static let netlifyPath: Substring = "/.netlify/images"

  private static func path(of address: DoorAddress) -> Substring {
    address.path.hasSuffix("/") ? address.path.dropLast() : address.path[...]
  }

  /// Translates an address. The first mistake decides the sentence, in the order of Next.js.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let isNetlify = Self.path(of: address) == Self.netlifyPath
    let items = Dictionary(
      grouping: address.query.queryItems(hasForms: true), by: \.name
    ).mapValues { $0.map(\.value) }
    var draft = Draft()
    do throws(OptionFault) {
      if isNetlify {
        try Self.table[0].read(items["url"] ?? [], &draft)
        try check(draft.source)
        for option in Self.netlify {
          guard let values = items[option.names[0]] else { continue }
          do { try option.read(values, &draft) } catch {
            throw OptionFault("\"\(option.names[0])\" parameter: \(error.reason)")
          }
        }
      } else {
        for option in Self.table {
          try option.read(items[option.names[0]] ?? [], &draft)
          if option.names[0] == "url" { try check(draft.source) }
        }
        try checkLimits(of: draft)
      }
    } catch {
      throw Self.refusal(400, error.reason)
    }
    var translation = draft.translation
    translation["url"] = try url(of: draft.source)
    translation["scale"] = "1"
    if translation["format"] == nil { translation["format"] = "auto" }
    if let quality = draft.quality {
      translation["q_jpeg"] = "\(quality)"
      translation["q_webp"] = "\(quality)"
      translation["q_avif"] = "\(isNetlify ? quality : max(1, quality - 20))"
    }
    if isNetlify {
      if translation["fit"] == "cover", translation["w"] == nil || translation["h"] == nil {
        translation["fit"] = nil
      }
    } else {
      translation["pass"] = allowsVectors ? "animated,vector" : "animated"
      translation.notes.append(DoorNote("Accept", Self.accept))
    }
    return translation
  }

  private static func suffix(of source: String) -> String {
    let end = source.prefix { $0 != "?" && $0 != "#" }.suffix(4)
    return end.hasPrefix(".") ? end.dropFirst().lowercased() : ""
  }

  private func check(_ source: String) throws(OptionFault) {
    func fail(_ text: String) -> OptionFault { OptionFault("\"url\" parameter " + text) }
    guard source.utf16.count <= Self.longestSource else { throw fail("is too long") }
    guard !source.hasPrefix("//") else { throw fail("cannot be a protocol-relative URL (//)") }
    guard source.hasPrefix("/") else {
      guard SourceRules.isWeb(source) else { throw fail("is invalid") }
      return
    }
    let path = source.prefix { $0 != "?" && $0 != "#" }.percentDecoded
    if path.contains("/_next/image/") || path.hasSuffix("/_next/image") {
      throw fail("cannot be recursive")
    }
  }

  private func checkLimits(of draft: Draft) throws(OptionFault) {
    guard let width = draft.width, width > 0 else { throw Self.notWidth }
    guard widths.contains(width) else {
      throw OptionFault("\"w\" parameter (width) of \(width) is not allowed")
    }
    guard let quality = draft.quality, 1...100 ~= quality else { throw Self.notQuality }
    guard qualities.contains(quality) else {
      throw OptionFault("\"q\" parameter (quality) of \(quality) is not allowed")
    }
  }

  private func url(of source: String) throws(DoorAnswer) -> String {
    if !allowsVectors, Self.suffix(of: source) == "svg" {
      throw Self.refusal(400, "\"url\" parameter is valid but image type is not allowed")
    }
    return try sources.url(of: source) { fault in
      switch fault {
      case .invalid(let why):
        Self.refusal(400, "\"url\" parameter is invalid", reason: "url: " + why)
      case .forbidden(let why):
        Self.refusal(400, "\"url\" parameter is not allowed", reason: "url: " + why)
      }
    }
  }

  /// Returns what Next.js answers: one sentence.
  public func answer(to error: ImageError) -> DoorAnswer {
    let invalid = "\"url\" parameter is valid but upstream response is invalid"
    let (status, body) =
      switch error.cause {
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
    return Self.refusal(status, body, reason: error.message)
  }

  private static func refusal(_ status: Int, _ body: String, reason: String? = nil) -> DoorAnswer {
    DoorAnswer(status: status, body: body, reason: reason ?? body)
  }
}

extension NextDoor {
  /// What an address asks for.
  struct Draft: OptionDraft {
    var translation = DoorTranslation()
    var source = ""
    var width: Int?
    var quality: Int?
  }

  private static let accept = DoorStanding.near(
    "imaging.auto_formats decides; a client that names none of them gets JPEG, or PNG with alpha")
  private static let notWidth = OptionFault(
    "\"w\" parameter (width) must be an integer greater than 0")
  private static let notQuality = OptionFault(
    "\"q\" parameter (quality) must be an integer between 1 and 100")

  /// The rows of the peer's page.
  public static var rows: [DoorOptionRow] {
    (table + [DoorOption("Accept", standing: accept)]).map(\.row)
      + netlify.map { option in
        DoorOptionRow(
          names: option.names.map { "/.netlify/images " + $0 }, standing: option.standing)
      }
  }

  /// The parameters of `/_next/image` and `/_vercel/image`, in the order in which they are checked.
  static let table: [DoorOption<Draft>] = [
    DoorOption("url") { values, draft throws(OptionFault) in
      draft.source = try one(values, "\"url\" parameter")
    },
    DoorOption("w") { values, draft throws(OptionFault) in
      let text = try one(values, "\"w\" parameter (width)")
      guard text.isDigits else { throw notWidth }
      draft.width = Int(text) ?? .max
      draft.translation["w"] = draft.width.map { "\($0)" }
    },
    DoorOption("q") { values, draft throws(OptionFault) in
      let text = try one(values, "\"q\" parameter (quality)")
      guard text.isDigits else { throw notQuality }
      draft.quality = Int(text) ?? .max
    },
  ]

  /// The parameters of `/.netlify/images` beside `url`.
  static let netlify: [DoorOption<Draft>] = [
    DoorOption("w", to: "w", Argument.whole(Argument.sides)),
    DoorOption("h", to: "h", Argument.whole(Argument.sides)),
    DoorOption("fit", to: "fit", Argument.choice("contain= cover fill")),
    DoorOption("position", to: "position", Argument.choice("center= top right bottom left")),
    DoorOption("q", into: \.quality) { text throws(OptionFault) in
      try Argument.int(text, in: 1...100)
    },
    DoorOption("fm=blurhash", standing: .refused("its text is format=placeholder of /image")),
    DoorOption("fm", to: "format", Argument.choice("avif webp jpg=jpeg jpeg png gif")),
  ]

  /// Returns the only value of a parameter.
  private static func one(_ values: [String], _ name: String) throws(OptionFault) -> String {
    guard let value = values.first, values.count > 1 || !value.isEmpty else {
      throw OptionFault(name + " is required")
    }
    guard values.count == 1 else { throw OptionFault(name + " cannot be an array") }
    return value
  }
}
