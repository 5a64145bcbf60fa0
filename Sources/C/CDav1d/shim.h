// CDav1d: dav1d, an AV1 decoder that libheif uses as well.
#pragma once

#include <dav1d/dav1d.h>

/// Keeps dav1d's messages about untrusted images off standard error.
static inline void pictor_dav1d_silence(Dav1dSettings *settings) {
  settings->logger.callback = NULL;
}
