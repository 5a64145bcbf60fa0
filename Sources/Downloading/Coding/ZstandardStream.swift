// ZstandardStream: Zstandard's decoder.

import CZstd
import Model

/// Zstandard frames, one after the other (RFC 8878).
struct ZstandardStream: CodedStream, ~Copyable {
  private let context: OpaquePointer

  /// The exponent of the largest window that the content coding allows: 8 MiB (RFC 9659).
  private static let windowBits: CInt = 23

  init() throws(ImageError) {
    guard let context = ZSTD_createDCtx() else {
      throw .internal(detail: "ZSTD_createDCtx failed")
    }
    let status = ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.windowBits)
    guard ZSTD_isError(status) == 0 else {
      ZSTD_freeDCtx(context)
      throw .internal(detail: "zstd window: \(String(cString: ZSTD_getErrorName(status)))")
    }
    self.context = context
  }

  deinit { ZSTD_freeDCtx(context) }

  mutating func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep? {
    var from = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var to = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    let status = ZSTD_decompressStream(context, &to, &from)
    guard ZSTD_isError(status) == 0 else { return nil }
    // 0: a frame is complete, and all of it is written. A next one may follow.
    return DecodingStep(used: from.pos, written: to.pos, isAtEnd: status == 0)
  }
}
