// CBrotli: brotli/decode.h, Brotli's decoder.
#pragma once

#include <brotli/decode.h>
