// CZstd: zstd.h, for the decoder of Zstandard.
#pragma once

#include <zstd.h>
