// ObjectStore: where a bucket's objects are, and who asks: a host rule's `s3`, `fleet.s3`.

/// The endpoint of a bucket, in S3's protocol; by default AWS, asked without credentials.
public struct ObjectStore: Hashable, Sendable {
  /// Where a request names the bucket.
  public enum Addressing: String, CaseIterable, Sendable {
    /// In the path: `https://endpoint/bucket/key`.
    case path
    /// In the host: `https://bucket.endpoint/key`.
    case virtual
  }

  /// The endpoint, `http` or `https`, without a path; `nil`: that of the region at AWS.
  public var endpoint: SourceURL?
  /// The region that signatures name.
  public var region = "us-east-1"
  /// Where requests name the bucket; `nil`: in the host at AWS, unless the bucket has a dot, which
  /// certificates do not cover; else in the path.
  public var addressing: Addressing?
  /// The access key, as written.
  public var accessKey: SecretText?
  /// The secret access key, as written: a reference.
  public var secretKey: SecretText?
  /// The token of temporary credentials, as written: a reference.
  public var sessionToken: SecretText?

  /// Parses an endpoint: `http` or `https` with a host and optionally a port, in lower-case ASCII.
  /// Returns `nil` for any other text.
  public static func endpoint(_ text: String) -> SourceURL? {
    guard let url = try? SourceURL(parsing: text), url.scheme.isHTTP, url.path == "/",
      !text.utf8.contains(where: "?#".utf8.contains),
      url.host.isPlain(with: "-.:_"), url.host == url.host.lowercased()
    else { return nil }
    return url
  }

  /// Whether a text is a region: up to 64 letters, digits, `-` and `_`.
  public static func isRegion(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && text.isPlain()
  }

  /// Returns the URL at which an object is requested.
  ///
  /// - Parameter object: an `s3` URL.
  /// - Throws: `ImageError.internal` if the endpoint and the object make no URL.
  public func url(of object: SourceURL) throws(ImageError) -> SourceURL {
    let base = endpoint?.text ?? "https://s3.\(region).amazonaws.com/"
    let isInHost =
      addressing.map { $0 == .virtual } ?? (endpoint == nil && !object.host.contains("."))
    let text: String
    if isInHost {
      let scheme = base.hasPrefix("https://") ? "https://" : "http://"
      text = scheme + object.host + "." + base.dropFirst(scheme.count).dropLast() + object.path
    } else {
      text = base + object.host + object.path
    }
    let url = try SourceURL(parsing: text)
    // The signature covers each byte of the path, so it must be sent as it is.
    guard url.text == text else { throw .internal(detail: "\(text) became \(url.text)") }
    return url
  }
}

extension SourceURL {
  /// `host`, and the port unless it is the scheme's usual one: the field `Host` of a request.
  public var authority: String {
    String(text.dropFirst(scheme.rawValue.count + 3).prefix { $0 != "/" && $0 != "?" })
  }
}

extension SourceURL.Scheme {
  /// Whether URLs of the scheme are requested as they are.
  public var isHTTP: Bool { self == .http || self == .https }
}

extension HostRule {
  /// Whether the rule's host can match the source. A rule with `s3` is for its bucket alone, so its
  /// credentials never reach a web server of that name, and rules for hosts skip buckets.
  public func covers(_ url: SourceURL) -> Bool {
    (store != nil) == (url.scheme == .s3) && host.matches(url.host)
  }
}
