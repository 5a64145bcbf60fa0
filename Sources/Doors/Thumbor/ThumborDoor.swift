// ThumborDoor: the doors of thumbor and imagor, whose addresses have one form.

import Core

/// The addresses of thumbor 7, `/HASH|unsafe/PART/…/filters:…/IMAGE`, as 7.8.0 answers them without
/// detectors and optimizers; or those of imagor, which has more parts and filters.
struct ThumborDoor: PeerDoor {
  let name: String
  /// Whether the peer is imagor.
  let isImagor: Bool
  /// The parts before the filters, in their order. Each may be absent.
  let parts: [DoorOption<ThumborDraft>]
  let filters: OptionTable<ThumborDraft>
  private let sources: SourceRules
  private let keys: [[UInt8]]
  private let digest: HMAC.Digest
  /// Characters of a signature; 0: all.
  private let length: Int
  /// Whether `/unsafe/` is served.
  private let servesUnsafe: Bool

  init(_ peer: Peer, _ options: DoorOptions) {
    name = peer.rawValue
    isImagor = peer == .imagor
    parts = isImagor ? ThumborDraft.imagorParts : ThumborDraft.thumborParts
    filters = isImagor ? ThumborDraft.imagorFilters : ThumborDraft.thumborFilters
    keys = options.keys
    sources = SourceRules(options)
    digest = isImagor ? HMAC.Digest(rawValue: options.digest) ?? .sha1 : .sha1
    length = isImagor ? options.signatureBytes : 0
    servesUnsafe = keys.isEmpty || options.allowsUnsigned
  }

  var rows: [DoorOptionRow] {
    let image = [DoorOptionRow(names: ["IMAGE"], standing: .exact)]
    let more = [
      DoorOptionRow(names: ["b64:"], standing: .exact),
      DoorOptionRow(names: ["color:"], standing: .refused(Self.noColour)),
      DoorOptionRow(names: ["/params/"], standing: .refused("addresses are not described")),
    ]
    return parts.map(\.row) + filters.rows + image + (isImagor ? more : [])
  }

  /// Claims every address, because the peers answer all that they do not know.
  func claims(_ address: DoorAddress) -> Bool { address.path != "/" }

  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    if address.path == "/healthcheck" {
      throw .answered(
        DoorAnswer(
          status: 200, contentType: "text/html; charset=UTF-8", body: isImagor ? "" : "WORKING",
          reason: "health check"))
    }
    guard let (first, rest) = address.path.dropFirst().cutAtSlash else {
      throw .invalid("the address has no image")
    }
    var draft = ThumborDraft(self)
    if first == "unsafe" {
      guard servesUnsafe else { throw .denied("unsafe: only signed addresses are served") }
    } else if isImagor && first == "params" {
      throw .invalid("params: the description of an address is not served")
    } else {
      guard isSignature(first, of: rest) else {
        throw .denied("the signature belongs to another address or another key")
      }
      draft.translation.isSigned = true
    }
    try draft.read(rest)
    return draft.translation
  }

  /// Returns whether a text is base64url(HMAC(key, path after the signature)), with padding or
  /// without. imagor also has other digests than SHA-1, and may cut the text.
  private func isSignature(_ given: Substring, of path: Substring) -> Bool {
    // SHA-512 has 88 characters, and each may be percent-encoded.
    guard given.utf8.count <= 3 * 88, let text = PercentEncoding.decode(given.utf8) else {
      return false
    }
    return keys.map { key in
      let code = HMAC.code(of: Array(path.utf8), key: key, digest: digest)
      return Base64URL.encode(code).prefix(length > 0 ? length : .max)
    }.hasSignature(text.prefix { $0 != "=" })
  }

  /// Returns the URL of a source as it is written, decoded once.
  func url(of text: String) throws(DoorFault) -> String {
    var name = text
    if isImagor, name.hasPrefix("color:") { throw .invalid("color: " + Self.noColour) }
    if isImagor, name.hasPrefix("b64:") {
      let digits = name.dropFirst(4).trimming { $0 == "/" }
      guard let plain = Base64URL.text(digits.prefix { $0 != "=" }) else {
        throw .invalid("b64: is not followed by base64url")
      }
      name = plain
    }
    let replaced = try sources.replaced(name)
    let url = if let replaced { replaced } else { try absolute(name) }
    // What is no URL is refused with the rest of the query.
    if (try? SourceURL(parsing: url)) != nil { _ = try sources.allowed(url) }
    return url
  }

  private static let noColour = "images without a source are not made"

  /// Without a scheme, thumbor takes a text for `http`, imagor for `https`.
  private func absolute(_ name: String) throws(DoorFault) -> String {
    if let colon = name.utf8.firstIndex(of: UInt8(ascii: ":")), name[colon...].hasPrefix(":/"),
      colon > name.startIndex, name[..<colon].isPlain(with: "")
    {
      // Some proxies merge the two slashes.
      let rest = name[colon...].dropFirst(2)
      return rest.hasPrefix("/") ? name : name[..<colon] + "://" + rest
    }
    // thumbor has no host before a slash, and refuses it.
    let path = isImagor || sources.hasBase ? name.drop { $0 == "/" } : name[...]
    guard !path.isEmpty else { throw .source("the address has no image") }
    guard sources.hasBase else { return (isImagor ? "https://" : "http://") + path }
    return try sources.appended(
      sources.isLocal ? PercentEncoding.encodePath(String(path)) : String(path))
  }
}

