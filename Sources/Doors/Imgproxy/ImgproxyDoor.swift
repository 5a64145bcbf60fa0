// ImgproxyDoor: the addresses of imgproxy 4, their signatures and presets.

import Core

/// The door of imgproxy: `/SIGNATURE/OPTION:ARGUMENT/…/plain/SOURCE@EXT`. The query of an address
/// is dropped, as there. `/` and `/health` are not the door's.
struct ImgproxyDoor: PeerDoor {
  let name = Peer.imgproxy.rawValue
  let rows = ImgproxyDraft.table.rows
  private let options: DoorOptions
  private let sources: SourceRules
  private let presets: [String: [String]]
  /// The most options of an address with all its presets.
  private static let mostOptions = 1_000

  init(_ options: DoorOptions) {
    self.options = options
    sources = SourceRules(options)
    presets = options.presets.mapValues { $0.split(separator: "/").map(String.init) }
  }

  func claims(_ address: DoorAddress) -> Bool { !["", "/", "/health"].contains(address.path) }

  func secret(of address: DoorAddress) -> DoorSecret? {
    guard !options.secrets.isEmpty else { return nil }
    return DoorSecret(
      "Authorization", options.secrets.map { Array("Bearer ".utf8) + $0 },
      refusal: refusal(of: .denied("the secret is missing in Authorization")))
  }

  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    let parts: ImgproxyAddress
    do {
      parts = try ImgproxyAddress(
        path: address.path, separator: options.separator, presetsOnly: options.presetsOnly)
    } catch { throw error.of("the address") }
    guard options.keys.isEmpty || isSigned(parts) else {
      throw .denied("the signature is that of no key and salt")
    }
    var draft = ImgproxyDraft()
    if presets["default"] != nil { try apply(presets: ["default"], within: [], to: &draft) }
    for option in parts.options {
      try options.presetsOnly
        ? apply(presets: arguments(of: option), within: [], to: &draft)
        : apply(option, within: [], to: &draft)
    }
    if !parts.format.isEmpty {
      try apply("format\(options.separator)\(parts.format)", within: [], to: &draft)
    }
    try draft.finish(try source(parts.source))
    draft.translation.isSigned = !options.keys.isEmpty || !options.secrets.isEmpty
    return draft.translation
  }

  /// Returns whether the signature is the base64url of the HMAC-SHA256 of a salt and a path behind
  /// it, or of its first bytes. A key without a salt has an empty one.
  private func isSigned(_ parts: ImgproxyAddress) -> Bool {
    let salts = options.salts
    let length = (1...32).contains(options.signatureBytes) ? options.signatureBytes : 32
    return parts.signedPaths.flatMap { path in
      options.keys.enumerated().map { index, key in
        let salt = index < salts.count ? salts[index] : []
        return Base64URL.encode(HMAC.sha256(of: salt + path.utf8, key: key).prefix(length))
      }
    }.hasSignature(parts.signature)
  }

  private func arguments(of option: String) -> [String] {
    option.split(separator: options.separator, omittingEmptySubsequences: false).map(String.init)
  }

  /// Applies `NAME:ARGUMENT…`. The presets that the option is in, `stack`, may set limits.
  private func apply(
    _ text: String, within stack: [String], to draft: inout ImgproxyDraft
  ) throws(DoorFault) {
    let parts = arguments(of: text)
    guard let option = ImgproxyDraft.table[parts[0]] else {
      throw .invalid("\(parts[0].prefix(64)): imgproxy has no such option")
    }
    let name = option.row.names[0]
    draft.count += 1
    guard draft.count <= Self.mostOptions else {
      throw .invalid("\(name): at most \(Self.mostOptions) options, with those of presets")
    }
    let isLimit = ImgproxyDraft.limits.contains { $0.row == option.row }
    guard options.allowsLimits || !stack.isEmpty || !isLimit else {
      throw .denied("\(name): addresses may not set limits")
    }
    if case .refused(let reason) = option.row.standing { throw .invalid("\(name): \(reason)") }
    do { try option.apply(Array(parts.dropFirst()), as: name, to: &draft) } catch {
      throw error.of(name)
    }
    let presets = draft.presets
    draft.presets = []
    try apply(presets: presets, within: stack, to: &draft)
  }

  /// Applies presets by their names, but for those that they are in.
  private func apply(
    presets names: [String], within stack: [String], to draft: inout ImgproxyDraft
  ) throws(DoorFault) {
    for name in names where !name.isEmpty && !stack.contains(name) {
      guard let parts = presets[name] else {
        throw .invalid("preset: there is none named '\(name.prefix(64))'")
      }
      for option in parts { try apply(option, within: stack + [name], to: &draft) }
    }
  }

  private func source(_ text: String) throws(DoorFault) -> SourceURL {
    do throws(DoorFault) {
      var url = try sources.replaced(text) ?? text
      // As there, all sources are below a base, also those with a scheme.
      if sources.hasBase, !sources.isBelowBase(url) { url = try sources.appended(url) }
      for scheme in ["gs", "abs", "swift"] where url.hasPrefix(scheme + "://") {
        throw .source("Pictor loads no \(scheme):// sources; s3:// may reach them")
      }
      return try sources.allowed(url)
    } catch { throw error.of("the source") }
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    switch fault.kind {
    case .denied: answer(403, "Forbidden", reason: fault.reason)
    case .unsupported: answer(422, "Invalid URL", reason: fault.reason)
    default: answer(404, "Invalid URL", reason: fault.reason)
    }
  }

  func status(of error: ImageError) -> (Int, String) {
    switch error.cause {
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
    default: (error.cause.status, error.cause.message)
    }
  }
}

