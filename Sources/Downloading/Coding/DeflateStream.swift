// DeflateStream: zlib's decoder, for the content codings gzip and deflate.

import CZlib
import Model

/// A deflate stream (RFC 1951): in gzip's frame (RFC 1952), in zlib's (RFC 1950), or in none.
///
/// The coding `deflate` is that with zlib's frame. Some origins send none (RFC 9110, section
/// 8.4.1.2), so the first two bytes decide. Only one gzip member is decoded.
struct DeflateStream: CodedStream, ~Copyable {
  private let stream: UnsafeMutablePointer<z_stream>
  /// The first two bytes while the frame is unknown; `nil` when zlib is ready.
  private var start: [UInt8]?

  /// The exponent of the largest window, and of zlib's flag for gzip's frame.
  private static let windowBits: CInt = 15
  private static let gzipFlag: CInt = 16

  init(hasGzipFrame: Bool) throws(ImageError) {
    // zlib keeps a pointer to it, so it has a place of its own.
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    if hasGzipFrame {
      let status = pictor_zlib_inflate_init(stream, Self.windowBits + Self.gzipFlag)
      guard status == Z_OK else {
        stream.deallocate()
        throw .internal(detail: "zlib: inflateInit2: \(status)")
      }
    }
    self.stream = stream
    start = hasGzipFrame ? nil : []
  }

  deinit {
    // No effect on a stream that has no state.
    _ = inflateEnd(stream)
    stream.deallocate()
  }

  mutating func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep? {
    guard var start else { return inflate(input, into: output) }
    let used = min(2 - start.count, input.count)
    start += input.prefix(used)
    self.start = start
    guard start.count == 2 else { return DecodingStep(used: used, written: 0, isAtEnd: false) }
    let bits = Self.isFrame(start) ? Self.windowBits : -Self.windowBits
    guard pictor_zlib_inflate_init(stream, bits) == Z_OK else { return nil }
    self.start = nil
    return start.withUnsafeBytes { bytes in
      // Two bytes decode to less than the output has room for, so zlib uses both.
      inflate(bytes, into: output).flatMap { step in
        step.used == 2
          ? DecodingStep(used: used, written: step.written, isAtEnd: step.isAtEnd) : nil
      }
    }
  }

  /// Whether two bytes are the head of a zlib stream without a preset dictionary (RFC 1950, section
  /// 2.2).
  private static func isFrame(_ start: [UInt8]) -> Bool {
    let (method, flags) = (start[0], start[1])
    return method & 0x0f == 8 && method >> 4 <= 7 && flags & 0x20 == 0
      && (Int(method) << 8 | Int(flags)) % 31 == 0
  }

  private func inflate(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep? {
    // zlib does not write to its input. A piece has far less than 4 GiB.
    let start = UnsafeMutableRawPointer(mutating: input.baseAddress)
    stream.pointee.next_in = start?.assumingMemoryBound(to: Bytef.self)
    stream.pointee.avail_in = uInt(input.count)
    stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: Bytef.self)
    stream.pointee.avail_out = uInt(output.count)
    let status = CZlib.inflate(stream, Z_NO_FLUSH)
    // Z_BUF_ERROR: neither input nor output was left to work with.
    guard status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR else { return nil }
    return DecodingStep(
      used: input.count - Int(stream.pointee.avail_in),
      written: output.count - Int(stream.pointee.avail_out), isAtEnd: status == Z_STREAM_END)
  }
}
