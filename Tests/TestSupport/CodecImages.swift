// CodecImages: images by the libraries behind libvips, for what its encoders do not write.

import CCodecs
import Glibc

extension TestImages {
  /// What the pixels of a JPEG are stored as; CMYK and YCCK with Adobe's marker.
  public enum JPEGColors: UInt32, CaseIterable, Sendable {
    case grey, ycc, rgb, cmyk, ycck
  }

  /// A JPEG.
  ///
  /// - Parameters:
  ///   - pixels: 1 band for grey, 4 for CMYK and YCCK (0 no ink), else 3.
  ///   - colors: How they are stored.
  ///   - sampling: Samples of lightness for one of colour, across and down: (2, 2) is 4:2:0.
  ///   - progressive: In several scans.
  ///   - arithmetic: Coded arithmetically.
  ///   - quality: 1 to 100.
  ///   - restartInterval: Groups of blocks between restart markers; 0 for none.
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

  /// A lossless JPEG XL in its container.
  ///
  /// - Parameters:
  ///   - pixels: 1 to 4 bands.
  ///   - orientation: What the codestream says; the pixels are stored as they are.
  ///   - exifOrientation: What an Exif box of the container says.
  ///   - sixteenBits: Whether values are stretched to 16 bits first.
  public static func jxl(
    _ pixels: Pixels, orientation: Int = 1, exifOrientation: Int? = nil, sixteenBits: Bool = false
  ) throws -> [UInt8] {
    let wide = pixels.values.map { UInt16($0) * 257 }
    return try taken { count in
      sixteenBits
        ? wide.withUnsafeBytes { write($0.baseAddress, 16, count) }
        : pixels.values.withUnsafeBytes { write($0.baseAddress, 8, count) }
    }
    func write(_ values: UnsafeRawPointer?, _ bits: CInt, _ count: UnsafeMutablePointer<Int>)
      -> UnsafeMutablePointer<UInt8>?
    {
      pictor_write_jxl(
        values, CInt(pixels.size.width), CInt(pixels.size.height), CInt(pixels.bands), bits,
        CInt(orientation), CInt(exifOrientation ?? 0), count)
    }
  }

  /// A HEIC or an AVIF.
  ///
  /// - Parameters:
  ///   - pixels: 3 bands.
  ///   - isAVIF: AV1 and not HEVC.
  ///   - bits: Of a band in the file: 8, 10 or 12.
  ///   - orientation: What the container says (`irot`, `imir`), in EXIF's numbers; the pixels are stored as they are.
  ///   - exifOrientation: What Exif says.
  ///   - hasCover: Whether a darker image, which is not the primary one, comes before.
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
