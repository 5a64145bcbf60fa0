// CodecImages: encodes test images with codec libraries, in variants that libvips cannot write.

import CCodecs
import Core
import Glibc

extension TestImages {
  /// The stored colour space of a JPEG; CMYK and YCCK have Adobe's marker.
  public enum JPEGColors: UInt32, CaseIterable, Sendable {
    case grey, ycc, rgb, cmyk, ycck
  }

  /// Encodes a JPEG.
  ///
  /// - Parameters:
  ///   - pixels: 1 band for grey, 4 for CMYK and YCCK (0 is no ink), otherwise 3.
  ///   - colors: The stored colour space.
  ///   - sampling: The lightness samples per colour sample, across and down: (2, 2) is 4:2:0.
  ///   - progressive: Whether the JPEG is progressive.
  ///   - arithmetic: Whether the JPEG uses arithmetic coding.
  ///   - quality: 1 to 100.
  ///   - restartInterval: The units between restart markers; 0 for none.
  public static func jpeg(
    _ pixels: Pixels, as colors: JPEGColors, sampling: (across: Int, down: Int) = (1, 1),
    progressive: Bool = false, arithmetic: Bool = false, quality: Int = 100,
    restartInterval: Int = 0
  ) throws -> [UInt8] {
    try taken { count in
      pictor_write_jpeg(
        pixels.values, CInt(pixels.size.width), CInt(pixels.size.height),
        pictor_jpeg_colors(colors.rawValue), CInt(sampling.across), CInt(sampling.down),
        progressive ? 1 : 0, arithmetic ? 1 : 0, CInt(quality), CInt(restartInterval), count)
    }
  }

  /// Encodes a lossless JPEG XL in a container.
  ///
  /// - Parameters:
  ///   - pixels: 1 to 4 bands.
  ///   - orientation: The orientation in the codestream; the pixels are stored unchanged.
  ///   - exifOrientation: The orientation in an Exif box of the container.
  ///   - sixteenBits: Whether values are stretched to 16 bits first.
  ///   - frames: The frames of an animation, each the negative of the one before.
  public static func jxl(
    _ pixels: Pixels, orientation: Int = 1, exifOrientation: Int? = nil, sixteenBits: Bool = false,
    frames: Int = 1
  ) throws -> [UInt8] {
    let wide = pixels.values.map { UInt16($0) * 257 }
    return try taken { count in
      sixteenBits
        ? wide.withUnsafeBytes { write($0.baseAddress, bits: 16, count: count) }
        : pixels.values.withUnsafeBytes { write($0.baseAddress, bits: 8, count: count) }
    }
    func write(_ values: UnsafeRawPointer?, bits: CInt, count: UnsafeMutablePointer<Int>)
      -> UnsafeMutablePointer<UInt8>?
    {
      pictor_write_jxl(
        values, CInt(pixels.size.width), CInt(pixels.size.height), CInt(pixels.bands), bits,
        CInt(orientation), CInt(exifOrientation ?? 0), CInt(frames), count)
    }
  }

  /// Encodes a HEIC or an AVIF.
  ///
  /// - Parameters:
  ///   - pixels: 3 bands.
  ///   - isAVIF: Whether the codec is AV1 instead of HEVC.
  ///   - bits: The bits per band in the file: 8, 10 or 12.
  ///   - orientation: The orientation in the container (`irot`, `imir`), as an EXIF value; the
  ///     pixels are stored unchanged.
  ///   - exifOrientation: The orientation in Exif.
  ///   - hasCover: Whether a darker, non-primary image comes first.
  public static func heif(
    _ pixels: Pixels, isAVIF: Bool, bits: Int = 8, orientation: Int = 1,
    exifOrientation: Int? = nil, hasCover: Bool = false
  ) throws -> [UInt8] {
    try taken { count in
      pictor_write_heif(
        pixels.values, CInt(pixels.size.width), CInt(pixels.size.height), isAVIF ? 1 : 0,
        CInt(bits), CInt(orientation), CInt(exifOrientation ?? 0), hasCover ? 1 : 0, count)
    }
  }

  /// How a JPEG 2000 lies on its grid, and what its samples are.
  public struct JPEG2000Form {
    /// The offset of the image.
    public var offset = (x: 0, y: 0)
    /// The offset of the first tile.
    public var tileOffset = (x: 0, y: 0)
    /// The side of a tile; 0 for one tile.
    public var tile = 0
    /// The step of the second and the third band.
    public var sampling = 1
    /// The bits of a sample.
    public var bits = 8
    /// Whether samples have a sign.
    public var isSigned = false
    /// Whether it is a codestream without boxes.
    public var isBare = false
    /// Whether each resolution is a part of its tile.
    public var isInParts = false

    /// Creates the usual form.
    public init() {}
  }

  /// Encodes a lossless JPEG 2000.
  ///
  /// - Parameter pixels: 1 to 5 bands; the last of 2 and 4 is alpha.
  public static func jp2(_ pixels: Pixels, _ form: JPEG2000Form = JPEG2000Form()) throws -> [UInt8]
  {
    var stated = pictor_jp2_form(
      width: CInt(pixels.size.width), height: CInt(pixels.size.height), bands: CInt(pixels.bands),
      x: CInt(form.offset.x), y: CInt(form.offset.y), tile_x: CInt(form.tileOffset.x),
      tile_y: CInt(form.tileOffset.y), tile: CInt(form.tile), sampling: CInt(form.sampling),
      bits: CInt(form.bits), is_signed: form.isSigned ? 1 : 0, is_bare: form.isBare ? 1 : 0,
      in_parts: form.isInParts ? 1 : 0)
    return try taken { pictor_write_jp2(pixels.values, &stated, $0) }
  }

  /// Encodes an AV1 image in limited range, without a container. Each layer is a grey of one value.
  /// Its first operating point has all layers, each further one a layer less.
  public static func layeredAV1(_ greys: [UInt8], size: PixelSize) throws -> [UInt8] {
    try taken {
      pictor_write_av1_layers(
        greys, CInt(greys.count), CInt(size.width), CInt(size.height), $0)
    }
  }

  private static func taken(
    _ write: (UnsafeMutablePointer<Int>) -> UnsafeMutablePointer<UInt8>?
  ) throws -> [UInt8] {
    var count = 0
    guard let bytes = write(&count) else { throw Failure(text: "not written") }
    defer { free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: count))
  }
}
