// IconDirectory: lists the places of a Windows icon's images.

import Model

/// The directory of an icon, which is untrusted: its entries may share images or exceed the file.
struct IconDirectory {
  /// The places of the images within the file, in the order of the directory, each place once.
  ///
  /// Together they have at most `maximumReadings` times the bytes of the file, so the work on all
  /// images is bounded by the file's size. Entries after that are dropped.
  let images: [Range<Int>]

  /// How often the bytes of a file may belong to an image. Images of a sound icon do not overlap. A
  /// writer may state lengths up to the end of the file instead, which 32 images reach here.
  static let maximumReadings = 16

  /// Reads the directory. A truncated one ends where the file ends.
  ///
  /// - Throws: `ImageError.undecodable` if the file has no directory.
  init(of source: UnsafeRawBufferPointer) throws(ImageError) {
    let bytes = LittleEndianBytes(source)
    let stated = try bytes.number(at: 4, width: 2)
    var images: [Range<Int>] = []
    var known: Set<Range<Int>> = []
    var left = Self.maximumReadings * source.count
    for index in 0..<min(stated, (source.count - 6) / 16) {
      let entry = 6 + 16 * index
      let count = try bytes.number(at: entry + 8, width: 4)
      let start = try bytes.number(at: entry + 12, width: 4)
      guard start + count <= source.count, known.insert(start..<start + count).inserted else {
        continue
      }
      left -= count
      guard left >= 0 else { break }
      images.append(start..<start + count)
    }
    self.images = images
  }
}
