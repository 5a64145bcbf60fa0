// DeepImages: encodes test images with more than 8 bits and any colour profile.

import CVips
import Core

extension TestImages {
  /// The colour space of an image's values, as libvips names it.
  public enum Meaning: Sendable {
    case grey, sRGB, grey16, rgb16, linear, cmyk, lab

    fileprivate var interpretation: VipsInterpretation {
      switch self {
      case .grey: VIPS_INTERPRETATION_B_W
      case .sRGB: VIPS_INTERPRETATION_sRGB
      case .grey16: VIPS_INTERPRETATION_GREY16
      case .rgb16: VIPS_INTERPRETATION_RGB16
      case .linear: VIPS_INTERPRETATION_scRGB
      case .cmyk: VIPS_INTERPRETATION_CMYK
      case .lab: VIPS_INTERPRETATION_LAB
      }
    }
  }

  /// Encodes values unchanged.
  ///
  /// - Parameters:
  ///   - values: The rows from top to bottom, with interleaved bands: `UInt8`, `UInt16` or `Float`.
  ///   - width: The width in pixels, from which the height follows.
  ///   - bands: The bands per pixel.
  ///   - meaning: The colour space of the values.
  ///   - profile: The ICC profile to embed; empty for none.
  ///   - suffix: The libvips name of the encoder with its options, such as `.tif`.
  public static func encode<Value: BitwiseCopyable>(
    _ values: [Value], width: Int, bands: Int, as meaning: Meaning, profile: [UInt8] = [],
    suffix: String
  ) throws -> [UInt8] {
    let format =
      switch MemoryLayout<Value>.size {
      case 1: VIPS_FORMAT_UCHAR
      case 2: VIPS_FORMAT_USHORT
      default: VIPS_FORMAT_FLOAT
      }
    let size = PixelSize(width: width, height: values.count / bands / width)
    return try values.withUnsafeBytes { memory in
      try encode(
        memory, size: size, bands: bands, format: format, as: meaning.interpretation,
        suffix: suffix
      ) { image in
        guard !profile.isEmpty else { return }
        vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, profile, profile.count)
      }
    }
  }

  /// Encodes a 10-bit HEIC with colour code points in its container.
  ///
  /// - Parameters:
  ///   - values: 10 bits per band, RGB or RGBA.
  ///   - width: The width in pixels.
  ///   - bands: 3 or 4.
  ///   - primaries: `ColourPrimaries` of H.273.
  ///   - transfer: `TransferCharacteristics` of H.273.
  ///   - profile: Any valid ICC profile. The code points replace it in the file, because libvips
  ///     does not write any.
  public static func heic(
    _ values: [UInt16], width: Int, bands: Int = 3, primaries: UInt8, transfer: UInt8,
    insteadOf profile: [UInt8]
  ) throws -> [UInt8] {
    var bytes = try encode(
      values.map { $0 << 6 }, width: width, bands: bands, as: .rgb16, profile: profile,
      suffix: ".heic[bitdepth=10,Q=98,compression=hevc,effort=0]")
    guard let type = bytes.indices.first(where: { bytes[$0...].starts(with: "colr".utf8) }) else {
      throw Failure(text: "no colr box")
    }
    // ISO/IEC 23091-2 by way of 14496-12, 12.1.5: primaries, transfer, matrix (BT.601, as libheif
    // encodes), full range.
    bytes.replaceSubrange(
      type + 4..<type + 15, with: Array("nclx".utf8) + [0, primaries, 0, transfer, 0, 6, 0x80])
    return bytes
  }
}
