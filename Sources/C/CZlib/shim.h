// CZlib: zlib.h, for its decoder of deflate, and what Swift cannot call: a macro. One call a
// function, no policy.
#pragma once

#include <zlib.h>

static inline int pictor_zlib_inflate_init(z_stream *stream, int window_bits) {
  return inflateInit2(stream, window_bits);
}
