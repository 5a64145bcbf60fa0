// receiving: recv(2) as libmicrohttpd calls it, so that what comes is seen before it is parsed. No policy.
#pragma once

#include <stddef.h>
#include <sys/types.h>

/// Told what recv(2) has put at `bytes`; returns what the caller of recv is to be told, -1 with `errno` included.
typedef ssize_t (*pictor_received)(void *context, int descriptor, void *bytes, ssize_t count);

/// Has `received` told of everything that recv(2) brings on the calling thread from now on; NULL: nothing any more.
void pictor_watch_receiving(pictor_received received, void *context);

/// Whether the shared libraries of this process call the recv of this file.
int pictor_can_watch_receiving(void);

/// Sets `errno` to EAGAIN and returns -1: nothing has come.
ssize_t pictor_received_nothing(void);
