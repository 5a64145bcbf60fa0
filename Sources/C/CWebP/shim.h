// CWebP: libwebp's decoder and encoder, as Swift sees them: their functions need no help.
#pragma once

#include <webp/decode.h>
#include <webp/encode.h>
