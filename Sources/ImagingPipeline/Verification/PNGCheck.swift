// PNGCheck: checks that a PNG's chunks are complete and their checksums correct.

import CDeflate
import Model

enum PNGCheck {
  /// Checks the checksum of each chunk that affects pixels, and that the last chunk is IEND.
  ///
  /// libpng checks that the compressed pixel stream is complete. A wrong checksum of any other
  /// chunk is harmless.
  static func soundness(of bytes: UnsafeRawBufferPointer) -> Soundness {
    var chunks = PNGChunks(bytes)
    var hasPixels = false
    while true {
      let chunk: PNGChunk
      do throws(PNGChunks.End) {
        chunk = try chunks.next()
      } catch .truncated {
        return .damaged(.truncated, "a PNG that ends early")
      } catch {
        return .damaged(.error, "a PNG's chunk without a name")
      }
      if chunk.isCritical || chunk.isOf("tRNS") {
        let checksum = libdeflate_crc32(0, chunk.checked.baseAddress, chunk.checked.count)
        guard checksum == chunk.checksum else {
          return .damaged(.error, "the checksum of a PNG's chunk")
        }
      }
      if chunk.isOf("IDAT") { hasPixels = true }
      if chunk.isOf("IEND") {
        return hasPixels ? .whole : .damaged(.error, "a PNG without pixels")
      }
    }
  }
}
