// CVips: the functions and macros of libvips that Swift cannot call. One call a function, no
// policy.
//
// libvips's operations take optional arguments as a NULL-terminated list, which Swift cannot pass.
// Results follow libvips: 0 is success, any other value means that its error buffer holds a text.
#pragma once

#include <gmodule.h>
#include <vips/vips.h>
#include <vips/vector.h>

// dlfcn.h declares these only with _GNU_SOURCE; see CLinux.
struct pictor_vips_symbol {
  const char *file;
  void *base;
  const char *name;
  void *address;
};
int dladdr(const void *address, struct pictor_vips_symbol *found);

// Loaders. The bytes are not copied, so they must outlive the image.

static inline int pictor_vips_jpegload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on, int shrink) {
  return vips_jpegload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, "shrink", shrink, NULL);
}

static inline int pictor_vips_pngload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on) {
  return vips_pngload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, NULL);
}

static inline int pictor_vips_gifload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on, int page, int n) {
  return vips_gifload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, "page", page, "n", n, NULL);
}

static inline int pictor_vips_webpload(const void *bytes, size_t count, VipsImage **out,
    VipsAccess access, VipsFailOn fail_on, int page, int n, double scale) {
  return vips_webpload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, "page", page, "n", n, "scale", scale, NULL);
}

static inline int pictor_vips_tiffload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on, int page) {
  return vips_tiffload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, "page", page, NULL);
}

static inline int pictor_vips_heifload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on) {
  return vips_heifload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, NULL);
}

static inline int pictor_vips_heifload_page(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on, int page) {
  return vips_heifload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, "page", page, NULL);
}

static inline int pictor_vips_jxlload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on) {
  return vips_jxlload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, NULL);
}

static inline int pictor_vips_jp2kload(
    const void *bytes, size_t count, VipsImage **out, VipsAccess access, VipsFailOn fail_on) {
  return vips_jp2kload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, NULL);
}

static inline int pictor_vips_svgload(const void *bytes, size_t count, VipsImage **out,
    VipsAccess access, VipsFailOn fail_on, double scale) {
  return vips_svgload_buffer((void *)bytes, count, out, "access", access, "fail_on",
      fail_on, "scale", scale, NULL);
}

// Geometry.

static inline int pictor_vips_resize(
    VipsImage *in, VipsImage **out, double horizontal, double vertical, VipsKernel kernel) {
  return vips_resize(in, out, horizontal, "vscale", vertical, "kernel", kernel, NULL);
}

/// Pixels are areas, and the edges of both images coincide: out + 0.5 = (in + 0.5) * scale.
static inline int pictor_vips_enlarge(
    VipsImage *in, VipsImage **out, int width, int height, const char *interpolation) {
  VipsInterpolate *interpolate = vips_interpolate_new(interpolation);
  if (interpolate == NULL) return -1;
  VipsArrayInt *area = vips_array_int_newv(4, 0, 0, width, height);
  int result = vips_affine(in, out, (double)width / in->Xsize, 0, 0, (double)height / in->Ysize,
      "interpolate", interpolate, "idx", 0.5, "idy", 0.5, "odx", -0.5, "ody", -0.5, "oarea", area,
      "extend", VIPS_EXTEND_COPY, "premultiplied", TRUE, NULL);
  vips_area_unref(VIPS_AREA(area));
  g_object_unref(interpolate);
  return result;
}

static inline int pictor_vips_rot(VipsImage *in, VipsImage **out, VipsAngle angle) {
  return vips_rot(in, out, angle, NULL);
}

static inline int pictor_vips_flip(VipsImage *in, VipsImage **out, VipsDirection direction) {
  return vips_flip(in, out, direction, NULL);
}

static inline int pictor_vips_extract_area(
    VipsImage *in, VipsImage **out, int left, int top, int width, int height) {
  return vips_extract_area(in, out, left, top, width, height, NULL);
}

static inline int pictor_vips_smartcrop(
    VipsImage *in, VipsImage **out, int width, int height, VipsInteresting interesting) {
  return vips_smartcrop(in, out, width, height, "interesting", interesting, NULL);
}

static inline int pictor_vips_embed(VipsImage *in, VipsImage **out, int left, int top, int width,
    int height, VipsArrayDouble *background) {
  return vips_embed(in, out, left, top, width, height, "extend", VIPS_EXTEND_BACKGROUND,
      "background", background, NULL);
}

static inline int pictor_vips_embed_edges(
    VipsImage *in, VipsImage **out, int left, int top, int width, int height) {
  return vips_embed(in, out, left, top, width, height, "extend", VIPS_EXTEND_COPY, NULL);
}

static inline int pictor_vips_embed_mirrored(
    VipsImage *in, VipsImage **out, int left, int top, int width, int height) {
  return vips_embed(in, out, left, top, width, height, "extend", VIPS_EXTEND_MIRROR, NULL);
}

