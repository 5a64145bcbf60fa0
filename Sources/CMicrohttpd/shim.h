// What Swift cannot call of microhttpd.h by itself: one call a function, no policy.
#pragma once

#include <microhttpd.h>
