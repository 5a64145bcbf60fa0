// CGnuTLS: GnuTLS, with the casts that Swift cannot write. One call a function, no policy.
#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/socket.h>

/// A pull function that calls recvfrom(2), which the program does not replace.
static inline ssize_t pictor_tls_pull(gnutls_transport_ptr_t socket, void *bytes, size_t size) {
  return recvfrom((int)(long)socket, bytes, size, 0, NULL, NULL);
}

/// A push function that calls sendto(2), which the program does not replace.
static inline ssize_t pictor_tls_push(gnutls_transport_ptr_t socket, const void *bytes,
                                      size_t size) {
  return sendto((int)(long)socket, bytes, size, MSG_NOSIGNAL, NULL, 0);
}

/// Makes a session use a socket by the two functions above.
static inline void pictor_tls_use_socket(gnutls_session_t session, int socket) {
  gnutls_transport_set_ptr(session, (gnutls_transport_ptr_t)(long)socket);
  gnutls_transport_set_pull_function(session, pictor_tls_pull);
  gnutls_transport_set_push_function(session, pictor_tls_push);
}

/// gnutls_alpn_set_protocols with one protocol. A client that names only others is refused
/// (RFC 7301, section 3.2).
static inline int pictor_tls_offer(gnutls_session_t session, const char *protocol, unsigned length) {
  gnutls_datum_t name = {(unsigned char *)protocol, length};
  return gnutls_alpn_set_protocols(session, &name, 1, GNUTLS_ALPN_MANDATORY);
}

/// gnutls_init of a server's session.
static inline int pictor_tls_init(gnutls_session_t *session) {
  return gnutls_init(session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
}

/// gnutls_init of a client's session.
static inline int pictor_tls_init_client(gnutls_session_t *session) {
  return gnutls_init(session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
}

/// gnutls_free, which is a variable.
static inline void pictor_tls_free(void *bytes) { gnutls_free(bytes); }
