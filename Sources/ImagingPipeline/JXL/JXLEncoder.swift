// JXLEncoder: encodes pixels with libjxl, on the job's own threads.

import CJXL
import CVips
import Model
import Platform
import Synchronization

/// How one JPEG XL is encoded; the bytes are those of libvips's jxlsave at the same distance.
struct JXLEncoder {
  /// 1–100.
  let quality: Int
  /// libjxl's, 3–9.
  let effort: Int
  /// The most threads. The result does not depend on their number.
  let threads: Int

  /// libjxl 0.7 refuses more. libvips ignores the error below quality 5, and encodes at the default of 1.
  private static let largestDistance: Float = 25
  /// The fewest pixels of a thread: a group of libjxl, 256 pixels a side. At 300×200 a second thread saves a tenth of the
  /// time for a fifth more processor time.
  private static let pixelsOfThread = 65_536

  /// What a step of quality adds to the distance. libvips adds 0.09. With Pictor's sharper resize
  /// that makes 2 % more bytes than imgproxy.
  private static let distanceOfStep = 0.094

  /// The distance from the source in units of what is just visible (jxl/encode.h): linear from quality 100 to 30, and
  /// steeper below, as in libvips's jxlsave.
  private var distance: Float {
    let straight = 0.1 + Double(100 - max(quality, 30)) * Self.distanceOfStep
    let coarser = (pow(2.5, Double(max(30 - quality, 0)) / 5) - 1) / 6.25
    return min(Float(straight + coarser), Self.largestDistance)
  }

  /// Encodes an image in sRGB or grey; everything not yet computed is computed now. Writes no metadata, as libvips.
  ///
  /// - Throws: The error of the image's own pipeline, `ImageError.outOfMemory` or `.internal`. Without memory libjxl mostly
  ///   ends the process.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    if image.format != VIPS_FORMAT_UCHAR { return try encode(image.cast(to: VIPS_FORMAT_UCHAR)) }
    let bands = image.bands
    return try image.withPixels { pixels, size throws(ImageError) in
      guard let encoder = JxlEncoderCreate(nil) else {
        throw .outOfMemory(detail: "encode: libjxl: no encoder")
      }
      defer { JxlEncoderDestroy(encoder) }
      let threads = Parallel.count(size.pixels, atLeast: Self.pixelsOfThread, threads)
      if threads > 1 {
        // The runner's argument is a number in place of a pointer: libjxl hands it on and never reads through it.
        let status = JxlEncoderSetParallelRunner(
          encoder, jxlRunner, UnsafeMutableRawPointer(bitPattern: threads))
        try check(status, encoder, "runner")
      }
      try add(pixels, size, bands: bands, to: encoder)
      return try GLibBytes(copying: output(of: encoder, pixels: size.pixels))
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
    // Allows XYB, libjxl's own colour space.
    info.uses_original_profile = 0
    try check(JxlEncoderSetBasicInfo(encoder, &info), encoder, "size")
    var colours = JxlColorEncoding()
    JxlColorEncodingSetToSRGB(&colours, bands < 3 ? 1 : 0)
    try check(JxlEncoderSetColorEncoding(encoder, &colours), encoder, "colours")
    guard let settings = JxlEncoderFrameSettingsCreate(encoder, nil) else {
      throw .outOfMemory(detail: "encode: libjxl: no settings")
    }
    try check(JxlEncoderSetFrameDistance(settings, distance), encoder, "distance")
    try check(
      JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT, Int64(effort)),
      encoder, "effort")
    var format = JxlPixelFormat(
      num_channels: UInt32(bands), data_type: JXL_TYPE_UINT8, endianness: JXL_NATIVE_ENDIAN,
      align: 0)
    try check(
      JxlEncoderAddImageFrame(settings, &format, pixels, size.pixels * bands), encoder, "pixels")
    JxlEncoderCloseInput(encoder)
  }

  /// Encodes; returns the file. Most files have fewer bytes than a quarter of the pixels.
  private func output(
    of encoder: OpaquePointer, pixels: Int
  ) throws(ImageError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(pixels / 4, 4096))
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
        try check(status, encoder, "output")
        bytes.removeLast(bytes.count - count)
        return bytes
      }
      bytes += [UInt8](repeating: 0, count: bytes.count)
    }
  }

  private func check(
    _ status: JxlEncoderStatus, _ encoder: OpaquePointer, _ step: StaticString
  ) throws(ImageError) {
    guard status != JXL_ENC_SUCCESS else { return }
    let error = JxlEncoderGetError(encoder)
    let text = "encode: libjxl: \(step): error \(error.rawValue)"
    throw error == JXL_ENC_ERR_OOM ? .outOfMemory(detail: text) : .internal(detail: text)
  }
}

/// Runs the parts of a computation of libjxl (jxl/parallel_runner.h) on several threads; the first argument is their number.
let jxlRunner: JxlParallelRunner = { threads, work, begin, body, start, end in
  guard let begin, let body, start < end else { return 0 }
  let count = min(Int(bitPattern: threads), Int(end - start))
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
