// CJPEG: libjpeg's access to DCT coefficients, and its encoder. No policy.
//
// libjpeg reports an error with a function that must not return. Each function here catches the
// error with longjmp(3) before it returns, because longjmp must not skip a Swift frame. Results: 0
// is success, -1 is an error.
#pragma once

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
// Needs jpeglib.h.
#include <jerror.h>

/// A JPEG that is read and the JPEG that is written from it, or from pixels.
struct pictor_jpeg {
  /// Must be the first member: libjpeg passes its address to `pictor_jpeg_fail`.
  struct jpeg_error_mgr errors;
  jmp_buf place;
  /// Whether libjpeg has reported an error.
  int has_failed;
  struct jpeg_decompress_struct source;
  struct jpeg_compress_struct result;
  /// Coefficients of the source, by component.
  jvirt_barray_ptr *read;
  /// Coefficients of the result, by component.
  jvirt_barray_ptr written[MAX_COMPONENTS];
  /// The bytes written so far, in `room` bytes from malloc(3).
  unsigned char *bytes;
  size_t count;
  size_t room;
  struct jpeg_destination_mgr destination;
};

static inline void pictor_jpeg_fail(j_common_ptr jpeg) {
  struct pictor_jpeg *whole = (struct pictor_jpeg *)jpeg->err;
  whole->has_failed = 1;
  longjmp(whole->place, 1);
}

static inline void pictor_jpeg_stay_silent(j_common_ptr jpeg) { (void)jpeg; }

/// Describes the last error; `text` has room for JMSG_LENGTH_MAX characters.
static inline void pictor_jpeg_describe_error(struct pictor_jpeg *jpeg, char *text) {
  jpeg->errors.format_message((j_common_ptr)&jpeg->result, text);
}

/// Gives the encoder more bytes to write to. Unlike jpeg_mem_dest, keeps `bytes` valid on error.
static inline boolean pictor_jpeg_grow(j_compress_ptr result) {
  struct pictor_jpeg *jpeg = (struct pictor_jpeg *)result->err;
  size_t room = jpeg->room > 0 ? jpeg->room * 2 : 1 << 14;
  unsigned char *bytes = realloc(jpeg->bytes, room);
  if (bytes == NULL) ERREXIT1(result, JERR_OUT_OF_MEMORY, 0);
  jpeg->destination.next_output_byte = bytes + jpeg->room;
  jpeg->destination.free_in_buffer = room - jpeg->room;
  jpeg->bytes = bytes;
  jpeg->room = room;
  return TRUE;
}

/// Gives the encoder the first bytes. A struct writes one JPEG: a next one would follow the first.
static inline void pictor_jpeg_start_bytes(j_compress_ptr result) { pictor_jpeg_grow(result); }

static inline void pictor_jpeg_end_bytes(j_compress_ptr result) {
  struct pictor_jpeg *jpeg = (struct pictor_jpeg *)result->err;
  jpeg->count = jpeg->room - jpeg->destination.free_in_buffer;
}

/// Frees all resources.
static inline void pictor_jpeg_close(struct pictor_jpeg *jpeg) {
  if (setjmp(jpeg->place) == 0) {
    jpeg_destroy_compress(&jpeg->result);
    jpeg_destroy_decompress(&jpeg->source);
  }
  free(jpeg->bytes);
  free(jpeg);
}

/// Allocates an encoder. Returns NULL without memory.
static inline struct pictor_jpeg *pictor_jpeg_new(void) {
  struct pictor_jpeg *jpeg = calloc(1, sizeof *jpeg);
  if (jpeg == NULL) return NULL;
  jpeg->source.err = jpeg_std_error(&jpeg->errors);
  jpeg->result.err = &jpeg->errors;
  jpeg->errors.error_exit = pictor_jpeg_fail;
  jpeg->errors.output_message = pictor_jpeg_stay_silent;
  if (setjmp(jpeg->place) != 0) {
    pictor_jpeg_close(jpeg);
    return NULL;
  }
  jpeg_create_compress(&jpeg->result);
  jpeg->destination.init_destination = pictor_jpeg_start_bytes;
  jpeg->destination.empty_output_buffer = pictor_jpeg_grow;
  jpeg->destination.term_destination = pictor_jpeg_end_bytes;
  jpeg->result.dest = &jpeg->destination;
  return jpeg;
}

/// Reads a header. Returns NULL if it is invalid. The bytes are not copied. `keeps_markers`
/// remembers comments and application segments, for `pictor_jpeg_rewrite`.
static inline struct pictor_jpeg *pictor_jpeg_open(
    const void *bytes, size_t count, int keeps_markers) {
  struct pictor_jpeg *jpeg = pictor_jpeg_new();
  if (jpeg == NULL) return NULL;
  if (setjmp(jpeg->place) != 0) {
    pictor_jpeg_close(jpeg);
    return NULL;
  }
  jpeg_create_decompress(&jpeg->source);
  jpeg_mem_src(&jpeg->source, (const unsigned char *)bytes, (unsigned long)count);
  if (keeps_markers) {
    jpeg_save_markers(&jpeg->source, JPEG_COM, 0xFFFF);
    for (int app = 1; app < 16; app++) jpeg_save_markers(&jpeg->source, JPEG_APP0 + app, 0xFFFF);
  }
  jpeg_read_header(&jpeg->source, TRUE);
  return jpeg;
}

