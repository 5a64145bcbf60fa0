// ContentCoding: decodes bodies with a content coding, although requests ask for `identity`.

import CBrotli
import CZlib
import CZstd
import Core
import Glibc

/// A content coding that is decoded. Only a single coding is accepted; several indicate something
/// other than an image.
enum ContentCoding: String, Sendable {
  case gzip, deflate, br, zstd

  /// Parses a name in lower case; `nil` for an unknown one.
  init?(name: String) {
    // RFC 9110, section 8.4.1.3.
    self.init(rawValue: name == "x-gzip" ? "gzip" : name)
  }

  /// Creates a decoder for one body.
  ///
  /// - Throws: `internal` without memory.
  func makeDecoder() throws(ImageError) -> ContentDecoder {
    switch self {
    case .gzip: ContentDecoder(try DeflateStream(hasGzipFrame: true))
    case .deflate: ContentDecoder(try DeflateStream(hasGzipFrame: false))
    case .br: ContentDecoder(try BrotliStream())
    case .zstd: ContentDecoder(try ZstandardStream())
    }
  }
}

/// Decodes a body while it is received. Keeps the coded bytes if the origin sent digests, which
/// cover them (RFC 9530, section 2; RFC 9110, section 8.1).
final class CodedBody {
  private let coding: ContentCoding
  private let decoder: ContentDecoder
  private let limit: Int
  private var file: MemoryFile?
  /// What the coded bytes count against. They are returned after the verification, before those of
  /// the decoded body.
  private let lease: ByteLease?
  private var received = 0
  private var decoded = 0
  /// The processor time that decoding took, in nanoseconds.
  private var nanoseconds = 0

  /// The processor time that decoding may take, in nanoseconds: 25 ms, and 50 ns a byte. Decoders
  /// need 1 to 5 ns.
  ///
  /// All transfers share a thread. Brotli's block types make streams possible that cost 100 times
  /// as much.
  private var allowance: Int { 25_000_000 + 50 * (received + decoded) }

  /// Creates an empty body.
  ///
  /// - Parameters:
  ///   - limit: maximum of the coded bytes.
  ///   - lease: what kept bytes count against; `nil` to keep none.
  init(_ coding: ContentCoding, limit: Int, keepingOn lease: ByteLease?) throws(ImageError) {
    self.coding = coding
    self.limit = limit
    self.lease = lease
    decoder = try coding.makeDecoder()
  }

  /// Receives a piece, and passes what it decodes to to `sink` until that refuses.
  func receive(
    _ bytes: UnsafeRawBufferPointer, to sink: (UnsafeRawBufferPointer) -> IncomingBody.Answer
  ) -> IncomingBody.Answer {
    received += bytes.count
    // A coded body may be without end although it decodes to nothing.
    guard received <= limit else { return .refused(.sourceTooLarge(limit: limit)) }
    if let error = keep(bytes) { return .refused(error) }
    var answer = IncomingBody.Answer.taken
    let start = Self.processorTime()
    var isSound = true
    // In small pieces, so that the time is looked at before much of it is gone.
    var rest = bytes
    while !rest.isEmpty, isSound, case .taken = answer {
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 10))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(1 << 10))
      isSound = decoder.decode(piece) { output in
        decoded += output.count
        answer = sink(output)
        if case .taken = answer { return true }
        return false
      }
      guard nanoseconds + Self.processorTime() - start <= allowance else {
        return .refused(.tooCostly(reason: "\(coding): decoding takes too long"))
      }
    }
    nanoseconds += Self.processorTime() - start
    return isSound ? answer : .refused(.sourceIncomplete(detail: "\(coding): invalid data"))
  }

  /// The processor time of the calling thread, in nanoseconds. Other threads do not add to it,
  /// however busy they are.
  private static func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  private func keep(_ bytes: UnsafeRawBufferPointer) -> ImageError? {
    guard let lease else { return nil }
    guard lease.grow(by: bytes.count) else {
      return .overloaded(queue: "download memory", retryAfter: 1)
    }
    do throws(SystemError) {
      if file == nil { file = try MemoryFile(name: "pictor-coded") }
      try file?.append(bytes)
      return nil
    } catch {
      return .internal(detail: "memory file: \(error)")
    }
  }

  /// Ends the body.
  ///
  /// - Returns: the coded bytes, if they were kept.
  /// - Throws: `sourceIncomplete` if the end of the coded bytes is missing.
  func sealed() throws(ImageError) -> FileRegion? {
    guard received == 0 || decoder.isAtEnd else {
      throw .sourceIncomplete(detail: "\(coding): the end is missing")
    }
    guard let file = file.take() else { return nil }
    do throws(SystemError) {
      return try file.sealed(lease: lease)
    } catch {
      throw .internal(detail: "memory file: \(error)")
    }
  }
}

/// What one call of a library decoded.
struct DecodingStep {
  /// Bytes of the input that were used.
  let used: Int
  /// Bytes of the output that were written.
  let written: Int
  /// Whether the stream is complete. Of a stream that may continue: whether it may end here.
  let isAtEnd: Bool
}

/// A library's decoder of one coded stream. Owns its C state.
protocol CodedStream: AnyObject {
  /// Decodes as much of `input` as there is room for in `output`. The input may be empty: then
  /// bytes that did not fit before are written.
  ///
  /// - Returns: `nil` if the stream is damaged.
  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep?
}

/// The decoder of one body: passes pieces through a coded stream, with one buffer for all of them.
final class ContentDecoder {
  private let stream: any CodedStream
  private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Whether the coded bytes are complete.
  private(set) var isAtEnd = false

  init(_ stream: any CodedStream) { self.stream = stream }

  deinit { output.deallocate() }

  /// Decodes all of `bytes`.
  ///
  /// - Parameter sink: receives the decoded bytes, at most 64 KiB at a time. Decoding stops when it
  ///   returns `false`.
  /// - Returns: `false` if the coded bytes are damaged, or continue after their end.
  func decode(_ bytes: UnsafeRawBufferPointer, to sink: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    var rest = bytes
    while true {
      guard let step = stream.decode(rest, into: output) else { return false }
      // A complete stream uses nothing of what follows it.
      guard rest.isEmpty || step.used + step.written > 0 else { return false }
      isAtEnd = step.isAtEnd
      rest = UnsafeRawBufferPointer(rebasing: rest[step.used...])
      if step.written > 0, !sink(UnsafeRawBufferPointer(rebasing: output[..<step.written])) {
        return true
      }
      // A decoder with room left has written all that it could.
      if rest.isEmpty, isAtEnd || step.written < output.count { return true }
    }
  }
}

/// A deflate stream (RFC 1951): in gzip's frame (RFC 1952), in zlib's (RFC 1950), or in none.
///
/// The coding `deflate` is that with zlib's frame. Some origins send none (RFC 9110, section
/// 8.4.1.2), so the first two bytes decide. Only one gzip member is decoded.
final class DeflateStream: CodedStream {
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

  func decode(
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

/// A Brotli stream (RFC 7932). Its window is at most 16 MiB: the library refuses larger ones unless
/// told otherwise.
final class BrotliStream: CodedStream {
  private let state: OpaquePointer

  init() throws(ImageError) {
    guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else {
      throw .internal(detail: "BrotliDecoderCreateInstance failed")
    }
    self.state = state
  }

  deinit { BrotliDecoderDestroyInstance(state) }

  func decode(
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

/// Zstandard frames, one after the other (RFC 8878).
final class ZstandardStream: CodedStream {
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

  func decode(
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
