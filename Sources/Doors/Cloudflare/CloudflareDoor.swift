// CloudflareDoor: the addresses of Cloudflare's image transformations and hosted images.

import Core

/// The door of Cloudflare: `/cdn-cgi/image/OPTIONS/SOURCE` and
/// `/cdn-cgi/imagedelivery/ACCOUNT/ID/VARIANT`, where a variant is a preset or options.
public struct CloudflareDoor: Door {
  /// The name of the peer.
  public let name = "cloudflare"
  private let sources: SourceRules
  private let variants: [String: String]
  private static let remote = "/cdn-cgi/image/"
  private static let hosted = "/cdn-cgi/imagedelivery/"

  /// The rows of the peer's page.
  public static var rows: [DoorOptionRow] { CloudflareDraft.table.map(\.row) }

  /// Creates the door.
  public init(_ options: DoorOptions) {
    sources = SourceRules(options)
    variants = options.presets
  }

  /// Whether the path is one of Cloudflare's two.
  public func claims(_ address: DoorAddress) -> Bool {
    address.path.hasPrefix(Self.remote) || address.path.hasPrefix(Self.hosted)
  }

  /// Translates an address.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    address.path.hasPrefix(Self.hosted)
      ? try hostedImage(address) : try transformation(address)
  }

  /// The query belongs to the source, which is not encoded.
  private func transformation(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let rest = address.path.dropFirst(Self.remote.count)
    guard let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) else {
      throw Self.refusal(.options, "the address has no source")
    }
    var draft = CloudflareDraft()
    try read(String(rest[..<slash]), into: &draft)
    var source = String(rest[rest.utf8.index(after: slash)...])
    if source.prefix(8).lowercased().hasPrefix("http%3a")
      || source.prefix(8).lowercased().hasPrefix("https%3a")
    {
      source = source.percentDecoded
    }
    guard !source.contains("/cdn-cgi/image") && !source.hasPrefix("cdn-cgi/image") else {
      throw Self.refusal(.loop, "the source is a resized image")
    }
    if !address.query.isEmpty { source += "?" + address.query }
    let isOfZone = !SourceRules.isWeb(source)
    let url = try url(of: source)
    var translation = try finished(draft)
    translation["url"] = url
    // Elsewhere Cloudflare ignores the option, too.
    if translation.redirectsFailures, !isOfZone || !sources.isBelowPublicBase(url) {
      translation.redirectsFailures = false
      translation.notes.append(DoorNote("onerror", .ignored("only for sources of the zone")))
    }
    return translation
  }

  /// The source is the image's identifier below the base URL.
  private func hostedImage(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let parts = address.path.dropFirst(Self.hosted.count).split(separator: "/")
    guard parts.count >= 3, let variant = parts.last else {
      throw Self.refusal(.missing, "the path is ACCOUNT/ID/VARIANT")
    }
    guard !address.query.queryItems().contains(where: { $0.name == "sig" }) else {
      throw Self.refusal(.denied, "sig: signatures of private images are not verified here")
    }
    var draft = CloudflareDraft()
    draft.translation["format"] = "auto"
    if variant.contains("=") || variant.percentDecoded.contains("=") {
      try read(String(variant), into: &draft)
    } else if let options = variants[variant.percentDecoded] {
      try read(options, into: &draft)
    } else {
      throw Self.refusal(.missing, "the variant '\(variant)' is not among the presets")
    }
    let url = try url(of: "/" + parts.dropFirst().dropLast().joined(separator: "/"))
    var translation = try finished(draft)
    translation["url"] = url
    return translation
  }

  private func url(of source: String) throws(DoorAnswer) -> String {
    try sources.url(of: source) { fault in
      switch fault {
      case .invalid(let reason): Self.refusal(.url, reason)
      case .forbidden(let reason): Self.refusal(.origin, reason)
      }
    }
  }

  /// Reads options between commas, but not in parentheses. Unknown ones are ignored.
  private func read(_ text: String, into draft: inout CloudflareDraft) throws(DoorAnswer) {
    let options = text.contains("=") ? text : text.percentDecoded
    var depth = 0
    let parts = options.split { character in
      if character == "(" { depth += 1 }
      if character == ")" { depth -= 1 }
      return character == "," && depth <= 0
    }
    guard parts.contains(where: { $0.contains("=") }) else {
      throw Self.refusal(.options, "at least one option is required")
    }
    for part in parts {
      let name = part.prefix { $0 != "=" }
      let value = part.dropFirst(name.count + 1).percentDecoded
      let key = name.percentDecoded
      do {
        if try CloudflareDraft.options.read(key, [value], into: &draft) { continue }
      } catch {
        throw Self.refusal(.options, "\(key)='\(value)': \(error.reason)")
      }
      draft.translation.notes.append(DoorNote(key, .ignored("Cloudflare has no such option")))
    }
  }

  private func finished(_ draft: CloudflareDraft) throws(DoorAnswer) -> DoorTranslation {
    do { return try draft.finished() } catch { throw Self.refusal(.options, error.reason) }
  }

  /// Returns what Cloudflare answers: the status and the code of its public table.
  public func answer(to error: ImageError) -> DoorAnswer {
    let failure: Failure =
      switch error.cause {
      case .invalidURL: .url
      case .forbiddenSource: .origin
      case .sourceNotFound: .notFound
      case .sourceError(let status, _, _):
        400...499 ~= status ? Failure(9408, status, .fetch) : Failure(9509, 502, .fetch)
      // 522 to 524 are Cloudflare's own; they are 504 here.
      case .sourceUnreachable: Failure(9510, 504, .fetch)
      case .sourceTimeout: Failure(9504, 504, .fetch)
      case .sourceTLS, .sourceIncomplete: Failure(9402, 502, .fetch)
      case .sourceTooLarge: Failure(9402, 413, .fetch)
      case .tooManyRedirects: Failure(9421, 400, .fetch)
      case .unsupportedFormat, .unsupportedKind: Failure(9412, 415, .resize)
      case .undecodable: Failure(9516, 422, .resize)
      case .tooManyPixels, .tooManyFrames, .tooCostly: Failure(9413, 403, .resize)
      case .overloaded, .outOfMemory, .draining, .revoked: Failure(9522, 503, .resize)
      case .rateLimited, .tooManyAttempts: Failure(9422, 429, .resize)
      case .deadlineExceeded, .imagingTimeout: Failure(9529, 504, .resize)
      case .internal: Failure(9523, 500, .resize)
      default: Failure(9401, error.status, .options)
      }
    return Self.refusal(failure, error.message)
  }

  /// A row of Cloudflare's table of errors.
  private struct Failure {
    /// What could not be done.
    enum Step: String {
      case options = "Missing or invalid resizing parameters"
      case fetch = "Could not fetch the image"
      case resize = "Could not resize the image"
    }

    let code: Int
    let status: Int
    let step: Step

    init(_ code: Int, _ status: Int, _ step: Step) {
      (self.code, self.status, self.step) = (code, status, step)
    }

    static let options = Failure(9401, 400, .options)
    static let origin = Failure(9401, 403, .fetch)
    static let notFound = Failure(9404, 404, .fetch)
    static let url = Failure(9406, 403, .fetch)
    static let loop = Failure(9403, 508, .resize)
    static let denied = Failure(9425, 403, .fetch)
    static let missing = Failure(9431, 404, .fetch)
  }

  private static func refusal(_ failure: Failure, _ reason: String) -> DoorAnswer {
    DoorAnswer(
      status: failure.status, body: "ERROR \(failure.code): \(failure.step.rawValue): \(reason)",
      fields: [HeaderField("Cf-Resized", value: "err=\(failure.code)")].compactMap { $0 },
      reason: reason)
  }
}
