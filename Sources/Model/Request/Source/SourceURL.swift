// SourceURL: a parsed and normalized URL of a source.

import FoundationEssentials

/// The absolute URL of a source: `http`, `https`, `s3://bucket/key`, or `local:///path`.
///
/// Equivalent spellings (letter case of scheme and host, default port, fragment, empty path, dot
/// segments; RFC 3986, section 6.2) have the same `text`, so one download and cache entry.
public struct SourceURL: Hashable, Sendable {
  /// The scheme of a source URL.
  public enum Scheme: String, Sendable {
    /// Plain HTTP.
    case http
    /// HTTP over TLS.
    case https
    /// An object in a bucket.
    case s3
    /// A file below the configured local root.
    case local
    /// The body of a request. Only `init(bodyWith:)` makes such a URL.
    case body

    /// Whether another server has the source.
    public var hasOrigin: Bool { self != .local && self != .body }
  }

  /// The scheme.
  public let scheme: Scheme
  /// The host in lower case, IPv6 without brackets; the bucket for `s3`; empty for `local`.
  public let host: String
  /// The port, explicit or default; 0 for `s3` and `local`.
  public let port: Int
  /// The path: percent-encoded for HTTP and `s3`, decoded for `local`. Always starts with `/`.
  public let path: String
  /// The canonical URL, as in cache keys, logs and requests to origins.
  public private(set) var text: String
  /// Pixels per point by the file name: 2 for `@2x.`, 3 for `@3x.`, otherwise 1
  /// (SDScaledImageForKey).
  public let density: Int

  /// The maximum length of a URL, in UTF-8 bytes.
  public static let maximumLength = 8_192

  /// Parses an absolute URL.
  ///
  /// - Throws: `ImageError.invalidURL` with the reason.
  public init(parsing string: String) throws(ImageError) {
    if string.utf8.count <= Self.maximumLength, let plain = PlainURL(string) {
      self.init(
        plain.scheme, host: plain.host, port: plain.port, path: plain.path, text: string)
    } else if let object = try ObjectName.parse(string) {
      self.init(
        .s3, host: object.bucket, path: object.path,
        text: ObjectName.prefix + object.bucket + object.path)
    } else {
      try self.init(normalizing: string)
    }
  }

  /// Creates the URL of a source that came with its request.
  ///
  /// - Parameter digest: names the bytes; empty before they have arrived.
  public init(bodyWith digest: String) {
    self.init(.body, host: "", path: "/image", text: "body:///" + digest)
  }

  private init(_ scheme: Scheme, host: String, port: Int = 0, path: String, text: String) {
    self.scheme = scheme
    self.host = host
    self.port = port
    self.path = path
    self.text = text
    density = Self.density(ofName: path)
  }

  /// Parses a URL in any form.
  init(normalizing string: String) throws(ImageError) {
    func refuse(_ reason: String) -> ImageError { .invalidURL(string, reason: reason) }
    guard !string.isEmpty else { throw refuse("it is empty") }
    guard string.utf8.count <= Self.maximumLength else {
      // Masked before it is cut, because the sign that marks a password may come after the cut.
      let masked = SecretMask.masked(String(string.prefix(2 * Self.maximumLength)))
      throw .invalidURL(String(masked.prefix(64)) + "…", reason: "it is longer than 8192 bytes")
    }
    guard !string.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
      throw refuse("it contains a control character")
    }
    guard let url = URL(string: string, encodingInvalidCharacters: true),
      let parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
    else { throw refuse("it is not a URL") }
    guard let name = parts.scheme?.lowercased() else { throw refuse("it has no scheme") }
    guard let scheme = Scheme(rawValue: name), scheme != .body else {
      throw refuse("the scheme must be http, https, s3 or local")
    }
    guard scheme != .s3 else { throw refuse("an s3 URL is s3://bucket/key") }

