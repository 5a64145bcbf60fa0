// TLSSession: the TLS of one connection, in place of its socket calls.

import CGnuTLS
import CReceiving
import Platform

/// A server's TLS session on a non-blocking socket. Belongs to the thread of the connection's event loop.
///
/// Its results are those of recv(2) and send(2), since libmicrohttpd takes it for the socket. A count below the length
/// of a buffer tells libmicrohttpd that no more bytes are there, or fit: both functions repeat until that is true.
final class TLSSession {
  /// `nil` without memory; the session is broken then.
  private let session: gnutls_session_t?
  private let descriptor: CInt
  /// GnuTLS keeps a pointer to the credentials.
  private let identity: TLSIdentity
  private let context: TLSContext
  private var isEstablished = false
  private var isBroken = false
  /// The length of the record that GnuTLS has encrypted and not sent; 0 for none.
  private var unsent = 0
  private var isEnded = false
  /// Whether the client has ended its side of the socket. GnuTLS is not told: it would send nothing any more to a client
  /// that ends without close_notify, and the requests before the end have answers.
  private var hasPeerEnded = false
  /// Whether the last pull found no bytes. GnuTLS also returns GNUTLS_E_AGAIN after a message without content, such as
  /// KeyUpdate, behind which bytes may wait that no event tells of.
  private var isDrained = false

  /// The largest record (RFC 8446, section 5.1).
  private static let largestRecord = 16 << 10
  /// Messages without content, or parts of records, that a client may send at once.
  private static let maximumMessages = 256
  /// The longest message of a client's handshake, in bytes. GnuTLS keeps it until it is complete.
  private static let longestHandshake = 16 << 10
  private static let protocolName = "http/1.1"

  /// Begins a session. If GnuTLS cannot, for lack of memory, the session is broken from the start: the connection has no
  /// bytes and takes none, since without TLS it must not be served.
  init(_ context: TLSContext, descriptor: CInt) {
    self.descriptor = descriptor
    self.context = context
    identity = context.certificates.current
    var made: gnutls_session_t?
    isBroken = pictor_tls_init(&made) != 0
    session = made
    guard !isBroken, let made, prepare(made) else {
      isBroken = true
      return
    }
    gnutls_handshake_set_max_packet_length(made, Self.longestHandshake)
    pictor_tls_use_socket(made, descriptor)
    // The session ends with `self`, so the pointer is valid in each call.
    gnutls_transport_set_ptr2(
      made, Unmanaged.passUnretained(self).toOpaque(),
      UnsafeMutableRawPointer(bitPattern: Int(descriptor)))
    gnutls_transport_set_pull_function(made) { session, bytes, size in
      guard let session, let bytes else { return -1 }
      return Unmanaged<TLSSession>.fromOpaque(session)._withUnsafeGuaranteedRef {
        $0.pull(bytes, size)
      }
    }
  }

  /// Gives the session what it shares with others. Returns whether it is complete.
  private func prepare(_ session: gnutls_session_t) -> Bool {
    gnutls_priority_set(session, context.priorities) == 0
      && gnutls_credentials_set(
        session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(identity.credentials)) == 0
      && context.enableTickets(for: session)
      && pictor_tls_offer(session, Self.protocolName, UInt32(Self.protocolName.utf8.count)) == 0
  }

  deinit {
    if !isEstablished { context.failedHandshakes.add() }
    gnutls_deinit(session)
  }