static inline int pictor_vips_arrayjoin(VipsImage **in, VipsImage **out, int n, int across) {
  return vips_arrayjoin(in, out, n, "across", across, NULL);
}

static inline int pictor_vips_replicate(VipsImage *in, VipsImage **out, int across, int down) {
  return vips_replicate(in, out, across, down, NULL);
}

// Colour and alpha.

static inline int pictor_vips_icc_transform(VipsImage *in, VipsImage **out, const char *profile,
    gboolean embedded, const char *fallback, VipsIntent intent) {
  return vips_icc_transform(in, out, profile, "embedded", embedded, "input_profile", fallback,
      "intent", intent, "black_point_compensation", TRUE, "depth", 8, NULL);
}

static inline int pictor_vips_icc_export(
    VipsImage *in, VipsImage **out, const char *profile, VipsIntent intent) {
  return vips_icc_export(
      in, out, "output_profile", profile, "intent", intent, "depth", 8, NULL);
}

static inline int pictor_vips_linear1(
    VipsImage *in, VipsImage **out, double factor, double summand, gboolean uchar) {
  return vips_linear1(in, out, factor, summand, "uchar", uchar, NULL);
}

static inline int pictor_vips_colourspace(
    VipsImage *in, VipsImage **out, VipsInterpretation space) {
  return vips_colourspace(in, out, space, NULL);
}

static inline int pictor_vips_premultiply(VipsImage *in, VipsImage **out, double max_alpha) {
  return vips_premultiply(in, out, "max_alpha", max_alpha, NULL);
}

static inline int pictor_vips_unpremultiply(VipsImage *in, VipsImage **out, double max_alpha) {
  return vips_unpremultiply(in, out, "max_alpha", max_alpha, NULL);
}

static inline int pictor_vips_flatten(
    VipsImage *in, VipsImage **out, VipsArrayDouble *background) {
  return vips_flatten(in, out, "background", background, NULL);
}

static inline int pictor_vips_linear(
    VipsImage *in, VipsImage **out, const double *factors, const double *offsets, int n) {
  return vips_linear(in, out, factors, offsets, n, "uchar", TRUE, NULL);
}

static inline int pictor_vips_linear_float(
    VipsImage *in, VipsImage **out, const double *factors, const double *offsets, int n) {
  return vips_linear(in, out, factors, offsets, n, NULL);
}

static inline int pictor_vips_over(VipsImage *base, VipsImage *overlay, VipsImage **out, int x,
    int y, VipsInterpretation space) {
  return vips_composite2(base, overlay, out, VIPS_BLEND_MODE_OVER, "x", x, "y", y,
      "compositing_space", space, NULL);
}

static inline int pictor_vips_cast(VipsImage *in, VipsImage **out, VipsBandFormat format) {
  return vips_cast(in, out, format, NULL);
}

static inline int pictor_vips_extract_band(VipsImage *in, VipsImage **out, int band, int n) {
  return vips_extract_band(in, out, band, "n", n, NULL);
}

static inline int pictor_vips_bandjoin2(VipsImage *first, VipsImage *second, VipsImage **out) {
  return vips_bandjoin2(first, second, out, NULL);
}

static inline int pictor_vips_bandjoin_const1(VipsImage *in, VipsImage **out, double value) {
  return vips_bandjoin_const1(in, out, value, NULL);
}

static inline int pictor_vips_rint(VipsImage *in, VipsImage **out) {
  return vips_rint(in, out, NULL);
}

static inline int pictor_vips_black(VipsImage **out, int width, int height) {
  return vips_black(out, width, height, NULL);
}

/// The first pixel of an area that a region holds; rows are `bpl` bytes apart.
static inline const unsigned char *pictor_vips_region_address(VipsRegion *region, int x, int y) {
  return VIPS_REGION_ADDR(region, x, y);
}

static inline int pictor_vips_copy(VipsImage *in, VipsImage **out) {
  return vips_copy(in, out, NULL);
}

static inline int pictor_vips_copy_as(
    VipsImage *in, VipsImage **out, VipsInterpretation interpretation) {
  return vips_copy(in, out, "interpretation", interpretation, NULL);
}

// Convolutions.

static inline int pictor_vips_gaussblur(
    VipsImage *in, VipsImage **out, double sigma, double min_ampl) {
  return vips_gaussblur(in, out, sigma, "precision", VIPS_PRECISION_FLOAT, "min_ampl", min_ampl,
      NULL);
}

static inline int pictor_vips_sharpen(VipsImage *in, VipsImage **out, double sigma) {
  return vips_sharpen(in, out, "sigma", sigma, NULL);
}

// Encoders. The caller must free the bytes with g_free.

