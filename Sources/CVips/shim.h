// What Swift cannot call of vips/vips.h by itself: one call a function, no policy.
#pragma once

#include <vips/vips.h>
