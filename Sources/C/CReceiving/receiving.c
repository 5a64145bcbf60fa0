// receiving: the program's own recv(2). The dynamic linker prefers a program's symbol to the C
// library's, so libmicrohttpd calls it.

#define _GNU_SOURCE
#include "receiving.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

static _Thread_local pictor_received watcher;
static _Thread_local void *watcher_context;

void pictor_watch_receiving(pictor_received received, void *context) {
  watcher = received;
  watcher_context = context;
}

// recvfrom(2) without an address is the same system call.
ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
  ssize_t count = recvfrom(descriptor, bytes, size, flags, NULL, NULL);
  return count > 0 && watcher != NULL ? watcher(watcher_context, descriptor, bytes, count) : count;
}

int pictor_can_watch_receiving(void) { return dlsym(RTLD_DEFAULT, "recv") == (void *)recv; }

ssize_t pictor_received_nothing(void) {
  errno = EAGAIN;
  return -1;
}
