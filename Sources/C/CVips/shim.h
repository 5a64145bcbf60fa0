// CVips: the functions and macros of libvips that Swift cannot call. One call a function, no
// policy.
//
// libvips's functions take optional arguments as a NULL-terminated list, which Swift cannot pass.
// So operations are named, and their arguments are text. The names are checked as the tests run.
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

/// heif_init, which loads libheif's codecs where they are files of their own (from Debian 13 on).
/// The module of libvips that links libheif calls it only with the first image.
static inline void pictor_vips_load_heif_codecs(GModule *module) {
  struct { int code, detail; const char *text; } (*init)(void *parameters);
  if (g_module_symbol(module, "heif_init", (gpointer *)&init)) init(NULL);
}

/// Builds an operation whose `arguments` are as vips(1) takes them: "width=10,extend=copy".
static inline int pictor_vips_build(VipsOperation **operation, const char *arguments) {
  return vips_object_set_from_string(VIPS_OBJECT(*operation), arguments) != 0 ||
             vips_cache_operation_buildp(operation) != 0
      ? -1 : 0;
}

static inline void pictor_vips_end(VipsOperation *operation) {
  vips_object_unref_outputs(VIPS_OBJECT(operation));
  g_object_unref(operation);
}

/// Makes an image of another one, or of none.
static inline int pictor_vips_run(
    const char *name, VipsImage *in, const char *arguments, VipsImage **out) {
  VipsOperation *operation = vips_operation_new(name);
  if (operation == NULL) return -1;
  GObjectClass *kind = G_OBJECT_GET_CLASS(operation);
  const char *input = g_object_class_find_property(kind, "in") != NULL ? "in" : "input";
  if (in != NULL) g_object_set(operation, input, in, NULL);
  int result = pictor_vips_build(&operation, arguments);
  if (result == 0) g_object_get(operation, "out", out, NULL);
  pictor_vips_end(operation);
  return result;
}

/// Opens bytes, which are not copied, so they must outlive the image.
static inline int pictor_vips_load(const char *name, const void *bytes, size_t count,
    const char *arguments, VipsImage **out) {
  VipsOperation *operation = vips_operation_new(name);
  if (operation == NULL) return -1;
  VipsBlob *blob = vips_blob_new(NULL, bytes, count);
  g_object_set(operation, "buffer", blob, NULL);
  vips_area_unref(VIPS_AREA(blob));
  int result = pictor_vips_build(&operation, arguments);
  if (result == 0) g_object_get(operation, "out", out, NULL);
  pictor_vips_end(operation);
  return result;
}

/// Encodes an image. The caller must free the bytes with g_free.
static inline int pictor_vips_save(
    const char *name, VipsImage *in, const char *arguments, void **bytes, size_t *count) {
  VipsOperation *operation = vips_operation_new(name);
  if (operation == NULL) return -1;
  g_object_set(operation, "in", in, NULL);
  int result = pictor_vips_build(&operation, arguments);
  if (result == 0) {
    VipsBlob *blob;
    g_object_get(operation, "buffer", &blob, NULL);
    VipsArea *area = VIPS_AREA(blob);
    *bytes = area->data;
    *count = area->length;
    area->free_fn = NULL;
    vips_area_unref(area);
  }
  pictor_vips_end(operation);
  return result;
}

// Operations of more than one object.

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

static inline int pictor_vips_arrayjoin(VipsImage **in, VipsImage **out, int n, int across) {
  return vips_arrayjoin(in, out, n, "across", across, NULL);
}

static inline int pictor_vips_over(VipsImage *base, VipsImage *overlay, VipsImage **out, int x,
    int y, VipsInterpretation space) {
  return vips_composite2(base, overlay, out, VIPS_BLEND_MODE_OVER, "x", x, "y", y,
      "compositing_space", space, NULL);
}

static inline int pictor_vips_bandjoin2(VipsImage *first, VipsImage *second, VipsImage **out) {
  return vips_bandjoin2(first, second, out, NULL);
}

/// The first pixel of an area that a region holds; rows are `bpl` bytes apart.
static inline const unsigned char *pictor_vips_region_address(VipsRegion *region, int x, int y) {
  return VIPS_REGION_ADDR(region, x, y);
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

/// Returns the path of the libvips library (dladdr(3)); NULL if it cannot be determined.
static inline const char *pictor_vips_library_path(void) {
  struct pictor_vips_symbol found;
  return dladdr((const void *)vips_init, &found) != 0 ? found.file : NULL;
}
