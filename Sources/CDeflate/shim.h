// CDeflate: libdeflate.h, for its CRC-32.
#pragma once

#include <libdeflate.h>
