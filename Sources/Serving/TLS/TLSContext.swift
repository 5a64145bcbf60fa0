// TLSContext: what the TLS sessions of a server share.

import CGnuTLS
import CMicrohttpd
import CReceiving
import Platform
import Telemetry

/// What the sessions of a server share: certificates, algorithms, and the key of session tickets.
final class TLSContext: @unchecked Sendable {
  // Sound as Sendable: the priorities do not change after `init`, and GnuTLS only reads them for a
  // session.

  /// TLS 1.3 and 1.2 (RFC 8996 forbids older versions), with GnuTLS's usual algorithms but for two kinds: finite-field
  /// Diffie-Hellman costs an event loop many milliseconds for a cheap message (CVE-2002-20001), and RSA key exchange has
  /// no forward secrecy.
  static let priorityText =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-GROUP-DH-ALL:-DHE-RSA:-RSA"

  let certificates: TLSCertificates
  let priorities: gnutls_priority_t
  private let ticketKey: Lock<TicketKey>

  /// Complete handshakes with a new session.
  let fullHandshakes = Counter()
  /// Complete handshakes that resumed a session.
  let resumedHandshakes = Counter()
  /// Connections that ended before their handshake was complete.
  let failedHandshakes = Counter()

  /// Creates the shared part of sessions.
  ///
  /// - Parameter key: the first key of tickets, by default a random one.
  init(_ certificates: TLSCertificates, ticketKey key: TicketKey? = nil) throws(ServerError) {
    guard pictor_can_encrypt() == 1 else {
      throw .cannotStart(reason: "libmicrohttpd's send is not the program's own")
    }
    let version = MHD_get_version().map { String(cString: $0) } ?? ""
    if let reason = Self.reasonAgainst(libmicrohttpd: version) {
      throw .cannotStart(reason: reason)
    }
    var made: gnutls_priority_t?
    let status = gnutls_priority_init(&made, Self.priorityText, nil)
    guard status == 0, let made else {
      throw .cannotStart(reason: "GnuTLS: \(TLSIdentity.text(status))")
    }
    self.certificates = certificates
    priorities = made
    guard let key = key ?? TicketKey(for: certificates.current, at: .now) else {
      gnutls_priority_deinit(made)
      throw .cannotStart(reason: "GnuTLS: no key for session tickets")
    }
    ticketKey = Lock(key)
  }

  /// Why TLS is not safe with a version of libmicrohttpd; `nil` for the one with which Pictor was built. Another one may
  /// send by functions that the program does not replace, and so without encryption.
  static func reasonAgainst(libmicrohttpd version: String) -> String? {
    guard version != testedLibmicrohttpd else { return nil }
    return
      "TLS needs libmicrohttpd \(testedLibmicrohttpd), with which this program was built and tested, "
      + "and not '\(version)': build it again, or let a proxy end TLS"
  }

  /// The version of libmicrohttpd with which the program was built: two hexadecimal digits a part, which are read as
  /// decimal ones (microhttpd.h).
  static let testedLibmicrohttpd = [24, 16, 8]
    .map { String(UInt32(MHD_VERSION) >> $0 & 0xff, radix: 16) }.joined(separator: ".")

  /// Lets a session give out and accept tickets. Returns whether it can.
  func enableTickets(for session: gnutls_session_t) -> Bool {
    ticketKey.withLock { key in
      // Not the session's, which may be the one before: the key would change to and fro.
      key.renew(for: certificates.current, at: .now)
      // GnuTLS copies the key.
      return key.withDatum { gnutls_session_ticket_enable_server(session, &$0) == 0 }
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

  deinit { gnutls_priority_deinit(priorities) }
}
