// JPEGMarkers+Frames: the sizes that a JPEG's frames state.

import Core

extension JPEGMarkers {
  /// Returns the number of pixels of the largest frame that a file states; 0 if it states none.
  ///
  /// The check for damage keeps a number for each block of a progressive file. A test that calls it
  /// alone asks here, since a damaged header may state any size; the pipeline checks sizes.
  public static func maximumFramePixels(in bytes: UnsafeRawBufferPointer) -> Int {
    var markers = JPEGMarkers(bytes)
    var maximum = 0
    while let marker = try? markers.find() {
      guard (0xc0...0xc2).contains(marker) else { continue }
      var ahead = markers
      guard let frame = try? ahead.segment(), frame.count >= 5 else { continue }
      let height = Int(frame[1]) << 8 | Int(frame[2])
      let width = Int(frame[3]) << 8 | Int(frame[4])
      maximum = max(maximum, width * height)
    }
    return maximum
  }
}
