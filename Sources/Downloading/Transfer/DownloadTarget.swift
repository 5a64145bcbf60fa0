// DownloadTarget: a checked URL of a download or a redirect.

import CCurl
import Core

/// One hop of a load, with the host as curl reads the URL, so that the checked host is the one
/// used.
struct DownloadTarget: Sendable {
  /// An origin: scheme, host and port (RFC 6454).
  struct Origin: Hashable, Sendable {
    let scheme: SourceURL.Scheme
    let host: String
    let port: Int

    /// Whether this is the host's default port for TLS and `other` its default port without TLS.
    /// TLS authenticates the host, so secrets may follow such an upgrade.
    func secures(_ other: Origin) -> Bool {
      self == Origin(scheme: .https, host: host, port: 443)
        && other == Origin(scheme: .http, host: host, port: 80)
    }
  }

  /// The URL that curl fetches.
  let url: SourceURL
  /// The `s3` URL of the object that `url` requests; `nil` for any other request.
  private(set) var object: SourceURL?
  /// The host as curl reads it.
  let host: String
  /// Host and port; the key of `limitPerHost`.
  var hostAndPort: String { "\(host):\(url.port)" }

  /// The key of the circuit: TLS at a port that speaks none fails, and is no failure of the host.
  var circuit: String { url.scheme == .https ? "https://\(hostAndPort)" : hostAndPort }

  /// Checks scheme, host, port and path.
  ///
  /// - Throws: `ImageError.forbiddenSource`, or `invalidURL` if curl finds no usable host.
  init(_ url: SourceURL, hosts: HostPolicy) throws(ImageError) {
    guard url.scheme.isHTTP else {
      throw .forbiddenSource(reason: "its scheme is not http or https", detail: url.text)
    }
    let url = Self.undotted(url) ?? url
    guard let host = Self.host(of: url) else {
      throw .invalidURL(url.text, reason: "its host is invalid")
    }
    try hosts.check(host: host, port: url.port, path: url.path)
    self.url = url
    self.host = host
  }

  /// Returns what has to be requested for a source.
  ///
  /// The lists of hosts are about what clients name. An object store's endpoint is the operator's,
  /// so the rule of its bucket is what allows it.
  ///
  /// - Throws: `ImageError.forbiddenSource` or `invalidURL`.
  static func of(
    _ source: SourceURL, hosts: HostPolicy, rules: [HostRule]
  ) throws(ImageError) -> DownloadTarget {
    guard source.scheme == .s3 else { return try DownloadTarget(source, hosts: hosts) }
    guard let store = rules.first(where: { $0.covers(source) })?.store else {
      throw .forbiddenSource(
        reason: "its bucket is not configured", detail: "\(source.host) has no rule with s3",
        key: "hosts")
    }
    return try DownloadTarget(object: source, at: try store.url(of: source))
  }

  private init(object: SourceURL, at url: SourceURL) throws(ImageError) {
    guard let host = Self.host(of: url) else {
      throw .internal(detail: "\(url.text) has an invalid host")
    }
    self.url = url
    self.host = host
    self.object = object
  }

  /// The URL that operators know the request by.
  var source: SourceURL { object ?? url }

  /// Whether the host is a name that a resolver has to be asked for. Addresses and localhost names
  /// are not (RFC 6761, section 6.3): their refusal tells nothing that the URL does not.
  var isNamed: Bool { Self.isNamed(host) }

  /// Whether a resolver has to be asked for a host in normalized form.
  static func isNamed(_ host: String) -> Bool {
    IPAddress(host) == nil && !host.contains(":") && !isLocal(host)
  }

  /// Whether a host is a localhost name.
  private static func isLocal(_ host: String) -> Bool {
    host == "localhost" || host.hasSuffix(".localhost")
  }

  /// The origin of the URL.
  var origin: Origin { Origin(scheme: url.scheme, host: host, port: url.port) }

  /// Resolves a `Location` of this target's response with curl's parser. Returns an invalid one
  /// unchanged.
  func absolute(_ location: String) -> String {
    guard let parts = curl_url() else { return location }
    defer { curl_url_cleanup(parts) }
    // Accepts other schemes, so that the error can name them, and spaces, as browsers do.
    let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE | CURLU_ALLOW_SPACE)
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_set(parts, CURLUPART_URL, url.text, 0) == CURLUE_OK,
      curl_url_set(parts, CURLUPART_URL, location, flags) == CURLUE_OK,
      curl_url_get(parts, CURLUPART_URL, &text, 0) == CURLUE_OK, let text
    else { return location }
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// The target of a redirect, from an absolute URL.
  ///
  /// - Throws: `ImageError.forbiddenSource`.
  init(redirect location: String, hosts: HostPolicy) throws(ImageError) {
    if let scheme = Self.scheme(of: location), !["http", "https"].contains(scheme) {
      throw .forbiddenSource(
        reason: "it redirects to a URL with the scheme '\(scheme)', and only http and https are "
          + "allowed", detail: location)
    }
    let url: SourceURL
    do throws(ImageError) {
      url = try SourceURL(parsing: location)
    } catch {
      guard case .invalidURL(_, let reason) = error else { throw error }
      throw .forbiddenSource(
        reason: "it redirects to a URL that cannot be used: \(reason)", detail: location)
    }
    try self.init(url, hosts: hosts)
  }

  /// Returns a URL's scheme in lower case (RFC 3986, section 3.1), cut for messages; `nil` without
  /// a scheme.
  private static func scheme(of location: String) -> String? {
    guard let end = location.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let scheme = location[..<end].lowercased()
    let isScheme = scheme.utf8.allSatisfy { byte in
      (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) || "+-.".utf8.contains(byte)
    }
    guard isScheme, let first = scheme.first, first.isLetter else { return nil }
    return String(scheme.prefix(32))
  }

  /// Returns the URL without the trailing dot of its host, if the host is an IP address in any
  /// spelling or a localhost name (RFC 6761, section 6.3). With the dot, curl recognizes neither
  /// and asks a resolver, which fails.
  private static func undotted(_ url: SourceURL) -> SourceURL? {
    let beginning = "\(url.scheme.rawValue)://\(url.host)"
    guard url.host.hasSuffix("."), url.text.hasPrefix(beginning) else { return nil }
    let text = beginning.dropLast() + url.text.dropFirst(beginning.count)
    guard let undotted = try? SourceURL(parsing: String(text)), let host = host(of: undotted),
      IPAddress(host) != nil || isLocal(host)
    else { return nil }
    return undotted
  }

  /// Returns the host as curl's parser reads it: percent-decoded, international names in ASCII, and
  /// every spelling of an IPv4 address (`127.1`, `0x7f000001`) as four decimals.
  private static func host(of url: SourceURL) -> String? {
    guard let parts = curl_url() else { return nil }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, url.text, 0) == CURLUE_OK else { return nil }
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, CURLUPART_HOST, &text, UInt32(CURLU_PUNYCODE)) == CURLUE_OK,
      let text
    else { return nil }
    defer { curl_free(text) }
    let host = HostPattern.normalized(String(cString: text))
    return host.isEmpty ? nil : host
  }
}
