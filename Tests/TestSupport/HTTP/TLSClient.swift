// TLSClient: the client's side of TLS on a blocking socket, for tests.

import CGnuTLS
import Glibc

/// A TLS session of a client. It trusts any certificate. Use it from one thread at a time.
public final class TLSClient {
  private let session: gnutls_session_t
  private let credentials: gnutls_certificate_credentials_t

  /// Performs the handshake on a connected socket.
  ///
  /// - Parameter earlier: the data of an earlier session, which is resumed if the server knows it.
  public init(
    on socket: CInt, priorities: String, protocols offered: String = "",
    resuming earlier: [UInt8] = []
  ) throws(HTTPClientError) {
    var session: gnutls_session_t?
    var credentials: gnutls_certificate_credentials_t?
    guard gnutls_init(&session, UInt32(GNUTLS_CLIENT) | UInt32(GNUTLS_NO_SIGNAL)) == 0,
      gnutls_certificate_allocate_credentials(&credentials) == 0, let session, let credentials
    else { throw .malformed("no session") }
    self.session = session
    self.credentials = credentials
    gnutls_priority_set_direct(session, priorities, nil)
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials))
    if !offered.isEmpty { _ = pictor_tls_offer(session, offered, UInt32(offered.utf8.count)) }
    if !earlier.isEmpty { gnutls_session_set_data(session, earlier, earlier.count) }
    pictor_tls_use_socket(session, socket)
    var status: CInt
    repeat { status = gnutls_handshake(session) } while status == GNUTLS_E_INTERRUPTED
    if status == GNUTLS_E_AGAIN { throw .timedOut }
    guard status == 0 else { throw .closed }
  }

  deinit {
    gnutls_deinit(session)
    gnutls_certificate_free_credentials(credentials)
  }

  /// Whether the handshake resumed an earlier session.
  var isResumed: Bool { gnutls_session_is_resumed(session) != 0 }

  /// What a later session needs to resume this one. Over TLS 1.3 it is there after the first answer.
  var sessionData: [UInt8] {
    var data = gnutls_datum_t()
    guard gnutls_session_get_data2(session, &data) == 0 else { return [] }
    defer { pictor_tls_free(data.data) }
    return Array(UnsafeBufferPointer(start: data.data, count: Int(data.size)))
  }

  /// The name in the server's certificate, such as `CN=one`.
  var serverName: String {
    var count: UInt32 = 0
    var certificate: gnutls_x509_crt_t?
    guard let peers = gnutls_certificate_get_peers(session, &count), count > 0,
      gnutls_x509_crt_init(&certificate) == 0
    else { return "" }
    defer { gnutls_x509_crt_deinit(certificate) }
    var name = [CChar](repeating: 0, count: 256)
    var length = name.count
    guard gnutls_x509_crt_import(certificate, peers, GNUTLS_X509_FMT_DER) == 0,
      gnutls_x509_crt_get_dn(certificate, &name, &length) == 0
    else { return "" }
    return String(decoding: name.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The last alert of the server (RFC 8446, section 6.2); `nil` before any.
  public private(set) var alert: Int?

  /// Replaces the sending keys (RFC 8446, section 4.6.3).
  public func updateKey() { gnutls_session_key_update(session, 0) }

  /// send(2) in one record or several.
  public func send(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    result(gnutls_record_send(session, bytes, count))
  }

  /// recv(2).
  public func receive(_ bytes: inout [UInt8]) -> Int {
    var status: Int
    repeat {
      errno = 0
      status = gnutls_record_recv(session, &bytes, bytes.count)
      // After a session ticket, without an error of the socket.
    } while status == Int(GNUTLS_E_AGAIN) && errno == 0
    if status == Int(GNUTLS_E_FATAL_ALERT_RECEIVED) {
      alert = Int(gnutls_alert_get(session).rawValue)
    }
    return status == Int(GNUTLS_E_PREMATURE_TERMINATION) ? 0 : result(status)
  }

  private func result(_ status: Int) -> Int {
    guard status < 0 else { return status }
    errno =
      switch CInt(status) {
      case GNUTLS_E_AGAIN: EAGAIN
      case GNUTLS_E_INTERRUPTED: EINTR
      default: ECONNRESET
      }
    return -1
  }
}