/// Allocates the coefficients of a component of the result, all 0. Must be called before
/// `pictor_jpeg_read`.
static inline int pictor_jpeg_make_room(
    struct pictor_jpeg *jpeg, int component, unsigned columns, unsigned rows, unsigned at_once) {
  if (setjmp(jpeg->place) != 0) return -1;
  jpeg->written[component] = jpeg->source.mem->request_virt_barray(
      (j_common_ptr)&jpeg->source, JPOOL_IMAGE, TRUE, columns, rows, at_once);
  return 0;
}

/// Reads all coefficients and copies the source's parameters to the result.
static inline int pictor_jpeg_read(struct pictor_jpeg *jpeg) {
  if (setjmp(jpeg->place) != 0) return -1;
  jpeg->read = jpeg_read_coefficients(&jpeg->source);
  if (jpeg->read == NULL) return -1;
  jpeg_copy_critical_parameters(&jpeg->source, &jpeg->result);
  return 0;
}

/// Returns a row of blocks with 64 coefficients each, in natural order; NULL on error.
static inline JCOEF *pictor_jpeg_row(
    struct pictor_jpeg *jpeg, int component, unsigned row, int is_written) {
  if (setjmp(jpeg->place) != 0) return NULL;
  jvirt_barray_ptr blocks = is_written ? jpeg->written[component] : jpeg->read[component];
  return (JCOEF *)jpeg->source.mem->access_virt_barray(
      (j_common_ptr)&jpeg->source, blocks, row, 1, is_written ? TRUE : FALSE)[0];
}

/// Writes the result to `bytes` and `count`.
static inline int pictor_jpeg_write(struct pictor_jpeg *jpeg, int is_progressive) {
  if (setjmp(jpeg->place) != 0) return -1;
  if (is_progressive) jpeg_simple_progression(&jpeg->result);
  jpeg_write_coefficients(&jpeg->result, jpeg->written);
  jpeg_finish_compress(&jpeg->result);
  return 0;
}

/// Writes the coefficients that were read, with the best Huffman codes and the kept markers, to
/// `bytes` and `count`. libjpeg writes the segments of JFIF and Adobe itself.
static inline int pictor_jpeg_rewrite(struct pictor_jpeg *jpeg, int is_progressive) {
  if (setjmp(jpeg->place) != 0) return -1;
  jpeg->result.optimize_coding = TRUE;
  jpeg->result.write_JFIF_header = jpeg->source.saw_JFIF_marker;
  if (is_progressive) jpeg_simple_progression(&jpeg->result);
  jpeg_write_coefficients(&jpeg->result, jpeg->read);
  for (jpeg_saved_marker_ptr kept = jpeg->source.marker_list; kept != NULL; kept = kept->next) {
    if (kept->marker == JPEG_APP0 + 14 && jpeg->result.write_Adobe_marker) continue;
    jpeg_write_marker(&jpeg->result, kept->marker, kept->data, kept->data_length);
  }
  jpeg_finish_compress(&jpeg->result);
  return 0;
}

/// Starts a JPEG of 8-bit rows, grey for one component and RGB for three, without a JFIF segment.
///
/// `luma` and `chroma` are quantization tables at quality 50, in natural order. `subsamples` halves
/// the resolution of chroma in both directions.
static inline int pictor_jpeg_start(struct pictor_jpeg *jpeg, unsigned width, unsigned height,
    int components, int quality, int is_progressive, int subsamples, const unsigned *luma,
    const unsigned *chroma) {
  struct jpeg_compress_struct *result = &jpeg->result;
  if (setjmp(jpeg->place) != 0) return -1;
  result->image_width = width;
  result->image_height = height;
  result->input_components = components;
  result->in_color_space = components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(result);
  result->write_JFIF_header = FALSE;
  result->optimize_coding = TRUE;
  int percent = jpeg_quality_scaling(quality);
  jpeg_add_quant_table(result, 0, luma, percent, TRUE);
  jpeg_add_quant_table(result, 1, chroma, percent, TRUE);
  if (!subsamples) result->comp_info[0].h_samp_factor = result->comp_info[0].v_samp_factor = 1;
  if (is_progressive) jpeg_simple_progression(result);
  jpeg_start_compress(result, TRUE);
  return 0;
}

/// Writes a comment or an application segment, before the first row.
static inline int pictor_jpeg_write_segment(
    struct pictor_jpeg *jpeg, int marker, const void *content, unsigned count) {
  if (setjmp(jpeg->place) != 0) return -1;
  jpeg_write_marker(&jpeg->result, marker, (const JOCTET *)content, count);
  return 0;
}

/// Encodes rows that follow those encoded before; `stride` bytes lie from one to the next.
static inline int pictor_jpeg_write_rows(
    struct pictor_jpeg *jpeg, const unsigned char *rows, size_t stride, unsigned count) {
  if (setjmp(jpeg->place) != 0) return -1;
  for (unsigned index = 0; index < count; index++) {
    JSAMPROW row = (JSAMPROW)(rows + index * stride);
    jpeg_write_scanlines(&jpeg->result, &row, 1);
  }
  return 0;
}

/// Completes `bytes` and `count` after the last row.
static inline int pictor_jpeg_finish(struct pictor_jpeg *jpeg) {
  if (setjmp(jpeg->place) != 0) return -1;
  jpeg_finish_compress(&jpeg->result);
  return 0;
}
