// GIFCheck: checks that each frame of a GIF has all of its pixels, and that the file is complete.

import Model

/// Counts the pixels of a GIF's frames without drawing them.
///
/// libnsgif reports success after one complete frame, and fills missing pixels of later frames.
/// This check requires the exact pixel count of each frame. Complete frames need no trailer.
enum GIFCheck {
  private static let truncated = Soundness.damaged(.truncated, "a GIF that ends early")

  static func soundness(of bytes: UnsafeRawBufferPointer) -> Soundness {
    // The number of pixels that each code stands for.
    withUnsafeTemporaryAllocation(of: Int32.self, capacity: GIFCodes.maximumCount) { lengths in
      lengths.initialize(repeating: 0)
      do throws(ContainerFault) {
        return try soundness(of: bytes, lengths)
      } catch {
        return truncated
      }
    }
  }

  private static func soundness(
    of bytes: UnsafeRawBufferPointer, _ lengths: UnsafeMutableBufferPointer<Int32>
  ) throws(ContainerFault) -> Soundness {
    var blocks = try GIFBlocks(bytes)
    var frames = 0
    var isAnimation = false
    /// Whether a graphic control extension was read, and not yet its frame.
    var isBeforeFrame = false
    while let block = try blocks.next() {
      switch block {
      case .trailer: return frames > 0 ? .whole : .damaged(.error, "a GIF without a frame")
      case .terminator: continue
      case .extension(let label):
        if isLoop(bytes[label...]) { isAnimation = true }
        if bytes[label] == 0xf9 { isBeforeFrame = true }
      case .frame(let frame):
        let soundness = soundness(of: frame, in: bytes, lengths)
        guard soundness == .whole else { return soundness }
        frames += 1
        isBeforeFrame = false
      case .unknown(let kind): return .damaged(.error, "a GIF's block of kind \(kind)")
      }
    }
    // Writers that are stopped leave whole frames. One frame of an animation is a cut one.
    return frames > (isAnimation ? 1 : 0) && !isBeforeFrame ? .whole : truncated
  }

  /// Whether an extension says how often the animation is repeated. Other application extensions hold metadata such as
  /// XMP, which images of one frame have as well.
  private static func isLoop(_ extension: Slice<UnsafeRawBufferPointer>) -> Bool {
    ["NETSCAPE2.0", "ANIMEXTS1.0"].contains { `extension`.starts(with: [0xff, 11] + $0.utf8) }
  }

  private static func soundness(
    of frame: GIFFrame, in bytes: UnsafeRawBufferPointer,
    _ lengths: UnsafeMutableBufferPointer<Int32>
  ) -> Soundness {
    guard (1...8).contains(frame.bits) else {
      return .damaged(.error, "a GIF's codes of \(frame.bits) bits")
    }
    let pixels = frame.area.pixels
    var codes = GIFCodes(
      bytes: UnsafeRawBufferPointer(rebasing: bytes[frame.codes]), bits: frame.bits,
      lengths: lengths)
    guard let found = codes.countPixels(upTo: pixels) else {
      return .damaged(.warning, "a GIF has invalid codes")
    }
    guard found == pixels else {
      return .damaged(.warning, "a GIF's frame of \(found) pixels instead of \(pixels)")
    }
    return codes.isAtEnd
      ? .whole : .damaged(.warning, "a GIF's frame continues after its last pixel")
  }
}
