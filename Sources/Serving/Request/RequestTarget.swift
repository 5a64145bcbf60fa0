// RequestTarget: the parsed form of a raw request target.

import Core

/// The parsed form of a raw request target (RFC 9112, section 3.2).
///
/// Belongs to the thread of one event loop.
final class RequestTarget {
  /// The raw bytes, for the log.
  let raw: [UInt8]
  /// The decoded path, for messages. Use `endpoint` for decisions.
  let path: String
  /// The endpoint; `nil` for an unknown path.
  let endpoint: (any Endpoint)?
  /// The door whose address this is; `nil` for Pictor's own.
  let door: (any Door)?
  /// The name of the item in the path; empty for endpoints without items.
  let name: String
  /// The image request of the query, or its error; `nil` for endpoints without an `imageQuery`.
  var request: Result<ImageRequest, ImageError>? { parsed?.request }
  /// The request fields forwarded to the source's origin; `nil` for none.
  var forwarding: Forwarding? { parsed?.forwarding }
  /// The cache key, if the target alone determines it and memory may have the response. A hit
  /// copies the key instead of the whole request.
  var key: CacheKey? { parsed?.key }
  /// Whether the response depends on `Accept`; `key` is then for clients that accept no negotiable
  /// format.
  var isNegotiated: Bool { parsed?.isNegotiated ?? false }
  /// How the response follows client hints; `nil` if it does not. `key` is then for clients without
  /// hints.
  var hintUse: HintUse? { parsed?.hintUse }
  /// Whether the response depends on request fields beside those that are forwarded.
  var isAdaptive: Bool { isNegotiated || hintUse != nil }
  /// The `Vary` field of the response (RFC 9110, section 12.5.5); `nil` if the response does not
  /// vary.
  var vary: String? { parsed?.vary }
  /// Whether the target has a valid signature.
  var isSigned: Bool { parsed?.grant.isSigned ?? false }
  /// What a field of each request must say besides; `nil`: nothing.
  var secret: DoorSecret? { parsed?.secret }
  /// When the signature expires; `nil` without `exp`. The signature is verified once per target,
  /// this time at each request.
  var expiry: UnixTime? { parsed?.grant.expiry }
  /// The loading options that requests with the target may use.
  var rights: Set<ClientOption> { parsed?.grant.rules.options ?? [] }
  private let parsed: Parsed?
  /// Whether an operator's token stands for the signature. Shared caches must not store the
  /// response, which they would send to others.
  var isOfOperator = false

  /// Parses a target of a listener with these endpoints. Errors are stored in `request`.
  ///
  /// - Parameter host: the host that the request names, if a door has it.
  init(
    raw: [UInt8], rules: RequestRules, endpoints: EndpointTable = .everyone, host: String = ""
  ) {
    self.raw = raw
    let origin = Self.originForm(raw[...])
    let end = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
    let decoded = PercentEncoding.decode(origin[..<end])
    let path = decoded ?? displayable(origin[..<end])
    self.path = path
    let found = decoded.flatMap(endpoints.find)
    let query = origin[end...].dropFirst()
    let entered = endpoints.door(
      path: origin[..<end], query: query, host: host, besides: found?.endpoint)
    door = entered?.door
    endpoint =
      entered.map {
        var image = ImageEndpoint($0.door.name, .image)
        if $0.door.takesBodies, rules.bodies != .off { image.methods.append(.post) }
        return image
      } ?? found?.endpoint
    name = found?.name ?? ""
    parsed =
      entered.map { Parsed($0.address, at: $0.door, rules: rules) }
      ?? endpoint?.imageQuery.map { Parsed(query, path: path, kind: $0, rules: rules) }
  }

  /// What follows from a query for an image. After an error the rest has its defaults.
  private struct Parsed {
    var request: Result<ImageRequest, ImageError> = .failure(.missingParameter("url"))
    var forwarding: Forwarding?
    var key: CacheKey?
    var isNegotiated = false
    var hintUse: HintUse?
    var vary: String?
    var grant: RequestGrant
    var secret: DoorSecret?

    init(
      _ query: ArraySlice<UInt8>, path: String, kind: ImageQuery.Kind, rules: RequestRules
    ) {
      grant = RequestGrant(rules: rules)
      do throws(ImageError) {
        grant = try rules.grant(path: path, query: query, kind: kind)
        request = .success(try read(query, kind: kind, redirects: rules.redirectsAuto))
      } catch {
        request = .failure(error)
      }
    }

    /// Parses an address at a door.
    init(_ address: DoorAddress, at door: any Door, rules: RequestRules) {
      grant = RequestGrant(rules: rules)
      secret = door.secret(of: address)
      do throws(ImageError) {
        var translation = try door.translated(address)
        // Not what is usual at `/image`.
        if translation["format"] == nil { translation["format"] = "auto" }
        grant = try rules.grant(to: translation)
        grant.rules.areOfDoor = true
        var parsed = try read(
          translation.query.utf8, kind: translation.isDescription ? .info : .image,
          redirects: false)
        // Hits would not look for it.
        if secret != nil { key = nil }
        if translation.redirectsFailures { parsed.options.onFailure = .redirect }
        request = .success(parsed)
      } catch {
        request = .failure(error)
      }
    }

