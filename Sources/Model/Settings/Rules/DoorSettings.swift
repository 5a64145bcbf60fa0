// DoorSettings: the key `doors`: which other image servers' addresses are served, and how.

/// The peers whose addresses can be served.
public enum Peer: String, CaseIterable, Hashable, Sendable {
  case nextjs, imgproxy, thumbor, imagor, cloudflare, weserv, ipx, imgix, imaginary
}

/// A door as configured: an object in `doors`, by the name of its peer.
public struct DoorSettings: Hashable, Sendable {
  /// What precedes the peer's own paths, such as `/img`; empty: nothing.
  public var prefix = ""
  /// The host that requests name, such as `img.example.com`; empty: any.
  public var host = ""
  /// imgproxy, imaginary: what requests prove themselves with, as references or literals.
  public var secrets: [SecretText] = []
  /// The keys of signatures as references or literals, in the peer's notation.
  public var keys: [SecretText] = []
  /// imgproxy: the salts, one a key.
  public var salts: [SecretText] = []
  /// What the peer itself takes; without keys and salts.
  public var options = DoorOptions()

  /// A door as its peer is without a configuration.
  public init() {}
}

/// What a door knows of its peer's configuration. Each peer uses its own part.
public struct DoorOptions: Hashable, Sendable {
  /// Sources by their beginnings, and what replaces these.
  public struct Replacement: Hashable, Sendable {
    /// The beginning, in which `*` stands for a part without `/?#@:\`.
    public let pattern: String
    /// What replaces it.
    public let text: String

    /// Creates a replacement.
    public init(pattern: String, text: String) {
      self.pattern = pattern
      self.text = text
    }
  }

  /// The keys of signatures; empty: addresses are not signed.
  public var keys: [[UInt8]] = []
  /// imgproxy: the salts, one a key.
  public var salts: [[UInt8]] = []
  /// The secrets in `Authorization` (imgproxy) or the API keys (imaginary), of which a request has
  /// one; empty: requests need none.
  public var secrets: [[UInt8]] = []
  /// Bytes of a signature; 0: all that the digest has.
  public var signatureBytes = 0
  /// imagor: the digest of signatures: `sha1`, `sha256` or `sha512`.
  public var digest = "sha1"
  /// Whether unsigned addresses are served beside signed ones, as thumbor's `/unsafe/`.
  public var allowsUnsigned = false
  /// What sources without a scheme are appended to: `https://example.com` or `local://`; empty:
  /// they are hosts, where the peer takes them for hosts.
  public var baseURL = ""
  /// Replacements of sources; the first that fits counts.
  public var replacements: [Replacement] = []
  /// Beginnings of the sources that may be loaded, in which `*` is as in `Replacement`;
  /// empty: all that `/image` loads.
  public var allowedSources: [String] = []
  /// Named options, in the peer's syntax.
  public var presets: [String: String] = [:]
  /// Whether clients may use presets only.
  public var presetsOnly = false
  /// imgproxy: what separates arguments.
  public var separator: Character = ":"
  /// imgproxy: whether addresses may set limits.
  public var allowsLimits = false
  /// Next.js: allowed widths; empty: Next.js's own.
  public var widths: [Int] = []
  /// Next.js: allowed qualities; empty: 75.
  public var qualities: [Int] = []
  /// Next.js: whether vector images are served.
  public var allowsVectors = false

  /// All as the peer has it.
  public init() {}
}
