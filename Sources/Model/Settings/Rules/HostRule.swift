// HostRule: the settings for a group of hosts, one rule of `hosts`.

/// The operator's settings for a group of hosts. The first rule that matches a host applies.
///
/// Three parts read a rule, each its own members:
///
/// - `CacheKeyFilter`: `parameters`, `tags`, `forwardedHeaders`;
/// - freshness rules: `freshness`, `keepsCookies`;
/// - the downloader: header fields, cookies, certificates and the proxy.
public struct HostRule: Hashable, Sendable {
  /// Which query parameters a cache key contains.
  public enum Parameters: Hashable, Sendable {
    /// Every parameter.
    case all
    /// Only the matching parameters.
    case keep([ParameterPattern])
    /// All but the matching parameters.
    case drop([ParameterPattern])
  }

  /// A scheme and a port to which a rule's credentials are sent.
  public struct CredentialOrigin: Hashable, Sendable, CustomStringConvertible {
    /// The scheme, `http` or `https`.
    public let scheme: SourceURL.Scheme
    /// The port.
    public let port: Int

    /// TLS at its usual port.
    public static let https = CredentialOrigin(scheme: .https, port: 443)

    private init(scheme: SourceURL.Scheme, port: Int) {
      self.scheme = scheme
      self.port = port
    }

    /// Parses `https`, `http`, `https:8443` or `http:8080`. Returns `nil` for any other text.
    public init?(_ text: String) {
      let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard let scheme = parts.first.flatMap({ SourceURL.Scheme(rawValue: String($0)) }),
        scheme.isHTTP
      else { return nil }
      guard let port = parts.count == 1 ? scheme == .https ? 443 : 80 : PortRange.port(parts[1])
      else { return nil }
      self.init(scheme: scheme, port: port)
    }

    /// The scheme, and the port unless it is the scheme's usual one.
    public var description: String {
      let isUsual = port == (scheme == .https ? 443 : 80)
      return isUsual ? scheme.rawValue : "\(scheme.rawValue):\(port)"
    }
  }

  /// The proxy for the hosts.
  public enum Proxy: Hashable, Sendable {
    /// The configuration's proxy, if any.
    case standard
    /// No proxy.
    case direct
    /// A proxy with this URL, `http://host:port`, optionally with user and password.
    case url(String)
  }

  /// Header fields, credentials and the proxy as the configuration has them. Secrets are
  /// references, so a rule with these alone can be printed.
  public struct Written: Hashable, Sendable {
    /// The proxy of a rule.
    public enum Proxy: Hashable, Sendable {
      /// No proxy.
      case direct
      /// A proxy with this URL. User and password are allowed only in a reference.
      case url(SecretText)

      /// The setting as written in a configuration.
      public var text: String {
        switch self {
        case .direct: "direct"
        case .url(let url): url.text
        }
      }
    }

    /// Request fields sent to the hosts, by name.
    public var headers: [String: SecretText] = [:]
    /// The user for Basic authentication.
    public var user: String?
    /// The password for Basic authentication.
    public var password: SecretText?
    /// The token for bearer authentication.
    public var token: SecretText?
    /// The proxy for these hosts; `nil`: `download.proxy`.
    public var proxy: Proxy?
  }

  /// The hosts of the rule.
  public var host: HostPattern
  /// Which query parameters a cache key contains.
  public var parameters = Parameters.all
  /// Tags under which operators can purge all sources of these hosts.
  public var tags: [String] = []
  /// Freshness settings for these hosts.
  public var freshness = FreshnessOverrides()
  /// Names of default fields that are not sent.
  public var droppedHeaders: [String] = []
  /// Names of the client's header fields that are forwarded to the origin, whose response may
  /// depend on them.
  public var forwardedHeaders: [String] = []
  /// Whether cookies are kept in memory and sent back, shared by all clients. With `Vary: Cookie`,
  /// such a cookie can select another response the next time.
  public var keepsCookies = false
  /// Where credentials are sent (`user`, `token`, and `headers` by reference). Any other scheme or
  /// port of the hosts may belong to another operator, or is read on the way.
  public var credentialOrigins = [CredentialOrigin.https]
  /// Whether certificates are not verified.
  public var allowsInvalidCertificates = false
  /// Where the bucket is that the rule is for; `nil` for a rule for hosts.
  public var store: ObjectStore?
  /// The configured fields, credentials and proxy, before their secrets are read.
  public var written = Written()

  /// Fields that are added to every request; they replace fields of the same name. From `written`,
  /// when the server starts.
  public var headers: [HeaderField] = []
  /// Fields that are added to every request and have secret values, such as credentials. From
  /// `written`, when the server starts.
  public var secretHeaders: [HeaderField] = []
  /// The keys of `store`; `nil`: its requests are not signed. From `store`, when the server starts.
  public var storeCredentials: AWSCredentials?
  /// The proxy for the hosts. From `written`, when the server starts.
  public var proxy = Proxy.standard

  /// Returns whether the rule's credentials are sent to this scheme and port of its hosts.
  public func sendsCredentials(to scheme: SourceURL.Scheme, port: Int) -> Bool {
    credentialOrigins.contains { $0.scheme == scheme && $0.port == port }
  }
}
