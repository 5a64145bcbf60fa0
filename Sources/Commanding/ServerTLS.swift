// ServerTLS: the commands' side of TLS to the running server.

import CGnuTLS
import Glibc
import Platform

/// A TLS session of a client on a connected, non-blocking socket. Belongs to one thread, and ends before the socket.
///
/// It accepts any certificate. Commands speak to the address in their own configuration, and the certificate names the
/// public host instead.
final class ServerTLS {
  /// How far the handshake is.
  enum Handshake {
    /// Complete.
    case complete
    /// It continues when the socket is ready for this.
    case waits(Poll.Events)
    /// GnuTLS's reason.
    case failed(String)
  }

  private let session: gnutls_session_t
  private let credentials: gnutls_certificate_credentials_t

  /// Begins a session; `nil` without memory.
  init?(on socket: CInt) {
    var made: gnutls_session_t?
    var empty: gnutls_certificate_credentials_t?
    guard pictor_tls_init_client(&made) == 0, let made else { return nil }
    guard gnutls_certificate_allocate_credentials(&empty) == 0, let empty else {
      gnutls_deinit(made)
      return nil
    }
    session = made
    credentials = empty
    guard gnutls_set_default_priority(made) == 0,
      gnutls_credentials_set(made, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(empty)) == 0
    else { return nil }
    pictor_tls_use_socket(made, socket)
  }

  deinit {
    gnutls_deinit(session)
    gnutls_certificate_free_credentials(credentials)
  }

  /// Continues the handshake.
  func shakeHands() -> Handshake {
    while true {
      let status = gnutls_handshake(session)
      switch status {
      case GNUTLS_E_SUCCESS: return .complete
      case GNUTLS_E_AGAIN:
        return .waits(gnutls_record_get_direction(session) == 1 ? .writable : .readable)
      case GNUTLS_E_INTERRUPTED: continue
      case _ where gnutls_error_is_fatal(status) == 0: continue
      default:
        return .failed(gnutls_strerror(status).map { String(cString: $0) } ?? "error \(status)")
      }
    }
  }

  /// Whether decrypted bytes wait, of which the socket tells nothing.
  var hasMore: Bool { gnutls_record_check_pending(session) > 0 }

  /// recv(2).
  func receive(_ buffer: inout [UInt8]) -> Int {
    let status = gnutls_record_recv(session, &buffer, buffer.count)
    return status == Int(GNUTLS_E_PREMATURE_TERMINATION) ? 0 : result(status)
  }

  /// send(2). After EAGAIN the caller repeats the same bytes.
  func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    result(gnutls_record_send(session, bytes.baseAddress, bytes.count))
  }

  private func result(_ status: Int) -> Int {
    guard status < 0 else { return status }
    errno = gnutls_error_is_fatal(CInt(status)) == 0 ? EAGAIN : ECONNRESET
    return -1
  }
}
