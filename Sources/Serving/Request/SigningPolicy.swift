// SigningPolicy: decides what a target may ask for, by its signature.

import Core

/// Which requests need a signature, and the keys that verify it.
public struct SigningPolicy: Equatable, Sendable {
  /// Which requests need a signature.
  public let mode: SigningMode
  /// Verifies signatures, and signs the targets of redirects.
  public let signer: URLSigner

  /// Creates a policy; by default no request needs a signature.
  public init(mode: SigningMode = .off, keys: [SigningKey] = []) {
    self.mode = mode
    signer = URLSigner(keys: keys)
  }
}

/// What a target may ask for.
struct RequestGrant: Sendable {
  var rules: RequestRules
  /// Whether it has a valid signature.
  var isSigned = false
  /// When the signature expires; `nil` for never.
  var expiry: UnixTime?
}

extension RequestRules {
  /// Verifies a target's signature, without its time: a grant is kept with its target.
  ///
  /// - Parameter query: the query as sent, without its `?`.
  /// - Throws: `invalidSignature`; the errors of `ImageQuery` if the query cannot be signed at all.
  func grant(
    path: String, query: ArraySlice<UInt8>, kind: ImageQuery.Kind
  ) throws(ImageError) -> RequestGrant {
    guard signing.mode != .off else { return RequestGrant(rules: self) }
    guard let text = SignedText(path: path, query: query) else {
      // Names the parameter that is wrong.
      _ = try ImageQuery(query, kind: kind, ignoring: ignoredParameters)
      throw .invalidSignature(reason: "the query is not percent-encoded UTF-8")
    }
    guard text.signature != nil || text.hasExpiry || signing.mode == .required else {
      return RequestGrant(rules: self)
    }
    do throws(SignatureFault) {
      try signing.signer.verify(text)
    } catch {
      throw .invalidSignature(reason: error.wording(hasExpiry: text.hasExpiry))
    }
    let expiry = try ImageQuery(query, kind: kind, ignoring: ignoredParameters).expiry()
    return RequestGrant(rules: forSigned, isSigned: true, expiry: expiry)
  }
}

extension RequestRules {
  /// Decides what an address of a peer may ask for. A signature of the peer's kind is as good as
  /// our own; a door without keys has the rights of unsigned requests.
  ///
  /// - Throws: `invalidSignature` if all requests need a signature.
  func grant(to translation: DoorTranslation) throws(ImageError) -> RequestGrant {
    guard !translation.isSigned else {
      return RequestGrant(rules: forSigned, isSigned: true, expiry: translation.expiry)
    }
    guard signing.mode != .required else {
      throw .invalidSignature(reason: "all requests need one, and this door has no keys")
    }
    return RequestGrant(rules: self, expiry: translation.expiry)
  }
}

extension SignatureFault {
  /// Completes "the signature is not valid: …". Contains nothing of a signature.
  fileprivate func wording(hasExpiry: Bool) -> String {
    switch self {
    case .missing where hasExpiry: "the parameter 'exp' needs the parameter 'sig'"
    case .missing: "the parameter 'sig' is required"
    case .malformed:
      "it is not the \(URLSigner.signatureLength) characters of base64url without '=' of an "
        + "HMAC-SHA256, after the key's id and a '.'"
    case .unknownKey: "no key has its id"
    case .mismatch: "it does not belong to this path, these parameters and a key of this server"
    }
  }
}

extension ImageQuery {
  /// Returns the time of `exp`, or `nil`.
  ///
  /// - Throws: `invalidParameter`.
  fileprivate func expiry() throws(ImageError) -> UnixTime? {
    guard let text = value(of: "exp") else { return nil }
    guard let seconds = ParameterText(text).whole(in: ImageParameter.expiryRange) else {
      throw .invalidParameter(
        name: "exp", value: displayable(text), allowed: ImageParameter.expiryTimes.text)
    }
    return UnixTime(seconds: seconds)
  }
}

extension RequestContext {
  /// Returns the target unless its signature has expired. A token stands for a signature.
  ///
  /// - Throws: `expiredSignature`.
  func entitledTarget() throws(ImageError) -> RequestTarget {
    guard let target = client.target else { throw .internal(detail: "a request without a target") }
    // Read first, because most servers restrict nothing but `onerror`.
    // Where a door has a secret, `Authorization` may be its.
    if target.secret == nil, policy.isRestricting || target.lacksRight,
      !target.isSigned || target.isExpired(at: Clock.now()), isOperator
    {
      let entitled = RequestTarget(
        raw: target.raw, rules: policy.operatorRules, endpoints: policy.endpoints,
        host: client.host > 0 ? policy.endpoints.hosts[client.host - 1] : "")
      entitled.isOfOperator = true
      client.target = entitled
      return entitled
    }
    if let expiry = target.expiry, target.isExpired(at: Clock.now()) {
      throw .expiredSignature(expiry.seconds)
    }
    return target
  }
}

extension RequestTarget {
  /// Whether the target was refused for a parameter that not every client may use.
  fileprivate var lacksRight: Bool {
    switch request {
    case .failure(.unsignedParameter)?, .failure(.forbiddenParameter)?: true
    default: false
    }
  }

  /// Whether the signature is no longer valid: from the second on that `exp` names.
  func isExpired(at now: UnixTime) -> Bool { expiry.map { $0 <= now } ?? false }
}
