// JXLEncoder: encodes pixels with libjxl, without the thread that libvips has it start.

import CJXL
import CVips
import Model
import Platform
import Synchronization

/// How one JPEG XL is encoded; the bytes are libvips's (docs/decisions/044-webp-and-jxl-encoders.md).
struct JXLEncoder {
  /// 1–100, by libvips's scale.
  let quality: Int
  /// libjxl's, 1–9.
  let effort: Int
  /// The most threads. The result does not depend on their number.
  let threads: Int

  /// libjxl refuses more (jxl/encode.h). libvips asks for more below quality 5, and gets the default of 1.
  private static let largestDistance: Float = 25

  /// The distance from the source in units of what is just visible (jxl/encode.h), as libvips's jxlsave has it.
  private var distance: Float {
    let steps = Double(100 - quality)
    guard quality < 30 else { return Float(0.1 + steps * 0.09) }
    let coarser = (pow(2.5, Double(30 - quality) / 5) - 1) / 6.25
    return min(Float(6.4 + coarser), Self.largestDistance)
  }

  /// Whether this encoder is for an image: 8 bits, one frame, no metadata. libvips encodes all other images.
  func suits(_ image: borrowing Image) -> Bool {
    1...4 ~= image.bands && image.format == VIPS_FORMAT_UCHAR && !image.isAnimation
      && !image.hasMetadata
  }

  /// Encodes an image in sRGB or grey that this encoder is for; everything not yet computed is computed now.
  ///
  /// - Throws: The error of the image's own pipeline, or `ImageError.internal`. Without memory libjxl ends the process.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    let bands = image.bands
    return try image.withPixels { pixels, size throws(ImageError) in
      guard let encoder = JxlEncoderCreate(nil) else {
        throw .outOfMemory(detail: "encode: libjxl: no encoder")
      }
      defer { JxlEncoderDestroy(encoder) }
      var threads = threads
      return try withUnsafeMutablePointer(to: &threads) { threads throws(ImageError) in
        if threads.pointee > 1 { try check(JxlEncoderSetParallelRunner(encoder, runner, threads)) }
        try add(pixels, size, bands: bands, to: encoder)
        return try GLibBytes(copying: output(of: encoder, capacity: size.pixels))
      }
    }
  }

  /// Gives the encoder its settings and the pixels.
  private func add(
    _ pixels: UnsafePointer<UInt8>, _ size: PixelSize, bands: Int, to encoder: OpaquePointer
  ) throws(ImageError) {
    var info = JxlBasicInfo()
    JxlEncoderInitBasicInfo(&info)
    info.xsize = UInt32(size.width)
    info.ysize = UInt32(size.height)
    info.bits_per_sample = 8
    info.num_color_channels = bands < 3 ? 1 : 3
    if bands % 2 == 0 { (info.num_extra_channels, info.alpha_bits) = (1, 8) }
    // Colours may become libjxl's own, XYB.
    info.uses_original_profile = 0
    try check(JxlEncoderSetBasicInfo(encoder, &info))
    var colours = JxlColorEncoding()
    JxlColorEncodingSetToSRGB(&colours, bands < 3 ? 1 : 0)
    try check(JxlEncoderSetColorEncoding(encoder, &colours))
    guard let settings = JxlEncoderFrameSettingsCreate(encoder, nil) else {
      throw .outOfMemory(detail: "encode: libjxl: no settings")
    }
    try check(JxlEncoderSetFrameDistance(settings, distance))
    try check(
      JxlEncoderFrameSettingsSetOption(
        settings, JXL_ENC_FRAME_SETTING_EFFORT, Int64(effort)))
    var format = JxlPixelFormat(
      num_channels: UInt32(bands), data_type: JXL_TYPE_UINT8, endianness: JXL_NATIVE_ENDIAN,
      align: 0)
    try check(JxlEncoderAddImageFrame(settings, &format, pixels, size.pixels * bands))
    JxlEncoderCloseInput(encoder)
  }

  /// Encodes; returns the file.
  private func output(
    of encoder: OpaquePointer, capacity: Int
  ) throws(ImageError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(capacity / 4, 4096))
    var count = 0
    while true {
      let room = bytes.count - count
      var left = room
      let status = bytes.withUnsafeMutableBufferPointer { bytes in
        var next = bytes.baseAddress.map { $0 + count }
        return JxlEncoderProcessOutput(encoder, &next, &left)
      }
      count += room - left
      guard status == JXL_ENC_NEED_MORE_OUTPUT else {
        try check(status)
        return Array(bytes[..<count])
      }
      bytes += [UInt8](repeating: 0, count: bytes.count)
    }
  }

  private func check(_ status: JxlEncoderStatus) throws(ImageError) {
    guard status != JXL_ENC_SUCCESS else { return }
    throw .internal(detail: "encode: libjxl: status \(status.rawValue)")
  }
}

/// Runs the parts of a computation of libjxl (jxl/parallel_runner.h) on as many threads as the first argument points to.
private let runner: JxlParallelRunner = { threads, work, begin, body, start, end in
  guard let threads, let begin, let body, start < end else { return 0 }
  let count = min(threads.load(as: Int.self), Int(end - start))
  let status = begin(work, count)
  guard status == 0 else { return status }
  let next = Atomic(start)
  Parallel.run(count) { thread in
    while true {
      let part = next.wrappingAdd(1, ordering: .relaxed).oldValue
      guard part < end else { return }
      body(work, part, thread)
    }
  }
  return 0
}
