// Encoders of content codings.

#include "codecs.h"

#include <stdlib.h>

#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

uint8_t *pictor_code_deflate(const uint8_t *bytes, size_t length, int window_bits, size_t *count) {
  z_stream stream = {0};
  if (deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) return NULL;
  size_t room = deflateBound(&stream, length);
  uint8_t *coded = malloc(room);
  stream.next_in = (Bytef *)bytes;
  stream.avail_in = (uInt)length;
  stream.next_out = coded;
  stream.avail_out = (uInt)room;
  int is_complete = coded != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END;
  *count = room - stream.avail_out;
  deflateEnd(&stream);
  if (is_complete) return coded;
  free(coded);
  return NULL;
}

uint8_t *pictor_code_brotli(const uint8_t *bytes, size_t length, size_t *count) {
  *count = BrotliEncoderMaxCompressedSize(length);
  uint8_t *coded = malloc(*count);
  if (coded != NULL && BrotliEncoderCompress(5, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, length,
          bytes, count, coded))
    return coded;
  free(coded);
  return NULL;
}

uint8_t *pictor_code_zstd(const uint8_t *bytes, size_t length, int window_log, size_t *count) {
  ZSTD_CCtx *context = ZSTD_createCCtx();
  size_t room = ZSTD_compressBound(length);
  uint8_t *coded = malloc(room);
  if (context != NULL && coded != NULL) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    // A frame of known length needs no window beyond it, so the length is left out.
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, window_log == 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_inBuffer from = {bytes, length, 0};
    ZSTD_outBuffer to = {coded, room, 0};
    // In two steps with a given window: in one, the encoder knows the length and reduces it.
    size_t left = 0;
    if (window_log != 0) left = ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush);
    if (left == 0) left = ZSTD_compressStream2(context, &to, &from, ZSTD_e_end);
    *count = to.pos;
    ZSTD_freeCCtx(context);
    if (left == 0) return coded;
  }
  free(coded);
  return NULL;
}
