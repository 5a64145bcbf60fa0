// Images that libvips's encoders do not write, by the libraries behind them (libvips-dev).
//
// Each function gives memory that is to be freed with free(3), NULL where the library refused.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// What the pixels of a JPEG are stored as.
enum pictor_jpeg_colors {
  pictor_jpeg_grey,
  pictor_jpeg_ycc,
  pictor_jpeg_rgb,
  /// With an Adobe marker, and inverted as Adobe has it.
  pictor_jpeg_cmyk,
  pictor_jpeg_ycck,
};

/// A JPEG.
///
/// `pixels`: 8 bits a band: 1 band for grey, 4 for CMYK and YCCK (0: no ink), else 3. `across`,
/// `down`: lightness samples for one of colour. `quality`: 1 to 100. `restart_interval`: 0: none.
uint8_t *pictor_write_jpeg(const uint8_t *pixels, int width, int height,
    enum pictor_jpeg_colors colors, int across, int down, int is_progressive, int is_arithmetic,
    int quality, int restart_interval, size_t *count);

/// A lossless JPEG XL in a container, of 8 or 16 bits (the host's order) a band.
///
/// `orientation`: the codestream's. `exif_orientation`: in an Exif box of the container, which does
/// not count; 0: none. `frames`: of an animation, each the negative of the one before; 1: a still.
uint8_t *pictor_write_jxl(const void *pixels, int width, int height, int bands, int bits,
    int orientation, int exif_orientation, int frames, size_t *count);

/// A HEIC or AVIF of three bands.
///
/// `bits`: 8, 10 or 12 of a band in the file; `pixels` have 8. `orientation`: in the container, as
/// `irot` and `imir`. `exif_orientation`: in Exif, which does not count; 0: none. `cover`: another
/// image of the same size and half of each band's value, in front of the primary one.
uint8_t *pictor_write_heif(const uint8_t *pixels, int width, int height, int is_avif,
    int bits, int orientation, int exif_orientation, int has_cover, size_t *count);

/// A gzip member (`window_bits` 31), a zlib stream (15) or a raw deflate stream (-15).
uint8_t *pictor_code_deflate(const uint8_t *bytes, size_t length, int window_bits, size_t *count);

/// A Brotli stream.
uint8_t *pictor_code_brotli(const uint8_t *bytes, size_t length, size_t *count);

/// A Zstandard frame with a checksum.
///
/// `window_log`: of the window that a decoder needs, at least 10; 0: the encoder's choice.
uint8_t *pictor_code_zstd(const uint8_t *bytes, size_t length, int window_log, size_t *count);

/// How a JPEG 2000 lies on its grid, and what its samples are.
struct pictor_jp2_form {
  int width, height, bands;
  /// The offset of the image, and that of the first tile.
  int x, y, tile_x, tile_y;
  /// The side of a tile; 0 for one tile.
  int tile;
  /// The step of the second and the third band.
  int sampling;
  int bits, is_signed;
  /// Whether it is a codestream without boxes, and whether each resolution is a part of its tile.
  int is_bare, in_parts;
};

/// Encodes a lossless JPEG 2000 from 8-bit pixels. NULL if refused. The caller frees the bytes.
uint8_t *pictor_write_jp2(
    const uint8_t *pixels, const struct pictor_jp2_form *form, size_t *count);

/// A coded AV1 image in limited range (no file) whose layers are grey images of one value, all of
/// the same size. Its first operating point has all of them, each further one a layer less.
uint8_t *pictor_write_av1_layers(
    const uint8_t *greys, int layers, int width, int height, size_t *count);
