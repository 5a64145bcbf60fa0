// receiving: the program's own recv(2), and the other socket calls that TLS replaces. The dynamic
// linker prefers a program's symbol to the C library's, so libmicrohttpd calls these functions.

#define _GNU_SOURCE
#include "receiving.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local pictor_received watcher;
static _Thread_local const pictor_encryption *encryption;
static _Thread_local void *watcher_context;

void pictor_watch_receiving(pictor_received received, const pictor_encryption *calls,
                            void *context) {
  watcher = received;
  encryption = calls;
  watcher_context = context;
}

// recvfrom(2) without an address is the same system call.
ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
  ssize_t count = PICTOR_UNENCRYPTED;
  if (encryption != NULL) {
    count = encryption->receive(watcher_context, descriptor, bytes, size);
  }
  if (count == PICTOR_UNENCRYPTED) count = recvfrom(descriptor, bytes, size, flags, NULL, NULL);
  return count > 0 && watcher != NULL ? watcher(watcher_context, descriptor, bytes, count) : count;
}

ssize_t send(int descriptor, const void *bytes, size_t size, int flags) {
  if (encryption != NULL) {
    ssize_t count = encryption->send(watcher_context, descriptor, bytes, size);
    if (count != PICTOR_UNENCRYPTED) return count;
  }
  return sendto(descriptor, bytes, size, flags, NULL, 0);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
  if (encryption == NULL || !encryption->is_encrypted(watcher_context, descriptor)) {
    return syscall(SYS_sendmsg, descriptor, message, flags);
  }
  ssize_t sent = 0;
  for (size_t index = 0; index < message->msg_iovlen; index++) {
    const struct iovec *piece = &message->msg_iov[index];
    if (piece->iov_len == 0) continue;
    ssize_t count =
        encryption->send(watcher_context, descriptor, piece->iov_base, piece->iov_len);
    if (count < 0) return sent > 0 ? sent : count;
    sent += count;
    if ((size_t)count < piece->iov_len) break;
  }
  return sent;
}

// libmicrohttpd reads and sends a file itself after EINVAL.
ssize_t sendfile64(int descriptor, int file, off64_t *offset, size_t count) {
  if (encryption != NULL && encryption->is_encrypted(watcher_context, descriptor)) {
    errno = EINVAL;
    return -1;
  }
  return syscall(SYS_sendfile, descriptor, file, offset, count);
}

int shutdown(int descriptor, int how) {
  if (encryption != NULL && how != SHUT_RD) encryption->end(watcher_context, descriptor);
  return (int)syscall(SYS_shutdown, descriptor, how);
}

int pictor_can_watch_receiving(void) { return dlsym(RTLD_DEFAULT, "recv") == (void *)recv; }

int pictor_can_encrypt(void) {
  return dlsym(RTLD_DEFAULT, "send") == (void *)send &&
         dlsym(RTLD_DEFAULT, "sendmsg") == (void *)sendmsg &&
         dlsym(RTLD_DEFAULT, "sendfile64") == (void *)sendfile64 &&
         dlsym(RTLD_DEFAULT, "shutdown") == (void *)shutdown;
}

ssize_t pictor_received_nothing(void) {
  errno = EAGAIN;
  return -1;
}

ssize_t pictor_connection_reset(void) {
  errno = ECONNRESET;
  return -1;
}

void pictor_end_receiving(int descriptor) { syscall(SYS_shutdown, descriptor, SHUT_RD); }
