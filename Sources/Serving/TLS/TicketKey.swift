// TicketKey: the key with which session tickets are encrypted.

import CGnuTLS

/// The key of session tickets. It is replaced with the certificate and after a day, and never stored. A thief of the key
/// can read sessions with its tickets: over TLS 1.2 all of them (RFC 5077), over TLS 1.3 early data, which is not
/// accepted (RFC 8446, section 8.1).
///
/// A ticket of an earlier key costs its client a full handshake.
struct TicketKey {
  /// How long a key is used.
  static let lifetime = Duration.seconds(24 * 60 * 60)

  private(set) var bytes: [UInt8]
  private var identity: TLSIdentity
  private var madeAt: ContinuousClock.Instant

  /// Makes a random key; `nil` if GnuTLS has none.
  init?(for identity: TLSIdentity, at now: ContinuousClock.Instant) {
    guard let bytes = Self.random() else { return nil }
    self.init(bytes, for: identity, at: now)
  }

  /// Takes a key. Sessions cannot begin with one whose length GnuTLS does not expect.
  init(_ bytes: [UInt8], for identity: TLSIdentity, at now: ContinuousClock.Instant) {
    self.bytes = bytes
    self.identity = identity
    madeAt = now
  }

  /// Makes another key if the certificate is another, or the key is old. If GnuTLS has none, the old one stays.
  mutating func renew(for identity: TLSIdentity, at now: ContinuousClock.Instant) {
    guard identity !== self.identity || madeAt.duration(to: now) >= Self.lifetime,
      let other = TicketKey(for: identity, at: now)
    else { return }
    self = other
  }

  /// Calls `body` with the key as GnuTLS takes it.
  mutating func withDatum<Result>(_ body: (inout gnutls_datum_t) -> Result) -> Result {
    bytes.withUnsafeMutableBufferPointer { buffer in
      var datum = gnutls_datum_t(data: buffer.baseAddress, size: UInt32(buffer.count))
      return body(&datum)
    }
  }

  private static func random() -> [UInt8]? {
    var made = gnutls_datum_t()
    guard gnutls_session_ticket_key_generate(&made) == 0 else { return nil }
    defer { pictor_tls_free(made.data) }
    return Array(UnsafeBufferPointer(start: made.data, count: Int(made.size)))
  }
}
