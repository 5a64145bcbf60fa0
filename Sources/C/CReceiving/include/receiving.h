// receiving: intercepts recv(2) of libmicrohttpd, so that received bytes are checked before they
// are parsed. No policy.
#pragma once

#include <stddef.h>
#include <sys/types.h>

/// Called with the bytes that recv(2) has received. Its result is returned to the caller of recv;
/// it may be -1 with `errno` set.
typedef ssize_t (*pictor_received)(void *context, int descriptor, void *bytes, ssize_t count);

/// Registers `received` for every recv(2) on the calling thread; NULL removes it.
void pictor_watch_receiving(pictor_received received, void *context);

/// Returns whether the shared libraries of this process call the recv of this file.
int pictor_can_watch_receiving(void);

/// Sets `errno` to EAGAIN and returns -1, as if nothing had been received.
ssize_t pictor_received_nothing(void);
