// What Swift cannot call of zlib.h by itself: one call a function, no policy.
#pragma once

#include <zlib.h>
