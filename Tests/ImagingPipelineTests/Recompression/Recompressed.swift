// Recompressed: runs the recompression of the pipeline for tests.

import ImagingPipeline
import ImagingWire
import Model
import TestSupport

/// A recompressed variant with its bytes copied out.
struct Recompressed {
  let report: RenderReport
  let bytes: [UInt8]

  /// Recompresses a variant.
  init(_ variant: [UInt8], limits: ImagingLimits = ImagingLimits()) throws {
    TestImages.start()
    (report, bytes) = try GuardedBytes(variant).withBytes { bytes in
      let image = try Pipeline().recompress(bytes, limits: limits)
      return (image.report, image.withUnsafeBytes { Array($0) })
    }
  }
}
