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

  /// The proxy for the hosts.
  public enum Proxy: Hashable, Sendable {
    /// The configuration's proxy, if any.
    case standard
    /// No proxy.
    case direct
    /// A proxy with this URL, `http://host:port`, optionally with user and password.
    case url(String)
  }

  /// Header fields, credentials and the proxy as the configuration has them. Secrets are references,
  /// so a rule with these alone can be printed.
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

    /// Creates an empty set.
    public init() {}
  }

  /// The hosts of the rule.
  public var host: HostPattern
  /// Which query parameters a cache key contains.
  public var parameters: Parameters
  /// Tags under which operators can purge all sources of these hosts.
  public var tags: [String]
  /// Freshness settings for these hosts.
  public var freshness = FreshnessOverrides()
  /// Names of default fields that are not sent.
  public var droppedHeaders: [String] = []
  /// Names of the client's header fields that are forwarded to the origin, whose response may depend
  /// on them.
  public var forwardedHeaders: [String]
  /// Whether cookies are kept in memory and sent back, shared by all clients. With `Vary: Cookie`,
  /// such a cookie can select another response the next time.
  public var keepsCookies = false
  /// Whether certificates are not verified.
  public var allowsInvalidCertificates = false
  /// What the configuration says about fields, credentials and the proxy.
  public var written = Written()

  /// Fields that are added to every request; they replace fields of the same name. From `written`,
  /// when the server starts.
  public var headers: [HeaderField] = []
  /// Fields that are added to every request and have secret values, such as credentials. From
  /// `written`, when the server starts.
  public var secretHeaders: [HeaderField] = []
  /// The proxy for the hosts. From `written`, when the server starts.
  public var proxy = Proxy.standard

  /// Creates a rule; by default it changes nothing.
  public init(
    host: HostPattern, parameters: Parameters = .all, tags: [String] = [],
    forwardedHeaders: [String] = []
  ) {
    self.host = host
    self.parameters = parameters
    self.tags = tags
    self.forwardedHeaders = forwardedHeaders
  }
}
