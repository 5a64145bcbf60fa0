// AVIFEncoder: encodes pixels with libaom, in about two thirds of libheif's time, into an AVIF.

import CAom
import Core

/// How one AVIF is encoded (docs/decisions/013-own-pixels.md).
struct AVIFEncoder {
  /// 1–100, by libheif's scale.
  let quality: Int
  /// The most threads. The result does not depend on their number.
  let threads: Int

  /// The effort of these settings, by libvips's scale.
  private static let effort = 1
  /// From this quality on, libvips's heifsave does not subsample chroma (`subsample_mode`).
  private static let fullChromaQuality = 90
  /// The highest cq-level, the lowest quality (aom/aomcx.h).
  private static let lowestLevel = 63

  /// The cq-level, 0–63: libheif's, and one more, since these settings give more bytes and likeness
  /// at the same level.
  private var level: Int {
    min(((100 - quality) * Self.lowestLevel + 50) / 100 + 1, Self.lowestLevel)
  }

  /// libaom's settings, by their names in aom/aomcx.h.
  private var settings: [(aome_enc_control_id, Int32)] {
    [
      (AOME_SET_CPUUSED, 8),
      (AOME_SET_CQ_LEVEL, Int32(level)),
      (AOME_SET_TUNING, Int32(AOM_TUNE_SSIM.rawValue)), (AV1E_SET_ROW_MT, 1),
      // Trellis quantization for what is written, and none in the search for it.
      (AV1E_SET_DISABLE_TRELLIS_QUANT, 2),
      // What codes cost is found once an image. With this the result does not depend on the number
      // of threads.
      (AV1E_SET_COEFF_COST_UPD_FREQ, 3), (AV1E_SET_MODE_COST_UPD_FREQ, 3),
      (AV1E_SET_DV_COST_UPD_FREQ, 3),
      // sRGB, in YCbCr of BT.601 (ITU-T H.273), of the full range.
      (AV1E_SET_COLOR_PRIMARIES, 1), (AV1E_SET_TRANSFER_CHARACTERISTICS, 13),
      (AV1E_SET_MATRIX_COEFFICIENTS, Int32(AVIFContainer.matrix)), (AV1E_SET_COLOR_RANGE, 1),
    ]
  }

  /// Whether this encoder can encode an image: effort 1, a quality below 90, three bands of 8 bits,
  /// no metadata. libvips encodes all others.
  func suits(_ image: borrowing Image, effort: Int) -> Bool {
    effort == Self.effort && quality < Self.fullChromaQuality && image.bands == 3 && image.isPlain
  }

  /// Encodes an image in sRGB for which `suits` is true; everything not yet computed is computed
  /// now.
  ///
  /// - Throws: The error of the image's own pipeline, `ImageError.outOfMemory` or `.internal`.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    try image.withPixels { pixels, size throws(ImageError) in try encode(pixels, size) }
  }

  private func encode(
    _ pixels: UnsafePointer<UInt8>, _ size: PixelSize
  ) throws(ImageError) -> GLibBytes {
    guard
      let image = aom_img_alloc(
        nil, AOM_IMG_FMT_I420, CUnsignedInt(size.width), CUnsignedInt(size.height), 16)
    else { throw .outOfMemory(detail: "encode: planes of \(size)") }
    defer { aom_img_free(image) }
    guard let luma = image.pointee.planes.0, let cb = image.pointee.planes.1,
      let cr = image.pointee.planes.2
    else { throw .outOfMemory(detail: "encode: planes of \(size)") }
    image.pointee.range = AOM_CR_FULL_RANGE
    let strides = image.pointee.stride
    ChromaSubsampling.fullRange.convert(
      pixels, size,
      to: ChromaSubsampling.Planes(
        luma: .init(luma, stride: strides.0), cb: .init(cb, stride: strides.1),
        cr: .init(cr, stride: strides.2)))
    var threads = threads
    while true {
      do throws(ImageError) {
        let coded = try frame(of: image, size, threads: threads)
        guard let file = AVIFContainer.file(of: coded, size) else {
          throw .internal(detail: "encode: libaom made \(coded.count) bytes without a header")
        }
        return try GLibBytes(copying: file)
      } catch {
        // A second try on one thread: perhaps libaom can start no others, or has no memory for
        // them.
        guard threads > 1 else { throw error }
        threads = 1
      }
    }
  }

  /// Returns the coded image.
  private func frame(
    of image: UnsafePointer<aom_image_t>, _ size: PixelSize, threads: Int
  ) throws(ImageError) -> [UInt8] {
    var configuration = aom_codec_enc_cfg_t()
    var encoder = aom_codec_ctx_t()
    try check(
      aom_codec_enc_config_default(
        aom_codec_av1_cx(), &configuration, CUnsignedInt(AOM_USAGE_ALL_INTRA)), &encoder)
    configuration.g_w = CUnsignedInt(size.width)
    configuration.g_h = CUnsignedInt(size.height)
    configuration.g_threads = CUnsignedInt(threads)
    // A still picture.
    configuration.g_limit = 1
    configuration.rc_end_usage = AOM_Q
    configuration.rc_min_quantizer = 0
    configuration.rc_max_quantizer = CUnsignedInt(Self.lowestLevel)
    try check(pictor_aom_init(&encoder, &configuration), &encoder)
    defer { aom_codec_destroy(&encoder) }
    for (setting, value) in settings {
      try check(pictor_aom_set(&encoder, CInt(setting.rawValue), value), &encoder)
    }
    try check(aom_codec_encode(&encoder, image, 0, 1, 0), &encoder)
    let first = output(of: &encoder)
    // The end of the sequence: libaom gives what it has kept back.
    try check(aom_codec_encode(&encoder, nil, 0, 1, 0), &encoder)
    return first + output(of: &encoder)
  }

  /// Returns what the encoder has ready; packets are valid until its next call.
  private func output(of encoder: inout aom_codec_ctx_t) -> [UInt8] {
    var bytes: [UInt8] = []
    var place: aom_codec_iter_t?
    while let packet = aom_codec_get_cx_data(&encoder, &place) {
      var count = 0
      guard let frame = pictor_aom_frame(packet, &count) else { continue }
      bytes += UnsafeRawBufferPointer(start: frame, count: count)
    }
    return bytes
  }

  private func check(
    _ result: aom_codec_err_t, _ encoder: inout aom_codec_ctx_t
  ) throws(ImageError) {
    guard result != AOM_CODEC_OK else { return }
    let detail = aom_codec_error_detail(&encoder) ?? aom_codec_err_to_string(result)
    let text = "encode: libaom: \(detail.map { String(cString: $0) } ?? "")"
    let isOfMemory = result == AOM_CODEC_MEM_ERROR || Blame.isOfMemory(text)
    throw isOfMemory ? .outOfMemory(detail: text) : .internal(detail: text)
  }
}

