// CDe265: libde265, an HEVC decoder that libheif uses as well.
#pragma once

#include <libde265/de265.h>
