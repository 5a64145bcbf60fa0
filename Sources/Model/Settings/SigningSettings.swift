// SigningSettings: the keys `signing.…`, and what requests without a signature may do.

/// Which requests need a signature.
public enum SigningMode: String, CaseIterable, Hashable, Sendable {
  /// None. Signatures are ignored.
  case off
  /// Those with more than a plain size or a preset.
  case options
  /// All of `/image` and `/info`.
  case required
}

/// The settings of signed URLs, `signing.…`.
public struct SigningSettings: Hashable, Sendable {
  /// A key as configured: `id:secret`, where the secret may be a reference.
  public struct Key: Hashable, Sendable {
    /// The public name, of letters, digits, `-` and `_`.
    public let id: String
    /// The secret, or a reference to it.
    public let secret: SecretText

    /// The longest id, in characters.
    public static let longestID = 32
    /// Lengths of a secret in bytes. The lower one is the hash's length (RFC 7518, section 3.2).
    public static let secretLengths = 32...512
  }

  /// Maximum number of keys. A signature without an id is compared with those of all keys.
  public static let maximumKeys = 16

  /// Which requests need a signature.
  public var mode = SigningMode.off
  /// The keys: the first signs, all are accepted.
  public var keys: [Key] = []
}

/// A loading option that clients may have to be entitled to (`server.allow`).
public enum ClientOption: String, CaseIterable, Hashable, Sendable {
  /// Revalidation of fresh images: `refresh`; `no-cache`, `max-age`, `min-fresh` of requests.
  case refresh
  /// Reloading: `cache=bypass`.
  case bypass = "cache=bypass"
  /// New attempts after remembered failures.
  case retry
  /// Work that continues after its client has disconnected.
  case detach
  /// The tiers that store a result, and `no-store` in `Cache-Control`.
  case store
  /// A priority above normal: the parameter, and the `Priority` field.
  case priority = "priority=high"
}

extension Set<ClientOption> {
  /// All options.
  public static let all = Set(ClientOption.allCases)
  /// What every client may do to a server without signatures: all but overtake others.
  public static let open = all.subtracting([.priority])
}