/// The parts of `/SIGNATURE/OPTION/…/SOURCE`, decoded.
private struct ImgproxyAddress {
  let signature: Substring
  /// The paths that the signature may be of: as sent, and with the slashes that a proxy has merged.
  let signedPaths: [String]
  private(set) var options: [String] = []
  let source: String
  /// The format behind the source; empty: none.
  let format: Substring

  init(path: String, separator: Character, presetsOnly: Bool) throws(DoorFault) {
    let rest = path.dropFirst()
    guard path.utf8.first == UInt8(ascii: "/"), let slash = rest.firstIndex(of: "/") else {
      throw .invalid("it has no options and no source")
    }
    signature = rest[..<slash]
    let sent = String(rest[slash...])
    let path = Self.restoringSlashes(of: sent)
    signedPaths = path == sent ? [path] : [path, sent]

    var parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)[...]
    if presetsOnly { options.append(try Self.decoded(parts.popFirst() ?? "")) }
    while !presetsOnly, let part = parts.first, part != "plain" {
      let option = try Self.decoded(part)
      guard option.contains(separator) else { break }
      options.append(option)
      parts.removeFirst()
    }
    guard parts.first != "enc" else { throw .invalid("imgproxy Pro: it is encrypted") }
    if parts.first == "plain" {
      let pieces = parts.dropFirst().joined(separator: "/").split(
        separator: "@", omittingEmptySubsequences: false)
      guard pieces.count <= 2 else { throw .invalid("an @ of the source is %40") }
      source = try Self.decoded(pieces.first ?? "")
      format = pieces.dropFirst().first ?? ""
    } else {
      // imgproxy knows from its configuration whether there is a name behind the source. Here, the
      // last part is one if another part has the format, or if all parts together are no text.
      let unnamed = parts.dropLast()
      let whole = unnamed.contains { $0.contains(".") } ? nil : Self.text(of: parts)
      guard let found = whole ?? Self.text(of: unnamed) else {
        throw .invalid("the source is no base64url of a text")
      }
      source = found.source
      format = found.format
    }
    guard !source.isEmpty else { throw .invalid("it has no source") }
  }

  /// Reads base64url in any number of parts, and `.FORMAT`.
  private static func text(
    of parts: ArraySlice<Substring>
  ) -> (source: String, format: Substring)? {
    let pieces = parts.joined().split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count <= 2, let first = pieces.first, let source = Base64URL.text(first),
      !source.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
    else { return nil }
    return (source, pieces.dropFirst().first ?? "")
  }

  private static func decoded(_ text: some StringProtocol) throws(DoorFault) -> String {
    guard let decoded = PercentEncoding.decode(text.utf8) else {
      throw .invalid("'\(text.prefix(64))' is not percent-encoded UTF-8")
    }
    return decoded
  }

  /// Restores the slashes of a plain source that a proxy has merged: `https:/a` and `local:/path`.
  private static func restoringSlashes(of path: String) -> String {
    guard let mark = path.firstRange(of: "/plain/") else { return path }
    let scheme = path[mark.upperBound...].prefix { $0 != ":" }
    let rest = path[scheme.endIndex...]
    guard !scheme.isEmpty, scheme.isPlain(with: "+-."), rest.hasPrefix(":/"),
      !rest.hasPrefix("://")
    else { return path }
    return path[..<scheme.endIndex] + (scheme == "local" ? "://" : ":/") + rest.dropFirst()
  }
}
