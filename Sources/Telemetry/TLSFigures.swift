// TLSFigures: the certificate of a server and its handshakes.

/// Figures of a server with TLS.
public struct TLSFigures: Codable, Hashable, Sendable {
  /// Handshakes by what became of them.
  public struct Handshakes: Codable, Hashable, Sendable {
    /// Complete handshakes with a new session.
    public var full: Int
    /// Complete handshakes that resumed a session.
    public var resumed: Int
    /// Connections that ended before their handshake was complete.
    public var failed: Int

    /// Creates counts.
    public init(full: Int, resumed: Int, failed: Int) {
      self.full = full
      self.resumed = resumed
      self.failed = failed
    }

    /// The counts by name.
    var byResult: [String: Int] { ["full": full, "resumed": resumed, "failed": failed] }
  }

  /// The end of the certificate's validity, in seconds since 1970.
  public var certificateExpiry: Int
  /// The handshakes since the start.
  public var handshakes: Handshakes

  /// Creates the figures.
  public init(certificateExpiry: Int, handshakes: Handshakes) {
    self.certificateExpiry = certificateExpiry
    self.handshakes = handshakes
  }

  enum CodingKeys: String, CodingKey {
    case handshakes
    case certificateExpiry = "certificate_expiry"
  }
}
