// HEIFFuzzTests: boxes of HEIC files, sound and damaged.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HEIFFuzzTests {
  /// Returns whether the check accepts a file.
  private static func isSound(
    _ bytes: UnsafeRawBufferPointer, as format: ImageFormat = .heic
  ) -> Bool {
    (try? ContainerLengths.check(bytes, as: format, limits: ImagingLimits())) != nil
  }

  @Test func `sound boxes are accepted, and their colours found`() throws {
    var found = 0
    for seed in FuzzSeeds.run(usual: 1_500) {
      var generator = SeededGenerator(seed: seed)
      let file = BoxFile(using: &generator)
      let expected = file.points.flatMap {
        CodePoints(
          primaries: $0.primaries, transfer: $0.transfer, peak: file.peak.map { Double($0) })
      }
      try GuardedBytes(file.bytes).withBytes { bytes in
        #expect(Self.isSound(bytes), "seed \(seed)")
        #expect(HEIFContainer.codePoints(of: bytes) == expected, "seed \(seed)")
      }
      if expected != nil { found += 1 }
    }
    #expect(found > 0)
  }

  @Test func `damaged boxes are refused, or all items are in the file`() throws {
    var accepted = 0
    var refused = 0
    try Fuzz.run(
      "boxes", usual: 4_000,
      make: { generator in
        var bytes = BoxFile(using: &generator).bytes
        Damage.apply(to: &bytes, words: BoxFile.words, using: &generator)
        return bytes
      },
      check: { bytes in
        let isSound = try GuardedBytes(bytes).withBytes { buffer in
          _ = HEIFContainer.codePoints(of: buffer)
          _ = HEIFMending.mended(buffer)
          _ = HEIFSamples(of: buffer)
          _ = Self.isSound(buffer, as: .jxl)
          _ = Self.isSound(buffer, as: .jp2)
          return Self.isSound(buffer)
        }
        guard isSound else {
          refused += 1
          return
        }
        accepted += 1
        let meta = Self.content(of: "meta", in: bytes[...])
        guard let meta, let iloc = Self.content(of: "iloc", in: meta.dropFirst(4)) else { return }
        for (start, count) in Self.extents(of: Array(iloc)) {
          try hold(start + count <= Double(bytes.count), "\(count) bytes from \(start) on")
        }
      })
    #expect(accepted > 0 && refused > 0)
  }

  @Test func `the tiles of damaged grids are in the file, and cover the image`() throws {
    let scene = Pixels.scene(width: 150, height: 90)
    let files = try [false, true].map { isAVIF in
      try HEIFGrid {
        $0.isAVIF = isAVIF
        $0.tile = PixelSize(width: 64, height: 64)
        $0.turns = [("irot", 1), ("imir", 0)]
        $0.model = .tiles
        $0.isInMeta = isAVIF
      }.file(of: scene)
    }
    var accepted = 0
    var refused = 0
    try Fuzz.run(
      "grids", usual: 4_000,
      make: { generator in
        var file = files[generator.number(0...1)]
        // Most damage would be in the pixels, which this test does not decode.
        guard let pixels = file.indices.first(where: { file[$0...].starts(with: "mdat".utf8) })
        else { return file }
        var boxes = Array(file[..<pixels])
        Damage.apply(to: &boxes, words: BoxFile.words, using: &generator)
        file.replaceSubrange(..<pixels, with: boxes)
        return file
      },
      check: { bytes in
        try GuardedBytes(bytes).withBytes { buffer in
          for item in HEIFItems(of: buffer)?.items([1]) ?? [] { _ = item.codedSize }
          guard let image = HEIFImage(of: buffer), let base = buffer.baseAddress else {
            refused += 1
            return
          }
          accepted += 1
          for tile in image.tiles {
            guard let start = tile.data.baseAddress else { continue }
            let offset = start - base
            try hold(
              offset >= 0 && offset + tile.data.count <= buffer.count, "a tile from \(offset) on")
          }
          guard let grid = image.grid else { return }
          let isCovered =
            grid.columns * grid.tile.width >= grid.size.width
            && grid.rows * grid.tile.height >= grid.size.height
          try hold(isCovered, "\(grid)")
          try hold(image.tiles.count == grid.columns * grid.rows, "\(image.tiles.count) tiles")
        }
      })
    #expect(accepted > 0 && refused > 0)
  }

  @Test func `of damaged sequences the first frame is in the file`() throws {
    let scene = Pixels.scene(width: 40, height: 30)
    let files = try [false, true].map { isAVIF in
      try HEIFSequence {
        $0.isAVIF = isAVIF
        $0.frames = 2
        $0.description = isAVIF ? .missing : .withoutPrimary
      }.file(of: try TestImages.heif(scene, isAVIF: isAVIF), size: scene.size)
    }
    var described = 0
    try Fuzz.run(
      "sequences", usual: 4_000,
      make: { generator in
        let file = files[generator.number(0...1)]
        // Most damage would be in the pixels, which this test does not decode.
        guard let tracks = file.indices.last(where: { file[$0...].starts(with: "moov".utf8) })
        else { return file }
        var boxes = Array(file[(tracks - 4)...])
        Damage.apply(to: &boxes, words: BoxFile.words, using: &generator)
        return file[..<(tracks - 4)] + boxes
      },
      check: { bytes in
        let mended = try GuardedBytes(bytes).withBytes { buffer in
          _ = UndecodedAnimation.frames(of: buffer, as: .avif)
          return HEIFMending.mended(buffer)
        }
        guard let mended else { return }
        try hold(mended.count >= bytes.count, "\(mended.count) bytes of \(bytes.count)")
        try GuardedBytes(mended).withBytes { buffer in
          _ = HEIFSamples(of: buffer)
          guard let items = HEIFItems(of: buffer) else { return }
          described += 1
          try hold(items.items([items.primary]) != nil, "no first frame")
        }
      })
    #expect(described > 0)
  }

  /// Returns the content of the first box of a type, by a simple reader.
  private static func content(of type: String, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var rest = bytes
    while rest.count >= 8 {
      var length = number(rest.prefix(4))
      var head = 8.0
      if length == 1 {
        guard rest.count >= 16 else { return nil }
        length = number(rest.dropFirst(8).prefix(8))
        head = 16
      }
      let isToEnd = length == 0
      guard isToEnd || length >= head, length <= Double(rest.count) else { return nil }
      let whole = isToEnd ? rest : rest.prefix(Int(length))
      if whole.dropFirst(4).prefix(4).elementsEqual(type.utf8) { return whole.dropFirst(Int(head)) }
      rest = rest.dropFirst(whole.count)
    }
    return nil
  }

  /// Returns a number, which may have any size.
  private static func number(_ bytes: some Sequence<UInt8>) -> Double {
    bytes.reduce(0) { $0 * 256 + Double($1) }
  }

  /// Returns the places of the items that are stored in the file.
  private static func extents(of iloc: [UInt8]) -> [(start: Double, count: Double)] {
    var rest = iloc[...]
    func take(_ width: Int) -> Double {
      defer { rest = rest.dropFirst(width) }
      return number(rest.prefix(width))
    }
    let version = Int(take(1))
    guard version <= 2, iloc.count >= 8 else { return [] }
    _ = take(3)
    let widths = Int(take(2))
    let offset = widths >> 12
    let length = widths >> 8 & 15
    let base = widths >> 4 & 15
    let index = version == 0 ? 0 : widths & 15
    guard max(offset, length, base, index) <= 8 else { return [] }
    var places: [(start: Double, count: Double)] = []
    let items = take(version < 2 ? 2 : 4)
    var item = 0.0
    while item < items, !rest.isEmpty {
      _ = take(version < 2 ? 2 : 4)
      let method = version == 0 ? 0 : Int(take(2)) & 15
      _ = take(2)
      let start = take(base)
      let extents = Int(take(2))
      for _ in 0..<(offset + length + index == 0 ? min(extents, 1) : extents) {
        _ = take(index)
        let place = (start + take(offset), take(length))
        if method == 0 { places.append(place) }
      }
      item += 1
    }
    return places
  }
}

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
