// ContentDecoder: decodes a coded body of any coding piece by piece.

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
protocol CodedStream: ~Copyable {
  /// Decodes as much of `input` as there is room for in `output`. The input may be empty: then bytes
  /// that did not fit before are written.
  ///
  /// - Returns: `nil` if the stream is damaged.
  mutating func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep?
}

/// The decoder of one body.
protocol ContentDecoding: AnyObject {
  /// Whether the coded bytes are complete.
  var isAtEnd: Bool { get }

  /// Decodes all of `bytes`.
  ///
  /// - Parameter sink: receives the decoded bytes, at most 64 KiB at a time. Decoding stops when it
  ///   returns `false`.
  /// - Returns: `false` if the coded bytes are damaged, or continue after their end.
  func decode(_ bytes: UnsafeRawBufferPointer, to sink: (UnsafeRawBufferPointer) -> Bool) -> Bool
}

/// Passes pieces through a coded stream, with one buffer for all of them.
final class ContentDecoder<Stream: CodedStream & ~Copyable>: ContentDecoding {
  private var stream: Stream
  private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private(set) var isAtEnd = false

  init(_ stream: consuming Stream) { self.stream = stream }

  deinit { output.deallocate() }

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
