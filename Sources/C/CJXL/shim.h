// CJXL: libjxl, as Swift sees it: its functions need no help.
#pragma once

#include <jxl/decode.h>
