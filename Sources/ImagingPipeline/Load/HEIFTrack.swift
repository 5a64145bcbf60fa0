// HEIFTrack: reads the tracks of an image sequence (AVIF, HEIC): their frames, and where the first one is.

import Platform

/// A track of an image sequence (ISO/IEC 14496-12, 8.3). All of it is untrusted input.
struct HEIFTrack {
  let id: Int
  /// `pict` for images, `auxv` for what belongs to them, such as alpha.
  let handler: String
  /// The number of frames.
  let samples: Int
  /// The content of `trak`.
  private let boxes: ByteReader
  /// The content of `stbl`.
  private let table: ByteReader

  /// Returns the tracks of a file.
  static func all(in file: UnsafeRawBufferPointer) -> [HEIFTrack] {
    guard let movie = HEIFBox.first("moov", in: ByteReader(file)) else { return [] }
    return HEIFBox.all(in: movie).filter { $0.type == "trak" }.compactMap {
      HEIFTrack($0.content, fileLength: file.count)
    }
  }

  private init?(_ track: ByteReader, fileLength: Int) {
    guard let header = HEIFBox.first("tkhd", in: track),
      let media = HEIFBox.first("mdia", in: track),
      let handler = HEIFBox.first("hdlr", in: media),
      let information = HEIFBox.first("minf", in: media),
      let table = HEIFBox.first("stbl", in: information),
      let sizes = HEIFBox.first("stsz", in: table),
      let version = try? header.number(at: 0, width: 1),
      // Two times precede the number, of 4 or 8 bytes.
      let id = try? header.number(at: version == 1 ? 20 : 12, width: 4),
      let kind = try? handler.part(at: 8, count: 4),
      let size = try? sizes.number(at: 4, width: 4), let count = try? sizes.number(at: 8, width: 4)
    else { return nil }
    self.id = id
    self.handler = String(decoding: kind, as: UTF8.self)
    // Sizes follow unless all are the same; a frame has at least a byte.
    samples = min(count, size == 0 ? (sizes.bytes.count - 12) / 4 : fileLength)
    boxes = track
    self.table = table
  }

  /// Where the first frame is in the file: in front of all others of the first chunk (8.7.3 to 8.7.5).
  var first: (offset: Int, count: Int)? {
    guard samples > 0, let sizes = HEIFBox.first("stsz", in: table),
      let common = try? sizes.number(at: 4, width: 4),
      let count = common > 0 ? common : try? sizes.number(at: 12, width: 4)
    else { return nil }
    let offset =
      HEIFBox.first("stco", in: table).flatMap { try? $0.number(at: 8, width: 4) }
      ?? HEIFBox.first("co64", in: table).flatMap { try? $0.number(at: 8, width: 8) }
    return offset.map { ($0, count) }
  }

  /// The codec and the properties of the frames: the boxes of the first sample entry (12.1.3).
  var entry: (codec: String, properties: [HEIFBox])? {
    guard var description = HEIFBox.first("stsd", in: table), description.skip(8),
      let entry = HEIFBox.all(in: description).first
    else { return nil }
    var content = entry.content
    // What all sample entries have, and what those of images have.
    guard content.skip(78), let rest = try? content.reader(of: content.left) else { return nil }
    return (entry.type, HEIFBox.all(in: rest))
  }

  /// The size of the frames.
  var size: (width: Int, height: Int)? {
    guard let description = HEIFBox.first("stsd", in: table),
      let width = try? description.number(at: 8 + 8 + 24, width: 2),
      let height = try? description.number(at: 8 + 8 + 26, width: 2)
    else { return nil }
    return (width, height)
  }

  /// Returns the numbers of the tracks that this one refers to (8.3.3).
  func references(_ type: String) -> [Int] {
    guard let list = HEIFBox.first("tref", in: boxes), var ids = HEIFBox.first(type, in: list)
    else {
      return []
    }
    return (0..<min(ids.left / 4, 64)).compactMap { _ in try? ids.number(4) }
  }
}
