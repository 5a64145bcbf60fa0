// ImgproxyDoor: the addresses of imgproxy 4.

import Core

/// The door for teams that come from imgproxy: `/SIGNATURE/OPTION:ARGUMENT/…/plain/SOURCE@EXT`.
///
/// The query of an address is dropped, as there. `/` and `/health` are not the door's.
public struct ImgproxyDoor: Door {
  private let options: DoorOptions
  private let signature: ImgproxySignature
  private let sources: SourceRules
  private let presets: [String: [String]]
  /// The most options of an address with all its presets.
  private static let mostOptions = 1_000

  /// Creates the door with an operator's settings.
  public init(_ options: DoorOptions) {
    self.options = options
    signature = ImgproxySignature(options)
    sources = SourceRules(options)
    presets = options.presets.mapValues { $0.split(separator: "/").map(String.init) }
  }

  /// `imgproxy`.
  public var name: String { "imgproxy" }

  /// Whether an address is an image's.
  public func claims(_ address: DoorAddress) -> Bool {
    !["", "/", "/health"].contains(address.path)
  }

  /// Translates an address.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let parts: ImgproxyAddress
    do throws(OptionFault) {
      parts = try ImgproxyAddress(
        path: address.path, separator: options.separator, presetsOnly: options.presetsOnly)
    } catch { throw Self.refusal(404, "the address: " + error.reason) }
    guard !signature.isRequired || signature.accepts(parts.signature, of: parts.signedPaths) else {
      throw Self.refusal(403, "the signature is that of no key and salt")
    }

    var draft = ImgproxyDraft()
    var room = Self.mostOptions
    if presets["default"] != nil {
      try apply(presets: ["default"], within: [], to: &draft, room: &room)
    }
    for option in parts.options {
      if options.presetsOnly {
        try apply(presets: arguments(of: option), within: [], to: &draft, room: &room)
      } else {
        try apply(option, within: [], to: &draft, room: &room)
      }
    }
    if !parts.format.isEmpty {
      let option = "format\(options.separator)\(parts.format)"
      try apply(option, within: [], to: &draft, room: &room)
    }
    let source = try source(parts.source)
    do throws(OptionFault) {
      var translation = try draft.translation(of: source)
      translation.isSigned = signature.isRequired
      return translation
    } catch {
      throw Self.refusal(error.isUnsupported ? 422 : 404, error.reason)
    }
  }

  private func arguments(of option: String) -> [String] {
    option.split(separator: options.separator, omittingEmptySubsequences: false).map(String.init)
  }

  /// Applies `NAME:ARGUMENT…`.
  ///
  /// - Parameters:
  ///   - stack: The presets that the option is in; they may set limits.
  ///   - room: How many options may still follow.
  private func apply(
    _ option: String, within stack: [String], to draft: inout ImgproxyDraft, room: inout Int
  ) throws(DoorAnswer) {
    let parts = arguments(of: option)
    let given = parts[0]
    guard let row = Self.options[given], let name = row.names.first else {
      throw Self.refusal(404, "\(given.prefix(64)): imgproxy has no such option")
    }
    room -= 1
    guard room >= 0 else {
      throw Self.refusal(404, "\(name): at most \(Self.mostOptions) options, with those of presets")
    }
    guard
      options.allowsLimits || !stack.isEmpty
        || !Self.limits.contains(where: { $0.names == row.names })
    else { throw Self.refusal(403, "\(name): addresses may not set limits") }
    if case .refused(let reason) = row.standing {
      throw Self.refusal(404, "\(name): \(reason)")
    }
    draft.addNote(of: row)
    do throws(OptionFault) {
      try row.read(Array(parts.dropFirst()), &draft)
    } catch {
      throw Self.refusal(error.isUnsupported ? 422 : 404, "\(name): \(error.reason)")
    }
    guard !draft.presets.isEmpty else { return }
    let presets = draft.presets
    draft.presets = []
    try apply(presets: presets, within: stack, to: &draft, room: &room)
  }

  /// Applies presets by their names, but for those that they are in.
  private func apply(
    presets names: [String], within stack: [String], to draft: inout ImgproxyDraft,
    room: inout Int
  ) throws(DoorAnswer) {
    for name in names where !name.isEmpty && !stack.contains(name) {
      guard let parts = presets[name] else {
        throw Self.refusal(404, "preset: there is none named '\(name.prefix(64))'")
      }
      for option in parts { try apply(option, within: stack + [name], to: &draft, room: &room) }
    }
  }

  /// Returns the source that a text stands for.
  private func source(_ text: String) throws(DoorAnswer) -> SourceURL {
    do throws(SourceFault) {
      var url = try sources.replaced(text) ?? text
      // As there, all sources are below a base, also those with a scheme.
      if sources.hasBase, !sources.isBelowBase(url) { url = try sources.appended(url) }
      for scheme in ["gs", "abs", "swift"] where url.hasPrefix(scheme + "://") {
        throw .invalid("Pictor loads no \(scheme):// sources; s3:// may reach them")
      }
      return try sources.allowed(url)
    } catch {
      throw Self.refusal(404, "the source: " + error.reason)
    }
  }

  /// Returns a refusal in imgproxy's form.
  private static func refusal(_ status: Int, _ reason: String) -> DoorAnswer {
    DoorAnswer(status: status, body: status == 403 ? "Forbidden" : "Invalid URL", reason: reason)
  }

  /// Returns imgproxy's answer to a failure.
  public func answer(to error: ImageError) -> DoorAnswer {
    let (status, body) = Self.answer(to: error.cause)
    return DoorAnswer(status: status, body: body, reason: error.message)
  }

  private static func answer(to cause: ImageError) -> (status: Int, body: String) {
    switch cause {
    case .invalidSignature, .forbiddenParameter, .unsignedParameter: (403, "Forbidden")
    case .expiredSignature, .invalidURL, .invalidParameter, .unknownParameter, .missingParameter,
      .notFound:
      (404, "Invalid URL")
    case .forbiddenSource, .sourceNotFound: (404, "Source is unreachable")
    case .sourceError(let status, _, _) where status < 500: (404, "Source is unreachable")
    case .sourceError, .sourceUnreachable, .sourceIncomplete, .sourceTLS, .tooManyRedirects:
      (502, "Source is unreachable")
    case .undecodable, .unsupportedFormat, .unsupportedKind, .tooManyPixels, .tooManyFrames,
      .tooCostly, .sourceTooLarge:
      (422, "Invalid source")
    case .sourceTimeout, .deadlineExceeded, .imagingTimeout: (504, "Timeout")
    case .internal: (500, "Internal error")
    default: (cause.status, cause.message)
    }
  }
}