    /// Reads the query of an image, as far as the grant allows it.
    private mutating func read(
      _ query: some Collection<UInt8>, kind: ImageQuery.Kind, redirects: Bool
    ) throws(ImageError) -> ImageRequest {
      let rules = grant.rules
      let (parsed, hints) = try ImageParameter.parseAdaptive(
        query, rules: rules, kind: kind)
      forwarding = Forwarding(
        names: rules.keyFilter.rule(for: parsed.source)?.forwardedHeaders ?? [])
      // Prepared responses say what all clients are told.
      let mayHit =
        (parsed.options.cache == .normal || parsed.options.cache == .only)
        && parsed.options.presentation == Presentation()
      isNegotiated = rules.isNegotiated(parsed.transform)
      hintUse = HintUse(hints, of: parsed, rules: rules)
      vary = RequestTarget.vary(forwarding, isNegotiated: isNegotiated, hints: hints)
      // The response to a redirected request is not cached.
      let isRedirected = redirects && (isNegotiated || !hints.isEmpty)
      key = mayHit && forwarding == nil && !isRedirected ? parsed.key : nil
      return parsed
    }
  }

  /// The source's file name without its extension, if the response depends on nothing but the
  /// target and `Accept`, may be stored in all tiers, and the name is plain; `nil` otherwise.
  var plainStem: String? {
    guard key != nil, door?.cacheField == nil, hintUse == nil, forwarding == nil, expiry == nil,
      !isPrivate,
      case .success(let request) = request, request.options.store == .all,
      request.options.age == AgeDemands(), !request.options.isRevalidation,
      let stem = ContentDisposition.plainStem(of: request.source.fileName)
    else { return nil }
    return String(stem)
  }

  /// Whether shared caches must not store the response.
  var isPrivate: Bool { isOfOperator || forwarding?.isPrivate == true }

  private static func vary(
    _ forwarding: Forwarding?, isNegotiated: Bool, hints: HintNeeds
  ) -> String? {
    var names = forwarding?.names ?? []
    for name in (isNegotiated ? ["Accept"] : []) + hints.fields
    where !names.contains(where: { $0.lowercased() == name.lowercased() }) {
      names.append(name)
    }
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// The query, without the `?`.
  var query: ArraySlice<UInt8> {
    let origin = Self.originForm(raw[...])
    return origin.drop { $0 != UInt8(ascii: "?") }.dropFirst()
  }

  /// Removes the scheme and authority of the absolute form, which every server must accept.
  static func originForm(_ target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    for scheme in ["http://", "https://"]
    where target.prefix(scheme.utf8.count).elementsEqual(scheme.utf8) {
      let rest = target.dropFirst(scheme.utf8.count)
      let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      return rest[slash...]
    }
    return target
  }
}

extension RequestTarget {
  /// Returns the redirect location that names `format` and has numbers in place of `auto`. It is
  /// relative to the last path segment (RFC 3986, section 5.2), because a proxy may use another
  /// path. The location of a signed target is signed by `signer`, with the same `exp`.
  func location(naming format: ImageFormat, sizing: Sizing, signer: URLSigner) -> String {
    let origin = Self.originForm(raw[...])
    let path = origin.prefix { $0 != UInt8(ascii: "?") }
    let name = path[(path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)...].dropFirst()
    // Replaces `auto`, and drops a signature of the whole.
    var replaced = isNegotiated ? ["format": format.rawValue] : [:]
    if isSigned { replaced["sig"] = "" }
    if hintUse?.needs.density == true {
      replaced["scale"] = sizing.scale.map(ResponseHead.decimal) ?? ""
    }
    if hintUse?.needs.width == true {
      replaced["w"] = sizing.width.map(String.init) ?? ""
      // As rounded for this client: next to a width, it would be rounded in another way.
      replaced["h"] = sizing.height.map(String.init) ?? ""
    }
    let kept = query.split(separator: UInt8(ascii: "&")).filter {
      replaced[ImageQuery.name(of: $0.prefix { $0 != UInt8(ascii: "=") }) ?? ""] == nil
    }
    let added = replaced.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
    let parts = kept.map(Self.written) + added.map { $0.key + "=" + $0.value }
    let unsigned = parts.joined(separator: "&")
    let signature =
      isSigned
      ? SignedText(path: self.path, query: unsigned.utf8).flatMap { signer.sign($0) } : nil
    return Self.written(name) + "?" + unsigned + (signature.map { "&sig=" + $0 } ?? "")
  }

  /// Percent-encodes the bytes that are not URI characters (RFC 3986, section 2).
  private static func written(_ bytes: ArraySlice<UInt8>) -> String {
    var text = ""
    for byte in bytes {
      if (0x21...0x7e).contains(byte), !"\"#<>\\^`{|}".utf8.contains(byte) {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return text
  }
}

extension RequestTarget {
  /// Returns a hint for a source that was not found and whose URL has a literal `+` in its path;
  /// `nil` for other errors.
  ///
  /// HTML forms write a space as `+`; in a URL it stands for itself (RFC 3986), so the origin is
  /// asked for a name with a plus. A client that sends `%2B` wants the plus, and gets no hint.
  func hint(for error: ImageError) -> String? {
    guard case .sourceNotFound = error.cause, case .success(let request)? = request,
      request.source.path.contains("+"), hasPlusInURL
    else { return nil }
    return "its path has a '+', which is not decoded as a space: write %20 for a space"
  }

  private var hasPlusInURL: Bool {
    query.split(separator: UInt8(ascii: "&")).contains { piece in
      let name = piece.prefix { $0 != UInt8(ascii: "=") }
      return PercentEncoding.decode(name) == "url" && piece.contains(UInt8(ascii: "+"))
    }
  }
}
