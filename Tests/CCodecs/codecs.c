// codecs: one call of a library after the other, as in their manuals; tests check the result.

#include "codecs.h"

#include <jxl/encode.h>
#include <libheif/heif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

uint8_t *pictor_write_jpeg(const uint8_t *pixels, int width, int height,
    enum pictor_jpeg_colors colors, int across, int down, int is_progressive, int is_arithmetic,
    int quality, int restart_interval, size_t *count) {
  static const J_COLOR_SPACE in[] = {JCS_GRAYSCALE, JCS_RGB, JCS_RGB, JCS_CMYK, JCS_CMYK};
  static const J_COLOR_SPACE stored[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK, JCS_YCCK};
  static const int bands[] = {1, 3, 3, 4, 4};
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  unsigned char *bytes = NULL;
  unsigned long size = 0;
  // libjpeg ends the program where it fails; with what tests ask for it does not.
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = (JDIMENSION)width;
  jpeg.image_height = (JDIMENSION)height;
  jpeg.input_components = bands[colors];
  jpeg.in_color_space = in[colors];
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, stored[colors]);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg.restart_interval = (unsigned)restart_interval;
  for (int index = 0; index < jpeg.num_components; index++) {
    // Cb and Cr are what there may be less of; black is as sharp as lightness.
    int is_colour = index == 1 || index == 2;
    jpeg.comp_info[index].h_samp_factor = is_colour ? 1 : across;
    jpeg.comp_info[index].v_samp_factor = is_colour ? 1 : down;
  }
  if (is_progressive) jpeg_simple_progression(&jpeg);
  jpeg.arith_code = is_arithmetic ? TRUE : FALSE;
  jpeg_start_compress(&jpeg, TRUE);
  size_t stride = (size_t)width * bands[colors];
  JSAMPLE *row = malloc(stride);
  for (int y = 0; y < height; y++) {
    for (size_t index = 0; index < stride; index++) {
      uint8_t value = pixels[(size_t)y * stride + index];
      row[index] = bands[colors] == 4 ? 255 - value : value;
    }
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  free(row);
  *count = size;
  return bytes;
}

/// TIFF with the orientation alone in its only directory (EXIF 2.32, 4.6.4).
static const size_t exif_count = 26;
static void write_exif(uint8_t *exif, int orientation) {
  const uint8_t bytes[26] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0,
      (uint8_t)orientation};
  memcpy(exif, bytes, sizeof bytes);
}

uint8_t *pictor_write_jxl(const void *pixels, int width, int height, int bands, int bits,
    int orientation, int exif_orientation, int frames, size_t *count) {
  JxlEncoder *encoder = JxlEncoderCreate(NULL);
  JxlEncoderUseContainer(encoder, JXL_TRUE);
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = (uint32_t)width;
  info.ysize = (uint32_t)height;
  info.bits_per_sample = (uint32_t)bits;
  info.uses_original_profile = JXL_TRUE;
  info.orientation = (JxlOrientation)orientation;
  info.num_color_channels = bands < 3 ? 1 : 3;
  info.num_extra_channels = bands % 2 == 0;
  info.alpha_bits = info.num_extra_channels != 0 ? (uint32_t)bits : 0;
  info.have_animation = frames > 1;
  info.animation.tps_numerator = 10;
  info.animation.tps_denominator = 1;
  JxlColorEncoding colors;
  JxlColorEncodingSetToSRGB(&colors, bands < 3);
  int is_good = JxlEncoderSetCodestreamLevel(encoder, 10) == JXL_ENC_SUCCESS &&
      JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS &&
      JxlEncoderSetColorEncoding(encoder, &colors) == JXL_ENC_SUCCESS;
  if (is_good && exif_orientation != 0) {
    // ISO/IEC 18181-2, 9.5: four bytes, how far the TIFF header is away, then that.
    uint8_t box[4 + 26] = {0};
    write_exif(box + 4, exif_orientation);
    is_good = JxlEncoderUseBoxes(encoder) == JXL_ENC_SUCCESS &&
        JxlEncoderAddBox(encoder, "Exif", box, sizeof box, JXL_FALSE) == JXL_ENC_SUCCESS;
    JxlEncoderCloseBoxes(encoder);
  }
  JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
  JxlEncoderSetFrameLossless(settings, JXL_TRUE);
  JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT, 1);
  JxlPixelFormat format = {
      (uint32_t)bands, bits > 8 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  size_t size = (size_t)width * (size_t)height * (size_t)bands * (bits > 8 ? 2 : 1);
  uint8_t *copy = malloc(size);
  memcpy(copy, pixels, size);
  for (int frame = 0; frame < frames; frame++) {
    JxlFrameHeader header;
    JxlEncoderInitFrameHeader(&header);
    header.duration = frames > 1;
    is_good = is_good && JxlEncoderSetFrameHeader(settings, &header) == JXL_ENC_SUCCESS &&
        JxlEncoderAddImageFrame(settings, &format, copy, size) == JXL_ENC_SUCCESS;
    for (size_t index = 0; index < size; index++) copy[index] = 255 - copy[index];
  }
  free(copy);
  JxlEncoderCloseInput(encoder);
  size_t room = size + 65536;
  uint8_t *bytes = malloc(room);
  uint8_t *next = bytes;
  is_good = is_good && JxlEncoderProcessOutput(encoder, &next, &room) == JXL_ENC_SUCCESS;
  JxlEncoderDestroy(encoder);
  *count = (size_t)(next - bytes);
  if (!is_good) free(bytes);
  return is_good ? bytes : NULL;
}

