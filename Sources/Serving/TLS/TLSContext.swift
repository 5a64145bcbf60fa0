// TLSContext: what the TLS sessions of a server share.

import CGnuTLS
import CReceiving
import Platform
import Telemetry

/// What the sessions of a server share: certificates, algorithms, and the key of session tickets.
final class TLSContext: @unchecked Sendable {
  // Sound as Sendable: the priorities and the key do not change after `init`, and GnuTLS only reads
  // them for a session.

  /// TLS 1.3 and 1.2 (RFC 8996 forbids older versions), with GnuTLS's usual algorithms but for two kinds: finite-field
  /// Diffie-Hellman costs an event loop many milliseconds for a cheap message (CVE-2002-20001), and RSA key exchange has
  /// no forward secrecy.
  static let priorityText =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-GROUP-DH-ALL:-DHE-RSA:-RSA"

  let certificates: TLSCertificates
  let priorities: gnutls_priority_t
  /// The key with which tickets are encrypted. GnuTLS derives another key from it every few hours.
  private(set) var ticketKey = gnutls_datum_t()

  /// Complete handshakes with a new session.
  let fullHandshakes = Counter()
  /// Complete handshakes that resumed a session.
  let resumedHandshakes = Counter()
  /// Connections that ended before their handshake was complete.
  let failedHandshakes = Counter()

  /// Creates the shared part of sessions.
  init(_ certificates: TLSCertificates) throws(ServerError) {
    guard pictor_can_encrypt() == 1 else {
      throw .cannotStart(reason: "libmicrohttpd's send is not the program's own")
    }
    var made: gnutls_priority_t?
    let status = gnutls_priority_init(&made, Self.priorityText, nil)
    guard status == 0, let made else {
      throw .cannotStart(reason: "GnuTLS: \(TLSIdentity.text(status))")
    }
    self.certificates = certificates
    priorities = made
    guard gnutls_session_ticket_key_generate(&ticketKey) == 0 else {
      throw .cannotStart(reason: "GnuTLS: no key for session tickets")
    }
  }

  /// The current figures.
  var figures: TLSFigures {
    TLSFigures(
      certificateExpiry: certificates.current.expiry,
      handshakes: TLSFigures.Handshakes(
        full: fullHandshakes.value, resumed: resumedHandshakes.value,
        failed: failedHandshakes.value))
  }

  deinit {
    gnutls_priority_deinit(priorities)
    pictor_tls_free(ticketKey.data)
  }
}