extension ThumborDoor {
  func refusal(of fault: DoorFault) -> DoorAnswer {
    let (status, message) =
      switch fault.kind {
      case .denied: (403, "url signature mismatch")
      case .forbidden: (403, "http source not allowed")
      default: (400, "invalid")
      }
    return reply(isImagor ? status : 400, message, reason: fault.reason)
  }

  func answer(to error: ImageError) -> DoorAnswer {
    let (status, message) = status(of: error)
    let retry = error.retryAfter.flatMap { HeaderField("Retry-After", value: "\($0)") }
    return reply(status, message, fields: [retry].compactMap(\.self), reason: error.message)
  }

  /// What clients may wait for keeps Pictor's status.
  func status(of error: ImageError) -> (Int, String) {
    isImagor ? imagorStatus(of: error) : (thumborStatus(of: error), "")
  }

  private func thumborStatus(of error: ImageError) -> Int {
    switch error.cause {
    case .sourceNotFound, .sourceError, .notFound: 404
    case .watermark: 400
    case .sourceUnreachable, .sourceTLS: 500
    default: error.status < 500 && error.status != 429 && error.status != 405 ? 400 : error.status
    }
  }

  private func imagorStatus(of error: ImageError) -> (Int, String) {
    switch error.cause {
    case .sourceNotFound, .notFound: (404, "not found")
    case .sourceError(let status, _, _) where (400...599).contains(status):
      (status, "the source's status is \(status)")
    case .invalidSignature, .unsignedParameter: (403, "url signature mismatch")
    case .forbiddenSource: (403, "http source not allowed")
    case .expiredSignature: (410, "expired")
    case .unsupportedFormat, .unsupportedKind, .undecodable: (406, "unsupported format")
    case .sourceTooLarge: (400, "maximum size exceeded")
    case .tooManyPixels, .tooManyFrames, .tooCostly: (422, "maximum resolution exceeded")
    case .rateLimited, .overloaded: (429, "too many requests")
    case .sourceTimeout, .deadlineExceeded, .imagingTimeout: (408, "timeout")
    case .methodNotAllowed: (405, "method not allowed")
    default: error.status < 500 ? (400, "invalid") : (error.status, "internal error")
    }
  }

  private func reply(
    _ status: Int, _ message: String, fields: [HeaderField] = [], reason: String
  ) -> DoorAnswer {
    DoorAnswer(
      status: status, contentType: isImagor ? "application/json" : "text/html; charset=UTF-8",
      body: isImagor ? "{\"message\":\"\(message)\",\"status\":\(status)}" : "",
      fields: fields, reason: reason)
  }
}
