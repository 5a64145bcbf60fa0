// BoxFile: HEIC files of random boxes around no pixels.

import TestSupport

/// A HEIC with the boxes that its reader and its check look at (ISO/IEC 14496-12, 23008-12).
struct BoxFile {
  var bytes: [UInt8]
  /// The colour code points of the primary image, as its boxes state them.
  var points: (primaries: Int, transfer: Int)?
  /// The brightest light, in cd/m².
  var peak: Int?

  /// What boxes consist of.
  static let words: [[UInt8]] =
    [
      "ftyp", "meta", "pitm", "iloc", "iprp", "ipco", "ipma", "colr", "nclx", "prof", "clli",
      "ispe", "mdat", "iref", "moov", "jp2h", "uuid", "heic", "avif",
      "iinf", "infe", "dimg", "idat", "grid", "hvc1", "hvcC", "av01", "av1C", "irot", "imir",
      "clap", "a1op", "lsel", "auxl", "prem", "auxC", "moov", "trak", "tkhd", "mdia", "hdlr",
      "pict",
      "auxv", "minf", "stbl", "stsd", "stsz", "stco", "tref", "free",
    ].map { Array($0.utf8) } + [
      [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 8], [0, 0, 0, 1, 0x6d, 0x65, 0x74, 0x61], [0xff, 0xff],
    ]

  /// Makes a sound file.
  init(using generator: inout SeededGenerator) {
    let primary = generator.number(1...4)
    var properties: [UInt8] = []
    var indices: [Int] = []
    for index in 1...generator.number(1...5) {
      let isOfPrimary = generator.isOne(of: 2)
      if isOfPrimary { indices.append(index) }
      switch generator.number(0...2) {
      case 0:
        let primaries = generator.pick(1, 2, 9, 12)
        let transfer = generator.pick(1, 8, 13, 16, 18)
        let content =
          HEIFBoxes.number(primaries, width: 2) + HEIFBoxes.number(transfer, width: 2) + [
            0, 0, 0x80,
          ]
        properties += HEIFBoxes.box("colr", content: Array("nclx".utf8) + content)
        if isOfPrimary { points = (primaries, transfer) }
      case 1:
        let light = generator.number(0...4_000)
        properties += HEIFBoxes.box("clli", content: HEIFBoxes.number(light, width: 2) + [0, 0])
        if isOfPrimary, light > 0 { peak = light }
      default: properties += HEIFBoxes.box("ispe", content: [0, 0, 0, 0] + generator.bytes(8))
      }
    }
    let isWide = generator.isOne(of: 2)
    let list = indices.flatMap { isWide ? [0x80, UInt8($0)] : [UInt8($0)] as [UInt8] }
    var others: [UInt8] = []
    if generator.isOne(of: 2) { others = isWide ? [0, 9, 1, 0, 1] : [0, 9, 1, 1] }
    let association: [UInt8] =
      [0, 0, 0, isWide ? 1 : 0] + HEIFBoxes.number(others.isEmpty ? 1 : 2, width: 4) + others
      + HEIFBoxes.number(primary, width: 2) + [UInt8(indices.count)] + list
    let content =
      [0, 0, 0, 0]
      + HEIFBoxes.box("pitm", content: [0, 0, 0, 0] + HEIFBoxes.number(primary, width: 2))
      + Self.locations(using: &generator)
      + HEIFBoxes.box(
        "iprp",
        content: HEIFBoxes.box("ipco", content: properties)
          + HEIFBoxes.box("ipma", content: association))
    bytes =
      HEIFBoxes.box("ftyp", content: Array("heic".utf8) + [0, 0, 0, 0] + Array("mif1".utf8))
      + HEIFBoxes.box("meta", content: content)
      + HEIFBoxes.box("mdat", content: generator.bytes(40))
  }

  /// Returns an item location box of any version and widths, whose items are in the first 40 bytes.
  private static func locations(using generator: inout SeededGenerator) -> [UInt8] {
    let version = generator.number(0...2)
    let offset = generator.pick(0, 1, 4, 8)
    let length = generator.pick(0, 2, 4, 8)
    let base = generator.pick(0, 4, 8)
    let index = generator.pick(0, 4)
    // Of extents without a byte there is at most one.
    let maximumExtents = offset + length + (version == 0 ? 0 : index) == 0 ? 1 : 3
    var content = [UInt8(version), 0, 0, 0, UInt8(offset << 4 | length)]
    content.append(UInt8(base << 4 | (version == 0 ? 0 : index)))
    let items = generator.number(0...4)
    content += HEIFBoxes.number(items, width: version < 2 ? 2 : 4)
    for item in 0..<items {
      content += HEIFBoxes.number(item + 1, width: version < 2 ? 2 : 4)
      if version > 0 { content += HEIFBoxes.number(generator.number(0...1), width: 2) }
      let extents = generator.number(0...maximumExtents)
      content +=
        [0, 0] + HEIFBoxes.number(generator.number(0...20), width: base)
        + HEIFBoxes.number(extents, width: 2)
      for _ in 0..<extents {
        if version > 0 { content += HEIFBoxes.number(0, width: index) }
        content +=
          HEIFBoxes.number(generator.number(0...10), width: offset)
          + HEIFBoxes.number(generator.number(0...10), width: length)
      }
    }
    return HEIFBoxes.box("iloc", content: content)
  }
}
