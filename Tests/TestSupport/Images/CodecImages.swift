// CodecImages: encodes test images with codec libraries, in variants that libvips cannot write.

import CCodecs
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
  public static func jxl(
    _ pixels: Pixels, orientation: Int = 1, exifOrientation: Int? = nil, sixteenBits: Bool = false
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
        CInt(orientation), CInt(exifOrientation ?? 0), count)
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

  private static func taken(
    _ write: (UnsafeMutablePointer<Int>) -> UnsafeMutablePointer<UInt8>?
  ) throws -> [UInt8] {
    var count = 0
    guard let bytes = write(&count) else { throw Failure(text: "not written") }
    defer { free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: count))
  }
}