    if scheme == .local {
      guard (parts.host ?? "").isEmpty else { throw refuse("a local URL is local:///path") }
      let path = parts.path
      // An encoded slash at the beginning would be a host in the canonical form.
      guard path.hasPrefix("/"), parts.percentEncodedPath.hasPrefix("/"), path.utf8.count > 1,
        !path.utf8.contains(0)
      else {
        throw refuse("a local URL is local:///path")
      }
      if let query = parts.percentEncodedQuery {
        throw refuse(
          "a local URL has no query, so '?\(query.prefix(64))' is part of nothing; parameters follow "
            + "it after '&', and a '?' in the name of a file is %3F")
      }
      self.init(.local, host: "", path: path, text: "local://" + parts.percentEncodedPath)
    } else {
      guard parts.user == nil, parts.password == nil else {
        throw refuse("a user or password in a URL is not accepted")
      }
      guard let encodedHost = parts.encodedHost?.lowercased(), !encodedHost.isEmpty else {
        throw refuse("it has no host")
      }
      let standardPort = scheme == .https ? 443 : 80
      // A port beyond `Int` is there, but has no value.
      let hasPort = parts.rangeOfPort.map { !$0.isEmpty } ?? false
      guard (1...65_535).contains(parts.port ?? (hasPort ? 0 : standardPort)) else {
        throw refuse("the port must be 1 to 65535")
      }
      let isBracketed = encodedHost.hasPrefix("[") && encodedHost.hasSuffix("]")
      let host = isBracketed ? String(encodedHost.dropFirst().dropLast()) : encodedHost
      if isBracketed {
        guard case .v6? = IPAddress(host) else { throw refuse("its host is no IPv6 address") }
      }
      let port = parts.port ?? standardPort
      let path = Self.withoutDots(parts.percentEncodedPath)
      let authority = port == standardPort ? encodedHost : "\(encodedHost):\(port)"
      let query = parts.percentEncodedQuery.map { "?" + $0 } ?? ""
      self.init(
        scheme, host: host, port: port, path: path,
        text: "\(scheme.rawValue)://\(authority)\(path)\(query)")
    }
  }

  /// Removes dot segments from a path (RFC 3986, section 5.2.4), as curl does. Encoded dots stay.
  private static func withoutDots(_ path: String) -> String {
    var kept: [Substring] = []
    let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    for segment in segments where segment != "." {
      if segment != ".." { kept.append(segment) } else { _ = kept.popLast() }
    }
    if let last = segments.last, last == "." || last == ".." { kept.append("") }
    return "/" + kept.joined(separator: "/")
  }

  /// Returns this URL with only the query parameters whose name `counts` accepts. Names are passed
  /// as they occur in the URL.
  func keepingParameters(where counts: (Substring) -> Bool) -> SourceURL {
    // In canonical form, the first `?` starts the query.
    guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "?")) else { return self }
    let all = text[text.index(after: mark)...].split(
      separator: "&", omittingEmptySubsequences: false)
    let kept = all.filter { counts($0.prefix { $0 != "=" }) }
    guard kept.count < all.count else { return self }
    let query = kept.isEmpty ? "" : "?" + kept.joined(separator: "&")
    var url = self
    url.text = text[..<mark] + query
    return url
  }

  /// Whether a text can be the name of a bucket.
  public static func isBucket(_ text: String) -> Bool { ObjectName.isBucket(text) }

  /// The last component of the path, empty if the path ends in `/`.
  public var fileName: Substring {
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    return path[(slash.map(path.utf8.index(after:)) ?? path.startIndex)...]
  }

  /// Applies SDWebImage's rule: `@2x.` or `@3x.` before the extension, with `@` possibly
  /// percent-encoded.
  private static func density(ofName path: String) -> Int {
    guard let dot = path.utf8.lastIndex(of: UInt8(ascii: ".")) else { return 1 }
    var stem = path.utf8[..<dot]
    guard let last = stem.popLast(), last | 0x20 == UInt8(ascii: "x"), let digit = stem.popLast(),
      digit == UInt8(ascii: "2") || digit == UInt8(ascii: "3"),
      stem.last == UInt8(ascii: "@") || stem.suffix(3).elementsEqual("%40".utf8)
    else { return 1 }
    return Int(digit - UInt8(ascii: "0"))
  }
}