  /// Continues the handshake, then fills `buffer` with decrypted bytes. Returns their number, 0 at the end, or -1 with
  /// `errno`.
  func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    if isBroken { return pictor_connection_reset() }
    guard isEstablished || shakeHands() else {
      return isBroken ? pictor_connection_reset() : pictor_received_nothing()
    }
    var count = 0
    var messages = 0
    while count < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
      let status = gnutls_record_recv(session, rest.baseAddress, rest.count)
      switch status {
      case 1...: count += status
      case Int(GNUTLS_E_AGAIN) where isDrained:
        return count > 0 ? count : pictor_received_nothing()
      case Int(GNUTLS_E_AGAIN) where !hasPeerEnded, Int(GNUTLS_E_INTERRUPTED),
        Int(GNUTLS_E_WARNING_ALERT_RECEIVED):
        messages += 1
        if messages > Self.maximumMessages { return fail() }
      case 0, Int(GNUTLS_E_AGAIN):
        guard count > 0 else { return 0 }
        // Makes the socket readable once more, so that libmicrohttpd sees the end behind these bytes.
        pictor_end_receiving(descriptor)
        return count
      default:
        // Damaged records and attempts to negotiate again. The client is told why (RFC 8446, section 6.2).
        if status != Int(GNUTLS_E_FATAL_ALERT_RECEIVED), unsent == 0 {
          _ = gnutls_alert_send_appropriate(session, CInt(clamping: status))
        }
        if count == 0 { return fail() }
        _ = fail()
        pictor_end_receiving(descriptor)
        return count
      }
    }
    return count
  }

  /// Encrypts and sends bytes. Returns the number of those that were sent, or -1 with `errno`. After a count below the
  /// length the caller repeats the rest, unchanged.
  func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard isEstablished, !isBroken else { return pictor_connection_reset() }
    var count = 0
    while count < bytes.count {
      let size = min(bytes.count - count, Self.largestRecord)
      // A caller that repeats less than it gave would be told of bytes beyond its own.
      guard unsent <= size else { return fail() }
      // GnuTLS has a copy of a record that did not fit.
      let status =
        unsent > 0
        ? gnutls_record_send(session, nil, 0)
        : gnutls_record_send(session, bytes.baseAddress?.advanced(by: count), size)
      switch status {
      case 1...:
        unsent = 0
        count += status
      case Int(GNUTLS_E_AGAIN), Int(GNUTLS_E_INTERRUPTED):
        if unsent == 0 { unsent = size }
        return count > 0 ? count : pictor_received_nothing()
      default:
        isBroken = true
        return pictor_connection_reset()
      }
    }
    return count
  }

  /// Tells the client that no more bytes follow, before the socket is shut down for writing.
  func end() {
    guard isEstablished, !isBroken, !isEnded, unsent == 0 else { return }
    isEnded = true
    // Without waiting for the client's own end.
    _ = gnutls_bye(session, GNUTLS_SHUT_WR)
  }

  /// Whether the client's side of the handshake is complete.
  private func shakeHands() -> Bool {
    for _ in 0..<Self.maximumMessages {
      let status = gnutls_handshake(session)
      switch status {
      case GNUTLS_E_SUCCESS:
        isEstablished = true
        let isResumed = gnutls_session_is_resumed(session) != 0
        (isResumed ? context.resumedHandshakes : context.fullHandshakes).add()
        return true
      case GNUTLS_E_AGAIN:
        // The server's messages fit into an empty socket buffer. A client that keeps it full is not served.
        if gnutls_record_get_direction(session) == 1 || hasPeerEnded { isBroken = true }
        if isDrained || isBroken { return false }
      case GNUTLS_E_INTERRUPTED, GNUTLS_E_WARNING_ALERT_RECEIVED: continue
      default:
        _ = gnutls_alert_send_appropriate(session, status)
        isBroken = true
        return false
      }
    }
    isBroken = true
    return false
  }

  /// recv(2) for GnuTLS, by the call that the program does not replace. The end looks like no bytes.
  private func pull(_ bytes: UnsafeMutableRawPointer, _ size: Int) -> Int {
    let count = recvfrom(descriptor, bytes, size, 0, nil, nil)
    isDrained = count < 0
    guard count == 0, size > 0 else { return count }
    hasPeerEnded = true
    return pictor_received_nothing()
  }

  private func fail() -> Int {
    isBroken = true
    return pictor_connection_reset()
  }
}
