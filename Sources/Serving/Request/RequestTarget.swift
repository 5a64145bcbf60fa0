// RequestTarget: the parsed form of a raw request target.

import Model
import Signing

/// The parsed form of a raw request target (RFC 9112, section 3.2).
///
/// Belongs to the thread of one event loop.
final class RequestTarget {
  /// The raw bytes, for comparison with colliding targets and for the log.
  let raw: [UInt8]
  /// `RequestMemo.hash` of `raw`.
  let hash: UInt64
  /// The decoded path, for messages. Use `endpoint` for decisions.
  let path: String
  /// The endpoint; `nil` for an unknown path.
  let endpoint: (any Endpoint)?
  /// The name of the item in the path; empty for endpoints without items.
  let name: String
  /// The image request of the query, or its error; `nil` for endpoints without an `imageQuery`.
  let request: Result<ImageRequest, ImageError>?
  /// The request fields forwarded to the source's origin; `nil` for none.
  let forwarding: Forwarding?
  /// The cache key, if the target alone determines it and memory may have the response. A hit
  /// copies the key instead of the whole request.
  let key: CacheKey?
  /// Whether the response depends on `Accept`; `key` is then for clients that accept no negotiable
  /// format.
  let isNegotiated: Bool
  /// How the response follows client hints; `nil` if it does not. `key` is then for clients without
  /// hints.
  let hintUse: HintUse?
  /// `HintNeeds.number`, which each hit compares.
  let hintNumber: UInt8
  /// Whether the response depends on request fields beside those that are forwarded.
  let isAdaptive: Bool
  /// The `Vary` field of the response (RFC 9110, section 12.5.5); `nil` if the response does not
  /// vary.
  let vary: String?
  /// Whether the target has a valid signature.
  let isSigned: Bool
  /// When the signature expires; `nil` without `exp`. The signature is verified once per target,
  /// this time at each request.
  let expiry: UnixTime?
  /// The loading options that requests with the target may use.
  let rights: Set<ClientOption>
  /// Whether an operator's token stands for the signature. Shared caches must not store the
  /// response, which they would send to others.
  var isOfOperator = false
  /// The keys of the classes of clients seen so far, indexed by class.
  private var negotiatedKeys: [CacheKey?] = []
  /// The keys of clients with hints.
  private var hintedKeys = HintedKeys()

  /// Parses a target of a listener with these endpoints. Errors are stored in `request`.
  init(raw: [UInt8], hash: UInt64, rules: RequestRules, endpoints: EndpointTable = .everyone) {
    self.raw = raw
    self.hash = hash
    let origin = Self.originForm(raw[...])
    let end = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
    let decoded = PercentEncoding.decode(origin[..<end])
    let path = decoded ?? displayable(origin[..<end])
    self.path = path
    let found = decoded.flatMap(endpoints.find)
    endpoint = found?.endpoint
    name = found?.name ?? ""
    let parsed = endpoint?.imageQuery.map {
      Parsed(origin[end...].dropFirst(), path: path, kind: $0, rules: rules)
    }
    request = parsed?.request
    forwarding = parsed?.forwarding
    key = parsed?.key
    isNegotiated = parsed?.isNegotiated ?? false
    hintUse = parsed?.hintUse
    hintNumber = hintUse?.needs.number ?? 0
    isAdaptive = isNegotiated || hintUse != nil
    vary = parsed?.vary
    isSigned = parsed?.grant.isSigned ?? false
    expiry = parsed?.grant.expiry
    rights = parsed?.grant.rules.options ?? []
  }

  /// What follows from a query for an image. After an error the rest has its defaults.
  private struct Parsed {
    let request: Result<ImageRequest, ImageError>
    var forwarding: Forwarding?
    var key: CacheKey?
    var isNegotiated = false
    var hintUse: HintUse?
    var vary: String?
    var grant: RequestGrant

    init(
      _ query: ArraySlice<UInt8>, path: String, kind: ImageQuery.Kind, rules: RequestRules
    ) {
      grant = RequestGrant(rules: rules)
      do throws(ImageError) {
        grant = try rules.grant(path: path, query: query, kind: kind)
        let (parsed, hints) = try ImageParameter.parseAdaptive(
          query, rules: grant.rules, kind: kind)
        forwarding = Forwarding(
          names: rules.keyFilter.rule(for: parsed.source)?.forwardedHeaders ?? [])
        let mayHit = parsed.options.cache == .normal || parsed.options.cache == .only
        isNegotiated = rules.isNegotiated(parsed.transform)
        hintUse = HintUse(hints, of: parsed, rules: rules)
        vary = RequestTarget.vary(forwarding, isNegotiated: isNegotiated, hints: hints)
        // The response to a redirected request is not cached.
        let isRedirected = (isNegotiated || !hints.isEmpty) && rules.redirectsAuto
        request = .success(parsed)
        key = mayHit && forwarding == nil && !isRedirected ? parsed.key : nil
      } catch {
        request = .failure(error)
      }
    }
  }

  /// The source's file name without its extension, if the response depends on nothing but the
  /// target and `Accept`, may be stored in all tiers, and the name is plain; `nil` otherwise.
  var plainStem: String? {
    guard key != nil, hintUse == nil, forwarding == nil, expiry == nil, !isPrivate,
      case .success(let request) = request, request.options.store == .all,
      request.options.age == AgeDemands(), !request.options.isRevalidation,
      let stem = ContentDisposition.plainStem(of: request.source.fileName)
    else { return nil }
    return String(stem)
  }

  /// Whether shared caches must not store the response.
  var isPrivate: Bool { isOfOperator || forwarding?.isPrivate == true }

  /// Returns the key for clients that accept `formats`, if memory may have the response. Allocates
  /// only for the first request of a class.
  func key(accepting formats: AcceptedFormats, _ rules: RequestRules) -> CacheKey? {
    let formats = formats.intersection(rules.onOffer)
    guard key != nil, !formats.isEmpty else { return key }
    let place = Int(formats.rawValue)
    if place < negotiatedKeys.count, let known = negotiatedKeys[place] { return known }
    guard case .success(let request) = request else { return nil }
    if negotiatedKeys.isEmpty {
      negotiatedKeys = Array(repeating: nil, count: AcceptedFormats.classCount)
    }
    let made = rules.request(request, accepting: formats).key
    negotiatedKeys[place] = made
    return made
  }

  /// Returns the key for clients that accept `formats` and send `hints`, if memory may have the
  /// response. Allocates only for hints that were not seen lately.
  func key(
    accepting formats: AcceptedFormats, for hints: ClientHints, _ rules: RequestRules
  ) -> CacheKey? {
    guard !hints.isEmpty else { return key(accepting: formats, rules) }
    guard key != nil, case .success(let request) = request else { return key }
    let formats = formats.intersection(rules.onOffer)
    if let known = hintedKeys.key(for: hints, formats) { return known }
    let made = rules.request(rules.request(request, accepting: formats), for: hints).key
    hintedKeys.keep(made, for: hints, formats)
    return made
  }

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
