// HostRules: the hosts that downloads may use, and what requests to them carry and share.

import CCurl
import Core
import Requesting

/// The operator's allow and deny lists of sources, and the ports. Each hop of a load is checked by
/// the name that is connected to, the port and the path.
///
/// Another name may lead to a denied host's address; `AddressPolicy` checks addresses.
public struct HostPolicy: Sendable {
  /// Allowed sources; empty: all. A pattern with a port also allows a port outside of `ports`.
  public var allowed: [SourcePattern]
  /// Denied sources; takes precedence over `allowed`.
  public var denied: [SourcePattern]
  /// Ports that may be used.
  public var ports: [PortRange]

  /// Creates a policy; by default all hosts and ports are allowed.
  public init(
    allowed: [SourcePattern] = [], denied: [SourcePattern] = [], ports: [PortRange] = []
  ) {
    self.allowed = allowed
    self.denied = denied
    self.ports = ports
  }

  /// Checks a source.
  ///
  /// - Parameters:
  ///   - host: the host in the form of `DownloadTarget.host`.
  ///   - port: the port, given or the scheme's default.
  ///   - path: the percent-encoded path.
  /// - Throws: `ImageError.forbiddenSource` for a source that is denied or not allowed.
  func check(host: String, port: Int, path: String) throws(ImageError) {
    let reading = PathReading(path)
    if let pattern = denied.first(where: { $0.touches(host: host, port: port, path: reading) }) {
      throw .forbiddenSource(
        reason: "its \(pattern.isOfWholeHosts ? "host" : "port or path") is on the deny list",
        detail: pattern.isOfWholeHosts ? host : "\(host):\(port)\(path) (\(pattern))",
        key: "download.deny_hosts")
    }
    let matching = allowed.filter { $0.covers(host: host, port: port, path: reading) }
    guard allowed.isEmpty || !matching.isEmpty else {
      let isKnown = allowed.contains { $0.host.matches(host) }
      throw .forbiddenSource(
        reason: "its \(isKnown ? "port or path" : "host") is not on the allow list",
        detail: isKnown ? "\(host):\(port)\(path)" : host, key: "download.allow_hosts")
    }
    guard
      ports.isEmpty || ports.contains(where: { $0.ports.contains(port) })
        || matching.contains(where: { $0.port == port })
    else {
      throw .forbiddenSource(
        reason: "port \(port) is not allowed", detail: "\(host):\(port)", key: "download.ports")
    }
  }
}

/// The rules of a downloader, with their connections and cookies. The first rule that matches a
/// host applies.
struct HostRules: Sendable {
  /// A rule with what its transfers share.
  struct Entry: Sendable {
    let rule: HostRule
    let share: RuleShare
  }

  private let entries: [Entry]

  /// - Parameter known: earlier rules. One that has not changed keeps what it shares.
  init(_ rules: [HostRule], keeping known: HostRules? = nil) throws(ImageError) {
    var entries: [Entry] = []
    for rule in rules {
      if let same = known?.entries.first(where: { $0.rule == rule }) {
        entries.append(same)
      } else {
        entries.append(Entry(rule: rule, share: try RuleShare(keepsCookies: rule.keepsCookies)))
      }
    }
    self.entries = entries
  }

  /// Returns the rule for the requests to a target.
  subscript(target: DownloadTarget) -> Entry? {
    guard let object = target.object else {
      return entries.first { $0.rule.store == nil && $0.rule.host.matches(target.host) }
    }
    let entry = entries.first { $0.rule.store != nil && $0.rule.host.matches(object.host) }
    // A load that waited may have the endpoint of an earlier rule, which must not see the secrets
    // of this one.
    return (try? entry?.rule.store?.url(of: object)) == target.url ? entry : nil
  }
}

/// The origins that a load was redirected through. Decides which origins get secrets (RFC 9110,
/// section 15.4).
///
/// Another port, or the same host without TLS, may belong to someone else. A client's forwarded
/// fields therefore go to the first origin only. A host rule's secrets go only to the host's origin
/// that the load reached first, or after an upgrade from HTTP to TLS at the default ports. Both
/// must also be among the rule's `credentialOrigins`.
struct RedirectTrail {
  private let first: DownloadTarget.Origin
  private var origins: [String: DownloadTarget.Origin]

