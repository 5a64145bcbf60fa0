// CMicrohttpd: the variadic functions and unions of microhttpd.h, which Swift cannot use. One call
// a function, no policy. Also includes epoll and eventfd, which Swift's Glibc lacks.
#pragma once

#include <microhttpd.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/// An MHD_OPTION_UNESCAPE_CALLBACK that keeps the text and returns its length. Pictor parses the
/// raw target itself, so decoding would be wasted.
static inline size_t pictor_mhd_keep_escapes(void *context, struct MHD_Connection *connection,
                                             char *text) {
  (void)context, (void)connection;
  return strlen(text);
}

/// MHD_start_daemon with every option Pictor sets. `context` is passed to each callback except the
/// connection callback.
static inline struct MHD_Daemon *pictor_mhd_start_daemon(
    unsigned int flags, void *context, MHD_AccessHandlerCallback handler,
    void *(*target)(void *context, const char *uri, struct MHD_Connection *connection),
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection,
    void *connection_context, unsigned int connection_limit, unsigned int idle_seconds, size_t connection_memory,
    int strictness) {
  return MHD_start_daemon(
      flags, 0, NULL, NULL, handler, context,  //
      MHD_OPTION_URI_LOG_CALLBACK, target, context,  //
      MHD_OPTION_UNESCAPE_CALLBACK, pictor_mhd_keep_escapes, NULL,  //
      MHD_OPTION_NOTIFY_COMPLETED, completed, context,  //
      MHD_OPTION_NOTIFY_CONNECTION, connection, connection_context,  //
      MHD_OPTION_CONNECTION_LIMIT, connection_limit,  //
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,  //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,  //
      MHD_OPTION_STRICT_FOR_CLIENT, strictness,  //
      MHD_OPTION_END);
}

/// MHD_get_connection_info: the socket context that the connection callback has set.
static inline void *pictor_mhd_socket_context(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/// MHD_get_connection_info: the connection's descriptor.
static inline int pictor_mhd_descriptor(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/// MHD_get_daemon_info: the epoll descriptor of a daemon without its own thread.
static inline int pictor_mhd_epoll_descriptor(struct MHD_Daemon *daemon) {
  return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

/// MHD_get_connection_info: the client's address.
static inline const struct sockaddr *pictor_mhd_client_address(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}
