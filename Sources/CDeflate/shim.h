// libdeflate.h, for its CRC-32; Swift calls it by itself.
#pragma once

#include <libdeflate.h>