  init(_ target: DownloadTarget) {
    first = target.origin
    origins = [target.host: target.origin]
  }

  /// Records a hop. Returns whether the hop gets its host's secrets.
  mutating func enter(_ target: DownloadTarget) -> Bool {
    guard let known = origins[target.host] else {
      origins[target.host] = target.origin
      return true
    }
    return known == target.origin || target.origin.secures(known)
  }

  /// Whether a hop goes to the requested origin.
  func isFirst(_ target: DownloadTarget) -> Bool { target.origin == first }
}

/// What requests to object stores have beside other requests.
enum ObjectRequest {
  /// Returns the fields that sign a request now; none for requests to other origins or without
  /// credentials. Call it for each attempt: stores accept a signature for 15 minutes.
  static func signature(for target: DownloadTarget, of rule: HostRule?) -> [HeaderField] {
    guard target.object != nil, let store = rule?.store, let credentials = rule?.storeCredentials
    else { return [] }
    return AWSSigner(credentials, region: store.region).fields(
      for: AWSRequest(host: target.url.authority, path: target.url.path), at: .now)
  }

  /// Returns an error with the store's code as its detail.
  static func error(_ error: ImageError, code: String?) -> ImageError {
    guard case .sourceError(let status, let seconds, _) = error, let code else { return error }
    return .sourceError(
      status: status, retryAfter: seconds,
      detail: "the object store says \(code)" + (advice[code].map { ": \($0)" } ?? ""))
  }

  /// What an operator can do about a code.
  private static let advice = [
    "RequestTimeTooSkewed": "the clock of this machine or of the store is wrong",
    "SignatureDoesNotMatch": "secret_key or region is wrong, or a proxy changes requests",
    "InvalidAccessKeyId": "access_key is unknown",
    "ExpiredToken": "session_token has expired; credentials are read when the server starts",
    "AuthorizationHeaderMalformed": "region is wrong",
    "AccessDenied":
      "the credentials may not read the object, or it is missing and they may not list the bucket",
  ]
}

/// What all transfers of one rule share, and no other transfer: idle connections, and cookies if
/// the rule keeps them. curl assigns cookies to hosts and paths.
///
/// A rule decides about credentials, certificates and the proxy. Without pools of their own, two
/// rules with one proxy would share its connections, with the user that opened them. Only the
/// transfer thread uses a share, so curl needs no locks.
final class RuleShare: @unchecked Sendable {
  // Sound as Sendable: created before the transfer thread starts or on it, and used on that thread
  // only from then on.

  /// curl's share handle. It outlives the easy handles that use it, because their transfers retain
  /// the share.
  let pointer: OpaquePointer
  /// Whether the rule keeps cookies.
  let keepsCookies: Bool
  private var answers = 0

  /// Maximum number of cookies; more are discarded together, so that an origin cannot fill the
  /// memory. A browser keeps 180 per site.
  static let limit = 1_000
  /// Number of responses after which the cookies are counted. One response can set up to 50.
  private static let interval = 64

  init(keepsCookies: Bool) throws(ImageError) {
    guard Curl.isReady, let pointer = curl_share_init() else {
      throw .internal(detail: "curl_share_init failed")
    }
    self.pointer = OpaquePointer(pointer)
    self.keepsCookies = keepsCookies
    // If this throws, `deinit` frees the handle, because every stored property is set.
    let kinds = [CURL_LOCK_DATA_CONNECT] + (keepsCookies ? [CURL_LOCK_DATA_COOKIE] : [])
    for kind in kinds {
      let code = pictor_curl_share_data(pointer, kind)
      guard code == CURLSHE_OK else {
        throw .internal(detail: "curl share: \(String(cString: curl_share_strerror(code)))")
      }
    }
  }

  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }

  /// Records a response on a handle that uses this share.
  func receivedAnswer(on easy: borrowing EasyHandle) {
    guard keepsCookies else { return }
    answers += 1
    guard answers % Self.interval == 0, easy.cookieCount > Self.limit else { return }
    easy.clearCookies()
  }
}
