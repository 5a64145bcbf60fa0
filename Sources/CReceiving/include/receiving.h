// receiving: intercepts the socket calls of libmicrohttpd, so that received bytes are seen before
// they are parsed, and bytes of TLS connections are decrypted and encrypted. No policy.
#pragma once

#include <stddef.h>
#include <sys/types.h>

/// Called with the bytes that recv(2) has received, decrypted. Its result is returned to the caller
/// of recv; it may be -1 with `errno` set.
typedef ssize_t (*pictor_received)(void *context, int descriptor, void *bytes, ssize_t count);

/// What replaces the system calls on connections with TLS. `receive` and `send` return
/// PICTOR_UNENCRYPTED for other descriptors, otherwise what recv(2) and send(2) return, with `errno`
/// set.
typedef struct {
  ssize_t (*receive)(void *context, int descriptor, void *bytes, size_t size);
  ssize_t (*send)(void *context, int descriptor, const void *bytes, size_t size);
  /// Returns whether the connection has TLS.
  int (*is_encrypted)(void *context, int descriptor);
  /// Called before the write side of a socket is shut down.
  void (*end)(void *context, int descriptor);
} pictor_encryption;

/// The descriptor has no TLS.
#define PICTOR_UNENCRYPTED ((ssize_t)-2)

/// Registers `received` for every recv(2) on the calling thread, and `encryption` for every socket
/// call. NULL removes them. Both outlive the thread.
void pictor_watch_receiving(pictor_received received, const pictor_encryption *encryption,
                            void *context);

/// Returns whether the shared libraries of this process call the recv of this file.
int pictor_can_watch_receiving(void);

/// Returns whether they call its send, sendmsg, sendfile and shutdown.
int pictor_can_encrypt(void);

/// Sets `errno` to EAGAIN and returns -1, as if nothing had been received.
ssize_t pictor_received_nothing(void);

/// Sets `errno` to ECONNRESET and returns -1.
ssize_t pictor_connection_reset(void);

/// Shuts down the read side of a socket, which is readable and at its end from then on.
void pictor_end_receiving(int descriptor);