/// Writes metadata, and pixels at the lowest quality; see JPEGEncoder.
static inline int pictor_vips_jpegsave_metadata(VipsImage *in, void **bytes, size_t *count) {
  return vips_jpegsave_buffer(in, bytes, count, "Q", 1, NULL);
}

static inline int pictor_vips_pngsave(VipsImage *in, void **bytes, size_t *count, int compression,
    VipsForeignPngFilter filter, gboolean interlace, gboolean strip) {
  return vips_pngsave_buffer(in, bytes, count, "compression", compression, "filter", filter,
      "interlace", interlace, "strip", strip, NULL);
}

/// Reduces the image to 256 colours by libimagequant.
static inline int pictor_vips_pngsave_palette(VipsImage *in, void **bytes, size_t *count,
    int compression, int effort, double dither, gboolean interlace, gboolean strip) {
  return vips_pngsave_buffer(in, bytes, count, "compression", compression, "filter",
      VIPS_FOREIGN_PNG_FILTER_NONE, "palette", TRUE, "effort", effort, "dither", dither,
      "interlace", interlace, "strip", strip, NULL);
}

static inline int pictor_vips_webpsave(
    VipsImage *in, void **bytes, size_t *count, int quality, int effort, gboolean strip) {
  return vips_webpsave_buffer(
      in, bytes, count, "Q", quality, "effort", effort, "strip", strip, NULL);
}

static inline int pictor_vips_gifsave(
    VipsImage *in, void **bytes, size_t *count, int effort, double dither, gboolean interlace,
    gboolean strip) {
  return vips_gifsave_buffer(in, bytes, count, "effort", effort, "dither", dither, "interlace",
      interlace, "strip", strip, NULL);
}

static inline int pictor_vips_avifsave(
    VipsImage *in, void **bytes, size_t *count, int quality, int effort, gboolean strip) {
  return vips_heifsave_buffer(in, bytes, count, "compression", VIPS_FOREIGN_HEIF_COMPRESSION_AV1,
      "bitdepth", 8, "Q", quality, "effort", effort, "strip", strip, NULL);
}

static inline int pictor_vips_jxlsave(
    VipsImage *in, void **bytes, size_t *count, int quality, int effort, gboolean strip) {
  return vips_jxlsave_buffer(
      in, bytes, count, "Q", quality, "effort", effort, "strip", strip, NULL);
}

static inline int pictor_vips_tiffsave(VipsImage *in, void **bytes, size_t *count,
    VipsForeignTiffCompression compression, VipsForeignTiffPredictor predictor, gboolean strip) {
  return vips_tiffsave_buffer(in, bytes, count, "compression", compression, "predictor",
      predictor, "strip", strip, NULL);
}

// For comparison in benchmarks.

static inline int pictor_vips_thumbnail(
    const void *bytes, size_t count, VipsImage **out, int width, const char *options) {
  return vips_thumbnail_buffer(
      (void *)bytes, count, out, width, "height", VIPS_MAX_COORD, "option_string", options, NULL);
}

// For tests, which create images: any loader and encoder, with options in brackets.

static inline VipsImage *pictor_vips_image_new_from_buffer(
    const void *bytes, size_t count, const char *options) {
  return vips_image_new_from_buffer(bytes, count, options, NULL);
}

static inline int pictor_vips_image_write_to_buffer(
    VipsImage *in, const char *suffix, void **bytes, size_t *count) {
  return vips_image_write_to_buffer(in, suffix, bytes, count, NULL);
}

static inline int pictor_vips_zoom(VipsImage *in, VipsImage **out, int across, int down) {
  return vips_zoom(in, out, across, down, NULL);
}

// Macros.

static inline void pictor_g_object_ref(void *object) { g_object_ref(object); }
static inline void pictor_g_object_unref(void *object) { g_object_unref(object); }

static inline void pictor_vips_free(VipsImage *image, void *bytes) { (void)image, free(bytes); }

// An image of malloc(3)'d pixels, which it frees; on failure the caller still owns them.
static inline VipsImage *pictor_vips_image_owning(
    void *bytes, size_t count, int width, int height, int bands, VipsBandFormat format,
    VipsInterpretation interpretation) {
  VipsImage *image = vips_image_new_from_memory(bytes, count, width, height, bands, format);
  if (image == NULL) return NULL;
  image->Type = interpretation;
  g_signal_connect(image, "postclose", G_CALLBACK(pictor_vips_free), bytes);
  return image;
}

static inline VipsArea *pictor_vips_area_of_array(VipsArrayDouble *array) {
  return VIPS_AREA(array);
}

/// Returns the path of the libvips library (dladdr(3)); NULL if it cannot be determined.
static inline const char *pictor_vips_library_path(void) {
  struct pictor_vips_symbol found;
  return dladdr((const void *)vips_init, &found) != 0 ? found.file : NULL;
}
