// JPEG2000Boxes: what the boxes of a JPEG 2000 say of its colours, and which of it is decoded right.

import Platform

/// The boxes before the codestream (ISO/IEC 15444-1, annex I.5).
struct JPEG2000Boxes {
  /// The codestream.
  let codestream: UnsafeRawBufferPointer
  /// The colours of the first specification that OpenJPEG reads.
  private(set) var colours: CodestreamKind.Colours?
  /// The channels, in their order: index, type and what they belong to.
  private var channels: [[Int]] = []

  /// Reads the boxes. Their lengths are checked elsewhere: damage that is tolerated hides no kind.
  ///
  /// - Throws: `ContainerFault.unsupported`; `.excess` or `.broken` without a codestream.
  init(of source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var skipped: Int?
    var codestream: UnsafeRawBufferPointer?
    var channels: [[Int]] = []
    var colours: CodestreamKind.Colours?
    var boxes = ByteReader(source)
    while codestream == nil, let box = try BoxLengths.next(in: &boxes, depth: 0, mayBeCut: true) {
      if box.type == "jp2c" { codestream = box.content.bytes }
      var inner = box.content
      // OpenJPEG also reads a header's boxes that lie outside of it.
      let isHeader = box.type == "jp2h"
      var next: (type: String, content: ByteReader)? = box
      if isHeader { next = try BoxLengths.next(in: &inner, depth: 1, mayBeCut: true) }
      while let part = next {
        switch part.type {
        case "pclr", "cmap": throw .unsupported("a palette; decoded are grey and colours")
        case "cdef": channels += Self.channels(part.content)
        case "colr" where colours == nil: colours = try Self.colours(part.content, &skipped)
        default: break
        }
        next = isHeader ? try BoxLengths.next(in: &inner, depth: 1, mayBeCut: true) : nil
      }
    }
    guard let codestream else {
      try BoxLengths.check(source)
      throw .broken("a JPEG 2000 without a codestream")
    }
    if let skipped, colours == nil {
      throw .unsupported("colours of method \(skipped); 1 and 2 are decoded")
    }
    self.codestream = codestream
    self.colours = colours
    self.channels = channels
  }

  /// Returns the colours of a specification (I.5.3.3); `nil` for a method that OpenJPEG skips.
  private static func colours(
    _ content: ByteReader, _ skipped: inout Int?
  ) throws(ContainerFault) -> CodestreamKind.Colours? {
    var content = content
    guard let method = try? content.number(1), content.skip(2) else { return nil }
    switch method {
    case 1:
      guard let number = try? content.number(4) else { return nil }
      switch number {
      case 16: return .rgb
      case 17: return .grey
      case 18: return .ycc
      default:
        let names = [0: "bilevel", 12: "CMYK", 14: "CIELab", 15: "bilevel", 20: "e-sRGB"]
        throw .unsupported(
          "\(names[number] ?? "colours of number \(number)"); decoded are sRGB (16), grey (17) and YCC (18)"
        )
      }
    case 2:
      // The colour space of an ICC profile (ICC.1, 7.2).
      guard content.skip(16), let space = try? content.name() else { return nil }
      switch space {
      case "RGB ": return .rgb
      case "GRAY": return .grey
      default: throw .unsupported("a profile for \(space); decoded are RGB and GRAY")
      }
    default:
      skipped = method
      return nil
    }
  }

  /// Returns the channels of a definition (I.5.3.6).
  private static func channels(_ content: ByteReader) -> [[Int]] {
    var content = content
    guard let count = try? content.number(2) else { return [] }
    var channels: [[Int]] = []
    for _ in 0..<min(count, content.left / 6) {
      channels.append((0..<3).map { _ in (try? content.number(2)) ?? 0 })
    }
    return channels
  }

  /// Checks that the codestream's components are what libvips takes them for: colours in their order, then alpha.
  ///
  /// - Throws: `ContainerFault.unsupported`.
  func check(_ kind: CodestreamKind) throws(ContainerFault) {
    try kind.check(colours ?? .unstated)
    let count = kind.components.count
    for channel in channels {
      let isAlpha = count.isMultiple(of: 2) && channel[0] == count - 1
      // 0 is colour, 1 alpha, 2 alpha that colours are multiplied by.
      guard isAlpha ? channel[1] == 1 && channel[2] == 0 : channel[1] == 0,
        isAlpha || channel[2] == channel[0] + 1
      else {
        throw .unsupported(
          "channel \(channel[0]) of type \(channel[1]) for \(channel[2]); "
            + "decoded are colours in their order, and plain alpha for all at the end")
      }
    }
  }
}
