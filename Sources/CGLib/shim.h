// What Swift cannot call of glib.h by itself: one call a function, no policy.
#pragma once

#include <glib.h>
