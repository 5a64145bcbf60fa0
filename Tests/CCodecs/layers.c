// layers: AV1 images of several spatial layers, by libaom's encoder of streams for conferences.

#include "codecs.h"

#include <aom/aom_encoder.h>
#include <aom/aomcx.h>
#include <stdlib.h>
#include <string.h>

uint8_t *pictor_write_av1_layers(
    const uint8_t *greys, int layers, int width, int height, size_t *count) {
  aom_codec_enc_cfg_t settings;
  aom_codec_ctx_t encoder;
  aom_codec_enc_config_default(aom_codec_av1_cx(), &settings, AOM_USAGE_REALTIME);
  settings.g_w = (unsigned)width;
  settings.g_h = (unsigned)height;
  settings.g_lag_in_frames = 0;
  if (aom_codec_enc_init(&encoder, aom_codec_av1_cx(), &settings, 0) != AOM_CODEC_OK) return NULL;
  aom_svc_params_t scaling = {
      .number_spatial_layers = layers, .number_temporal_layers = 1, .framerate_factor = {1}};
  for (int layer = 0; layer < layers; layer++) {
    scaling.max_quantizers[layer] = 20;
    // libaom 3.12 leaves out layers without bits.
    scaling.layer_target_bitrate[layer] = 100;
    scaling.scaling_factor_num[layer] = scaling.scaling_factor_den[layer] = 1;
  }
  aom_codec_control(&encoder, AV1E_SET_SVC_PARAMS, &scaling);
  aom_image_t *image =
      aom_img_alloc(NULL, AOM_IMG_FMT_I420, (unsigned)width, (unsigned)height, 16);
  int is_good = 1;
  uint8_t *bytes = NULL;
  *count = 0;
  for (int layer = 0; layer < layers; layer++) {
    for (int plane = 0; plane < 3; plane++)
      memset(image->planes[plane], plane == 0 ? greys[layer] : 128,
          (size_t)image->stride[plane] * (size_t)(plane == 0 ? height : (height + 1) / 2));
    aom_svc_layer_id_t number = {layer, 0};
    aom_codec_control(&encoder, AV1E_SET_SVC_LAYER_ID, &number);
    is_good = is_good &&
        aom_codec_encode(&encoder, image, layer, 1, layer == 0 ? AOM_EFLAG_FORCE_KF : 0) ==
            AOM_CODEC_OK;
    aom_codec_iter_t next = NULL;
    for (const aom_codec_cx_pkt_t *packet; (packet = aom_codec_get_cx_data(&encoder, &next));) {
      if (packet->kind != AOM_CODEC_CX_FRAME_PKT) continue;
      bytes = realloc(bytes, *count + packet->data.frame.sz);
      memcpy(bytes + *count, packet->data.frame.buf, packet->data.frame.sz);
      *count += packet->data.frame.sz;
    }
  }
  aom_img_free(image);
  aom_codec_destroy(&encoder);
  if (!is_good) free(bytes);
  return is_good ? bytes : NULL;
}
