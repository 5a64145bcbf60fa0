// CWebP: libwebp's decoder, as Swift sees it: its functions need no help.
#pragma once

#include <webp/decode.h>