/// The file around one still picture of three planes, 8 bits, 4:2:0, in sRGB (AV1 Image File Format
/// 1.1; ISO/IEC 23008-12).
enum AVIFContainer {
  /// MatrixCoefficients of the planes (ITU-T H.273): BT.601.
  static let matrix: UInt8 = 6

  /// Returns the file.
  ///
  /// - Parameter frame: The OBUs of the image, as libaom writes them (AV1 specification, 5.3).
  /// - Returns: `nil` unless they begin with a sequence header of a still picture.
  static func file(of frame: [UInt8], _ size: PixelSize) -> [UInt8]? {
    var frame = frame[...]
    // A temporal delimiter, which a file leaves out (AV1 Codec ISO Media File Format Binding, 2.4).
    if frame.starts(with: [0x12, 0]) { frame = frame.dropFirst(2) }
    guard let configuration = configuration(of: frame) else { return nil }
    let properties: [[UInt8]] = [
      .box("ispe", .number(0, 4), .number(size.width, 4), .number(size.height, 4)),
      .box("pixi", .number(0, 4), [3, 8, 8, 8]),
      .box("av1C", configuration),
      // sRGB: primaries of BT.709, the transfer of IEC 61966-2-1, full range.
      .box("colr", Array("nclx".utf8), .number(1, 2), .number(13, 2), [0, matrix, 0x80]),
    ]
    func meta(at start: Int) -> [UInt8] {
      StillItem(type: "av01", place: (start, frame.count), properties: properties)
        .description(alpha: nil, isPremultiplied: false, width: 4)
    }
    // The length of `meta` does not depend on where the coded image is.
    let head: [UInt8] = .box("ftyp", Array("avif".utf8), .number(0, 4), Array("avifmif1miaf".utf8))
    return head + meta(at: head.count + meta(at: 0).count + 8)
      + [UInt8].box("mdat", Array(frame))
  }

  /// Returns the content of `av1C` (AV1 Codec ISO Media File Format Binding, 2.3): what the
  /// sequence header says.
  private static func configuration(of frame: ArraySlice<UInt8>) -> [UInt8]? {
    let bytes = Array(frame.prefix(4))
    // The header of a sequence header of fewer than 128 bytes (AV1 specification, 5.3.2), and the
    // flags of a still picture with a short header (5.5.1).
    guard bytes.count == 4, bytes[0] == 0x0a, bytes[1] < 0x80, bytes[2] & 0x18 == 0x18 else {
      return nil
    }
    let profile = bytes[2] >> 5
    let level = (bytes[2] & 7) << 2 | bytes[3] >> 6
    // 8 bits, of three planes, whose colours are subsampled in both directions.
    return [0x81, profile << 5 | level, 0x0c, 0]
  }
}
