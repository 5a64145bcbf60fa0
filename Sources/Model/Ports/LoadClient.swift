// LoadClient: the client that a load works for, as its share of downloads is counted.

/// Whose share of downloads a load takes (`download.limit_per_client`).
public enum LoadClient: Hashable, Sendable {
  /// A client with a share: an IPv4 address, or the first address of an IPv6 /64.
  case network(IPAddress)
  /// Clients without a share of their own: trusted proxies, the machine itself, operators.
  case unlimited
  /// Work that no client waits for: prefetches and revalidations. It has no share: it runs in
  /// places that clients do not need.
  case background
}

/// The account of clients without a share. It charges nothing.
public struct UnlimitedAccount: ImagingAccount {
  /// Creates an account.
  public init() {}

  /// `unlimited`.
  public var client: LoadClient { .unlimited }

  /// Does nothing.
  public func charge(_ time: Duration) {}
}
