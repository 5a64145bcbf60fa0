// UndecodedAnimation: counts the frames of animations of which Pictor shows one frame alone.

import CJXL
import Model
import Platform

/// APNGs, image sequences of AVIF and HEIC, and animated JPEG XLs. libvips shows one image of each, as readers do that do
/// not know the animation.
enum UndecodedAnimation {
  /// Returns the number of frames; 1 for a still and for other formats.
  static func frames(of source: UnsafeRawBufferPointer, as format: ImageFormat) -> Int {
    let count =
      switch format {
      case .png: framesOfPNG(source)
      case .avif, .heic:
        HEIFTrack.all(in: source).filter { $0.handler == "pict" }.map(\.samples).max() ?? 1
      case .jxl: framesOfJXL(source)
      default: 1
      }
    return min(max(count, 1), Int(Int32.max))
  }

  /// An `acTL` before the pixels makes a PNG an animation; each frame begins with an `fcTL` (PNG, third edition, 11.3.6).
  private static func framesOfPNG(_ file: UnsafeRawBufferPointer) -> Int {
    var chunks = PNGChunks(file)
    var stated: Int?
    while stated == nil, let chunk = try? chunks.next(), !chunk.isOf("IDAT") {
      if chunk.isOf("acTL") { stated = try? ByteReader(chunk.content).number(at: 0, width: 4) }
    }
    guard let stated else { return 1 }
    var count = 0
    while count < stated, let chunk = try? chunks.next() {
      if chunk.isOf("fcTL") { count += 1 }
    }
    return count
  }

  /// libjxl reads the headers of an animation's frames, and skips their pixels.
  private static func framesOfJXL(_ file: UnsafeRawBufferPointer) -> Int {
    guard let decoder = JxlDecoderCreate(nil) else { return 1 }
    defer { JxlDecoderDestroy(decoder) }
    let events = JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_FRAME.rawValue
    guard JxlDecoderSubscribeEvents(decoder, CInt(events)) == JXL_DEC_SUCCESS,
      JxlDecoderSetInput(
        decoder, file.baseAddress?.assumingMemoryBound(to: UInt8.self), file.count)
        == JXL_DEC_SUCCESS
    else { return 1 }
    JxlDecoderCloseInput(decoder)
    var count = 0
    while true {
      switch JxlDecoderProcessInput(decoder) {
      case JXL_DEC_BASIC_INFO:
        var information = JxlBasicInfo()
        guard JxlDecoderGetBasicInfo(decoder, &information) == JXL_DEC_SUCCESS,
          information.have_animation != 0
        else { return 1 }
      case JXL_DEC_FRAME: count += 1
      default: return count
      }
    }
  }
}
