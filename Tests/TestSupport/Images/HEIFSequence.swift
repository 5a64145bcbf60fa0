// HEIFSequence: image sequences, as AVIF and HEIC have them, of the coded image of a still.

import Core

/// Adds a track (ISO/IEC 14496-12, 8.3) to a still whose only coded image is all of its `mdat`.
public struct HEIFSequence {
  /// What describes the first image for readers of stills.
  public enum Description: CaseIterable, Sendable {
    case whole, withoutPrimary, missing
  }

  /// The number of frames in the list of their sizes.
  public var frames = 5
  /// The number of frames that the list states; `nil` for that of `frames`.
  public var statedFrames: Int?
  /// Whether the frames are AV1 instead of HEVC.
  public var isAVIF = true
  /// What describes the first image.
  public var description = Description.whole

  /// Creates the description of an AVIF.
  public init(change: (inout HEIFSequence) -> Void = { _ in }) { change(&self) }

  /// Returns the sequence; all frames are the still's image.
  public func file(of still: [UInt8], size: PixelSize) throws -> [UInt8] {
    typealias Boxes = HEIFBoxes
    guard let place = still.indices.first(where: { still[$0...].starts(with: "mdat".utf8) }),
      let data = Boxes.first("mdat", in: still),
      let configuration = Boxes.first(isAVIF ? "av1C" : "hvcC", in: still)
    else { throw TestImages.Failure(text: "no coded image") }
    var file = still
    switch description {
    case .whole: break
    case .withoutPrimary: file.rename("pitm", to: "free")
    case .missing: file.rename("meta", to: "free")
    }
    // The major brand, and in place of those of stills those of sequences.
    file.replaceSubrange(8..<12, with: (isAVIF ? "avis" : "hevc").utf8)
    if description != .whole {
      let end = file[..<4].reduce(0) { $0 << 8 | Int($1) }
      for brand in stride(from: 16, to: end, by: 4) {
        file.replaceSubrange(brand..<brand + 4, with: (isAVIF ? "avis" : "hevc").utf8)
      }
    }
    let zeros = [UInt8](repeating: 0, count: 80)
    let colour = Boxes.first("colr", in: still) ?? []
    let entry = Boxes.box(
      isAVIF ? "av01" : "hvc1",
      content: zeros[..<7] + [1] + zeros[..<16] + Boxes.number(size.width, width: 2)
        + Boxes.number(size.height, width: 2) + zeros[..<50] + configuration + colour)
    let length = Boxes.number(data.count - 8, width: 4)
    let sizes = (0..<frames).flatMap { _ in length }
    let table =
      Boxes.box("stsd", content: zeros[..<4] + [0, 0, 0, 1] + entry)
      + Boxes.box(
        "stsz",
        content: zeros[..<8] + Boxes.number(statedFrames ?? frames, width: 4) + sizes)
      + Boxes.box(
        "stco", content: zeros[..<4] + [0, 0, 0, 1] + Boxes.number(place + 4, width: 4))
    let media =
      Boxes.box("hdlr", content: zeros[..<8] + Array("pict".utf8) + zeros[..<13])
      + Boxes.box("minf", content: Boxes.box("stbl", content: table))
    let track =
      Boxes.box("tkhd", content: zeros[..<12] + [0, 0, 0, 1] + zeros[..<68])
      + Boxes.box("mdia", content: media)
    return file + Boxes.box("moov", content: Boxes.box("trak", content: track))
  }
}

extension [UInt8] {
  /// Gives the first box of a type another one.
  public mutating func rename(_ type: String, to other: String) {
    guard let place = indices.first(where: { self[$0...].starts(with: type.utf8) }) else { return }
    replaceSubrange(place..<place + 4, with: other.utf8)
  }
}
