// SourceMending: rewrites sources that browsers show and a decoder library refuses or shows
// differently.

import Core

/// Rewrites a source before anything judges or decodes it, so that all steps see the same bytes.
enum SourceMending {
  /// Calls a closure with the bytes to use in place of a source, which are valid during the call.
  static func withMended<Result: ~Copyable>(
    _ source: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(ImageError) -> Result
  ) throws(ImageError) -> Result {
    guard let mended = mended(source) else { return try body(source) }
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: mended.count, alignment: 16)
    defer { copy.deallocate() }
    copy.copyBytes(from: mended)
    return try body(UnsafeRawBufferPointer(copy))
  }

  /// Returns the bytes to use in place of a source; `nil` for nearly all sources but image
  /// sequences.
  static func mended(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    // A compressed SVG, or one in UTF-16, has no sign.
    (FormatSigns.format(of: source) ?? .svg).codec.mended(source)
  }

  static func mendedPNG(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let lean = PNGText.removed(from: source) else { return withoutEarlyTransparency(source) }
    return lean.withUnsafeBytes { withoutEarlyTransparency($0) } ?? lean
  }

  /// Returns an RGB PNG without a `tRNS` that comes before its `PLTE`. libpng ignores such a chunk,
  /// but takes it for damage.
  private static func withoutEarlyTransparency(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    let isRGB = file.count > 25 && file[25] == 2
    guard isRGB else { return nil }
    var chunks = PNGChunks(file)
    var early: Range<Int>?
    var start = chunks.position
    while let chunk = try? chunks.next(), !chunk.isOf("IDAT") {
      if chunk.isOf("tRNS") { early = early ?? start..<chunks.position }
      if chunk.isOf("PLTE"), let early {
        return Array(file[..<early.lowerBound]) + file[early.upperBound...]
      }
      start = chunks.position
    }
    return nil
  }
}
