// CJXL: libjxl's encoder, as Swift sees it: its functions need no help.
#pragma once

#include <jxl/encode.h>
