// jpeg2000: writes JPEG 2000 files with grids and samples that libvips does not write.

#include "codecs.h"

#include <openjpeg-2.5/openjpeg.h>
#include <stdlib.h>
#include <string.h>

/// Bytes that OpenJPEG writes, in any order.
struct output {
  uint8_t *bytes;
  size_t count, place;
};

static OPJ_SIZE_T put(void *bytes, OPJ_SIZE_T count, void *user) {
  struct output *output = user;
  size_t end = output->place + count;
  if (end > output->count) {
    output->bytes = realloc(output->bytes, end);
    output->count = end;
  }
  memcpy(output->bytes + output->place, bytes, count);
  output->place = end;
  return count;
}

static OPJ_OFF_T skip(OPJ_OFF_T count, void *user) {
  ((struct output *)user)->place += (size_t)count;
  return count;
}

static OPJ_BOOL seek(OPJ_OFF_T place, void *user) {
  ((struct output *)user)->place = (size_t)place;
  return OPJ_TRUE;
}

uint8_t *pictor_write_jp2(
    const uint8_t *pixels, const struct pictor_jp2_form *form, size_t *count) {
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.tcp_numlayers = 1;
  parameters.cp_disto_alloc = 1;
  parameters.tcp_rates[0] = 0;
  parameters.numresolution = 4;
  parameters.tile_size_on = form->tile > 0;
  parameters.cp_tdx = parameters.cp_tdy = form->tile;
  parameters.cp_tx0 = form->tile_x;
  parameters.cp_ty0 = form->tile_y;
  if (form->in_parts) {
    parameters.tp_on = 1;
    parameters.tp_flag = 'R';
  }
  opj_image_cmptparm_t parts[5] = {0};
  for (int index = 0; index < form->bands; index++) {
    int step = index == 1 || index == 2 ? form->sampling : 1;
    parts[index].dx = parts[index].dy = (OPJ_UINT32)step;
    parts[index].w = (OPJ_UINT32)((form->width + step - 1) / step);
    parts[index].h = (OPJ_UINT32)((form->height + step - 1) / step);
    parts[index].x0 = (OPJ_UINT32)form->x;
    parts[index].y0 = (OPJ_UINT32)form->y;
    parts[index].prec = (OPJ_UINT32)form->bits;
    parts[index].sgnd = (OPJ_UINT32)form->is_signed;
  }
  opj_image_t *image = opj_image_create((OPJ_UINT32)form->bands, parts,
      form->bands < 3 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB);
  image->x0 = (OPJ_UINT32)form->x;
  image->y0 = (OPJ_UINT32)form->y;
  image->x1 = (OPJ_UINT32)(form->x + form->width);
  image->y1 = (OPJ_UINT32)(form->y + form->height);
  if (form->bands % 2 == 0) image->comps[form->bands - 1].alpha = 1;
  int most = (1 << form->bits) - 1;
  for (int index = 0; index < form->bands; index++) {
    int step = (int)parts[index].dx;
    for (int y = 0; y < (int)parts[index].h; y++)
      for (int x = 0; x < (int)parts[index].w; x++) {
        int value = pixels[(y * step * form->width + x * step) * form->bands + index] * most / 255;
        image->comps[index].data[y * (int)parts[index].w + x] =
            form->is_signed ? value - (most + 1) / 2 : value;
      }
  }
  opj_codec_t *codec = opj_create_compress(form->is_bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  struct output output = {0};
  opj_stream_t *stream = opj_stream_default_create(OPJ_FALSE);
  opj_stream_set_user_data(stream, &output, NULL);
  opj_stream_set_write_function(stream, put);
  opj_stream_set_skip_function(stream, skip);
  opj_stream_set_seek_function(stream, seek);
  int is_good = opj_setup_encoder(codec, &parameters, image) &&
      opj_start_compress(codec, image, stream) && opj_encode(codec, stream) &&
      opj_end_compress(codec, stream);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  if (!is_good) {
    free(output.bytes);
    return NULL;
  }
  *count = output.count;
  return output.bytes;
}