/// Bytes that grow.
struct buffer {
  uint8_t *bytes;
  size_t count;
};

static struct heif_error append(
    struct heif_context *context, const void *data, size_t size, void *user) {
  struct buffer *buffer = user;
  buffer->bytes = realloc(buffer->bytes, buffer->count + size);
  memcpy(buffer->bytes + buffer->count, data, size);
  buffer->count += size;
  return (struct heif_error){heif_error_Ok, heif_suberror_Unspecified, "Success"};
}

static struct heif_image *heif_picture(
    const uint8_t *pixels, int width, int height, int bits, int divisor) {
  struct heif_image *image;
  heif_image_create(width, height, heif_colorspace_RGB,
      bits > 8 ? heif_chroma_interleaved_RRGGBB_BE : heif_chroma_interleaved_RGB, &image);
  heif_image_add_plane(image, heif_channel_interleaved, width, height, bits);
  int stride;
  uint8_t *plane = heif_image_get_plane(image, heif_channel_interleaved, &stride);
  for (int y = 0; y < height; y++)
    for (int index = 0; index < width * 3; index++) {
      int value = pixels[y * width * 3 + index] / divisor;
      if (bits > 8) {
        int wide = value * ((1 << bits) - 1) / 255;
        plane[y * stride + 2 * index] = (uint8_t)(wide >> 8);
        plane[y * stride + 2 * index + 1] = (uint8_t)(wide & 255);
      } else {
        plane[y * stride + index] = (uint8_t)value;
      }
    }
  return image;
}

uint8_t *pictor_write_heif(const uint8_t *pixels, int width, int height, int is_avif,
    int bits, int orientation, int exif_orientation, int has_cover, size_t *count) {
  struct heif_context *context = heif_context_alloc();
  struct heif_encoder *encoder;
  struct heif_error error = heif_context_get_encoder_for_format(
      context, is_avif ? heif_compression_AV1 : heif_compression_HEVC, &encoder);
  if (error.code != heif_error_Ok) return NULL;
  heif_encoder_set_lossy_quality(encoder, 90);
  // aom calls it one thing and x265 another; what it does not know it refuses, which does no harm.
  heif_encoder_set_parameter_integer(encoder, "speed", 9);
  heif_encoder_set_parameter_string(encoder, "preset", "ultrafast");
  // libheif 1.15 asks aom for profile 2 from 10 bits on, which needs 4:2:2; aom 3.6 aborts else.
  heif_encoder_set_parameter_string(encoder, "chroma", is_avif && bits == 10 ? "422" : "420");
  struct heif_encoding_options *options = heif_encoding_options_alloc();
  struct heif_image_handle *handle = NULL;
  if (has_cover) {
    struct heif_image *cover = heif_picture(pixels, width, height, bits, 2);
    heif_context_encode_image(context, cover, encoder, options, &handle);
    heif_image_handle_release(handle);
    heif_image_release(cover);
  }
  options->image_orientation = (enum heif_orientation)orientation;
  struct heif_image *image = heif_picture(pixels, width, height, bits, 1);
  error = heif_context_encode_image(context, image, encoder, options, &handle);
  struct buffer buffer = {NULL, 0};
  if (error.code == heif_error_Ok) {
    heif_context_set_primary_image(context, handle);
    if (exif_orientation != 0) {
      uint8_t exif[26];
      write_exif(exif, exif_orientation);
      heif_context_add_exif_metadata(context, handle, exif, (int)exif_count);
    }
    struct heif_writer writer = {1, append};
    heif_context_write(context, &writer, &buffer);
    heif_image_handle_release(handle);
  }
  heif_image_release(image);
  heif_encoding_options_free(options);
  heif_encoder_release(encoder);
  heif_context_free(context);
  *count = buffer.count;
  return buffer.bytes;
}
