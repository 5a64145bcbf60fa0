// CDeflate: libdeflate.h, for its CRC-32 and its compressor.
#pragma once

#include <libdeflate.h>
