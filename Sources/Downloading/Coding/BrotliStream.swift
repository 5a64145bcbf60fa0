// BrotliStream: Brotli's decoder.

import CBrotli
import Model

/// A Brotli stream (RFC 7932). Its window is at most 16 MiB: the library refuses larger ones unless
/// told otherwise.
struct BrotliStream: CodedStream, ~Copyable {
  private let state: OpaquePointer

  init() throws(ImageError) {
    guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else {
      throw .internal(detail: "BrotliDecoderCreateInstance failed")
    }
    self.state = state
  }

  deinit { BrotliDecoderDestroyInstance(state) }

  mutating func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep? {
    var inputLeft = input.count
    var outputLeft = output.count
    var next = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
    var room = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let result = BrotliDecoderDecompressStream(
      state, &inputLeft, &next, &outputLeft, &room, nil)
    guard result != BROTLI_DECODER_RESULT_ERROR else { return nil }
    return DecodingStep(
      used: input.count - inputLeft, written: output.count - outputLeft,
      isAtEnd: result == BROTLI_DECODER_RESULT_SUCCESS)
  }
}
