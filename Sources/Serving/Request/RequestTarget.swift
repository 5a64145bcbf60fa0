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
  /// The `Vary` field of the response (RFC 9110, section 12.5.5); `nil` if the response does not
  /// vary.
  let vary: String?
  /// Whether the target has a valid signature.
  let isSigned: Bool
  /// When the signature expires; `nil` without `exp`. The signature is verified once per target, this time at each
  /// request.
  let expiry: UnixTime?
  /// The loading options that requests with the target may use.
  let rights: Set<ClientOption>
  /// Whether an operator's token stands for the signature. Shared caches must not store the response, which they
  /// would send to others.
  var isOfOperator = false
  /// The keys of the classes of clients seen so far, indexed by class.
  private var negotiatedKeys: [CacheKey?] = []

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
    var vary: String?
    var grant: RequestGrant

    init(
      _ query: ArraySlice<UInt8>, path: String, kind: ImageQuery.Kind, rules: RequestRules
    ) {
      grant = RequestGrant(rules: rules)
      do throws(ImageError) {
        grant = try rules.grant(path: path, query: query, kind: kind)
        let parsed = try ImageParameter.parse(query, rules: grant.rules, kind: kind)
        forwarding = Forwarding(
          names: rules.keyFilter.rule(for: parsed.source)?.forwardedHeaders ?? [])
        let mayHit = parsed.options.cache == .normal || parsed.options.cache == .only
        isNegotiated = rules.isNegotiated(parsed.transform)
        vary = RequestTarget.vary(forwarding, isNegotiated: isNegotiated)
        // The response to a redirected request is not cached.
        let isRedirected = isNegotiated && rules.redirectsAuto
        request = .success(parsed)
        key = mayHit && forwarding == nil && !isRedirected ? parsed.key : nil
      } catch {
        request = .failure(error)
      }
    }
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

  private static func vary(_ forwarding: Forwarding?, isNegotiated: Bool) -> String? {
    var names = forwarding?.names ?? []
    if isNegotiated, !names.contains(where: { $0.lowercased() == "accept" }) {
      names.append("Accept")
    }
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// Returns the redirect location that names `format`. It is relative to the last path segment
  /// (RFC 3986, section 5.2), because a proxy may use another path. The location of a signed target is
  /// signed by `signer`, with the same `exp`.
  func location(naming format: ImageFormat, signer: URLSigner) -> String {
    let origin = Self.originForm(raw[...])
    let path = origin.prefix { $0 != UInt8(ascii: "?") }
    let name = path[(path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)...].dropFirst()
    // Drops `format=auto`, the default, and a signature without it.
    let dropped = isSigned ? ["format", "sig"] : ["format"]
    let kept = query.split(separator: UInt8(ascii: "&")).filter {
      !dropped.contains(PercentEncoding.decode($0.prefix { $0 != UInt8(ascii: "=") }) ?? "")
    }
    let parts = kept.map(Self.written) + ["format=" + format.rawValue]
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

  /// The query, without the `?`.
  var query: ArraySlice<UInt8> {
    let origin = Self.originForm(raw[...])
    return origin.drop { $0 != UInt8(ascii: "?") }.dropFirst()
  }

  /// Removes the scheme and authority of the absolute form, which every server must accept.
  private static func originForm(_ target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    for scheme in ["http://", "https://"]
    where target.prefix(scheme.utf8.count).elementsEqual(scheme.utf8) {
      let rest = target.dropFirst(scheme.utf8.count)
      let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      return rest[slash...]
    }
    return target
  }
}
