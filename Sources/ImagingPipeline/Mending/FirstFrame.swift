// FirstFrame: describes the first frame of an image sequence as a still.

import Model
import Platform

/// The first frame of a track, as an item (ISO/IEC 23008-12).
struct FirstFrame {
  private let type: String
  private let place: (offset: Int, count: Int)
  /// The boxes of its properties, with what changes the image at the end.
  private let properties: [[UInt8]]

  /// The properties of a track that an item has as well.
  private static let known = [
    "av1C", "hvcC", "colr", "pixi", "clli", "mdcv", "clap", "irot", "imir",
  ]
  private static let essential = Set(["av1C", "hvcC", "clap", "irot", "imir"])

  /// - Returns: `nil` for other codecs, and for a frame that is not in the file.
  init?(of track: HEIFTrack, in file: UnsafeRawBufferPointer) {
    guard let entry = track.entry, let size = track.size, let place = track.first,
      (try? ByteReader(file).part(at: place.offset, count: place.count)) != nil
    else { return nil }
    switch entry.codec {
    case "av01": type = "av01"
    case "hvc1", "hev1": type = "hvc1"
    default: return nil
    }
    self.place = place
    properties =
      [.box("ispe", .number(0, 4), .number(size.width, 4), .number(size.height, 4))]
      + Self.known.flatMap { name in
        entry.properties.filter { $0.type == name }.prefix(2).map {
          .box($0.type, Array($0.content.bytes))
        }
      }
  }

  /// Returns `meta` of a primary image.
  static func description(
    of image: FirstFrame, alpha: FirstFrame?, isPremultiplied: Bool
  ) -> [UInt8] {
    var items = [image.properties]
    if let alpha {
      let kind = Array("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha".utf8) + [0]
      items.append(alpha.properties + [.box("auxC", .number(0, 4), kind)])
    }
    let frames = [image] + (alpha.map { [$0] } ?? [])
    var locations: [UInt8] = []
    var entries: [UInt8] = []
    var associations: [UInt8] = []
    var count = 0
    for (index, frame) in frames.enumerated() {
      let id = [UInt8].number(index + 1, 2)
      // Offset and length have 8 bytes; the frame is in one piece.
      locations += id + .number(0, 2) + .number(1, 2)
      locations += .number(frame.place.offset, 8) + .number(frame.place.count, 8)
      entries += .box("infe", [2, 0, 0, 0], id, .number(0, 2), Array(frame.type.utf8), [0])
      associations += id + .number(items[index].count, 1)
      for property in items[index] {
        count += 1
        let name = String(decoding: property[4..<8], as: UTF8.self)
        associations.append(UInt8(count) | (essential.contains(name) ? 0x80 : 0))
      }
    }
    var references: [UInt8] = []
    if alpha != nil {
      references += .box("auxl", .number(2, 2), .number(1, 2), .number(1, 2))
      if isPremultiplied {
        references += .box("prem", .number(1, 2), .number(1, 2), .number(2, 2))
      }
    }
    let zeros = [UInt8](repeating: 0, count: 13)
    return .box(
      "meta", .number(0, 4), .box("hdlr", .number(0, 8), Array("pict".utf8), zeros),
      .box("pitm", .number(0, 4), .number(1, 2)),
      .box("iloc", .number(0, 4), [0x88, 0], .number(frames.count, 2), locations),
      .box("iinf", .number(0, 4), .number(frames.count, 2), entries),
      references.isEmpty ? [] : .box("iref", .number(0, 4), references),
      .box(
        "iprp", .box("ipco", items.flatMap { $0 }.flatMap { $0 }),
        .box("ipma", .number(0, 4), .number(frames.count, 4), associations)))
  }
}
