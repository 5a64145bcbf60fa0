// CGLib: glib.h, for its checksums.
#pragma once

#include <glib.h>
