// CAom: libaom's AV1 encoder. Swift cannot call its macro or its variadic function.
#pragma once

#include <aom/aom_encoder.h>
#include <aom/aomcx.h>

/// Creates an encoder; `aom_codec_enc_init` is a macro.
static inline aom_codec_err_t pictor_aom_init(
    aom_codec_ctx_t *encoder, const aom_codec_enc_cfg_t *settings) {
  return aom_codec_enc_init(encoder, aom_codec_av1_cx(), settings, 0);
}

/// Sets a number (`aome_enc_control_id`).
static inline aom_codec_err_t pictor_aom_set(aom_codec_ctx_t *encoder, int setting, int value) {
  return aom_codec_control(encoder, setting, value);
}

/// The coded frame of a packet; `NULL` for a packet of anything else.
static inline const void *pictor_aom_frame(const aom_codec_cx_pkt_t *packet, size_t *count) {
  if (packet->kind != AOM_CODEC_CX_FRAME_PKT) return NULL;
  *count = packet->data.frame.sz;
  return packet->data.frame.buf;
}
