// JobMessage: what the server asks of a worker.

import Model

/// A job on its way to a worker; the source's descriptor goes along with it, and then the watermark's where it has one.
public struct JobMessage: Hashable, Sendable {
  /// Comes back with the answer.
  public let id: UInt64
  /// What is wanted.
  public let transform: Transform
  /// Pixels per point of the source, from its name: 1, 2 or 3.
  public let density: Int
  /// Bounds on what is decoded.
  public let limits: ImagingLimits
  /// Where the source starts in its file.
  public let offset: Int
  /// How many bytes the source has.
  public let count: Int
  /// The watermark; that of the transform does not go over.
  public let overlay: OverlayMessage?
  /// Whether a description is only wanted of a source whose pixels are whole.
  public let verifies: Bool

  /// Whether a job that would take long is only to be told as such.
  public let isQuickOnly: Bool

  /// A job.
  public init(
    id: UInt64, transform: Transform, density: Int, limits: ImagingLimits, offset: Int, count: Int,
    overlay: OverlayMessage? = nil, verifies: Bool = false, isQuickOnly: Bool = false
  ) {
    self.isQuickOnly = isQuickOnly
    self.id = id
    self.transform = transform
    self.density = density
    self.limits = limits
    self.offset = offset
    self.count = count
    self.overlay = overlay
    self.verifies = verifies
  }

  /// The message's bytes.
  public func encoded() -> [UInt8] {
    var writer = WireWriter(.job)
    writer.put(id)
    writer.put(Int64(density))
    writer.put(Int64(offset))
    writer.put(Int64(count))
    writer.put(limits)
    writer.put(transform)
    writer.put(overlay) { $0.put($1) }
    writer.put(verifies)
    writer.put(isQuickOnly)
    return writer.bytes
  }

  /// Reads a message's bytes.
  ///
  /// - Throws: `WireError.malformed`.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = try WireReader(bytes)
    guard reader.kind == .job else { throw .malformed("kind \(reader.kind), not a job") }
    id = try reader.number(UInt64.self)
    density = try reader.integer("density", in: 1...3)
    // A file's offsets are signed, so neither of the two, nor their sum, overflows.
    offset = try reader.integer("offset", in: 0...Int.max / 2)
    count = try reader.integer("count", in: 0...Int.max / 2)
    limits = try reader.limits()
    transform = try reader.transform()
    overlay = try reader.optional("overlay") { reader throws(WireError) in try reader.overlay() }
    verifies = try reader.flag("verifies")
    isQuickOnly = try reader.flag("isQuickOnly")
    try reader.end()
  }
}

extension WireWriter {
  mutating func put(_ limits: ImagingLimits) {
    var formats: UInt32 = 0
    for (index, format) in ImageFormat.allCases.enumerated() where limits.formats.contains(format) {
      formats |= 1 << UInt32(index)
    }
    put(formats)
    put(Int64(limits.maximumPixels))
    put(Int64(limits.maximumFrames))
    put(limits.failOn)
    put(Int64(limits.maximumResultPixels))
    let efforts = limits.efforts
    for effort in [efforts.png, efforts.gif, efforts.webp, efforts.avif, efforts.jxl] {
      put(UInt8(clamping: effort))
    }
    put(limits.mostSeconds)
  }
}

extension WireReader {
  mutating func limits() throws(WireError) -> ImagingLimits {
    var limits = ImagingLimits()
    let formats = try number(UInt32.self)
    guard formats >> UInt32(ImageFormat.allCases.count) == 0 else {
      throw .malformed("formats is \(formats)")
    }
    limits.formats = Set(
      ImageFormat.allCases.enumerated().filter { formats >> UInt32($0.offset) & 1 == 1 }
        .map(\.element))
    limits.maximumPixels = try integer("maximumPixels", in: 0...Int.max)
    limits.maximumFrames = try integer("maximumFrames", in: 0...Int.max)
    limits.failOn = try value("failOn", of: FailOn.self)
    limits.maximumResultPixels = try integer("maximumResultPixels", in: 1...Int.max / 4)
    limits.efforts = try efforts()
    limits.mostSeconds = try double("mostSeconds", in: 0...1e9)
    return limits
  }

  private mutating func efforts() throws(WireError) -> EncoderEfforts {
    func effort(
      _ name: String, in range: ClosedRange<Int>, _ reader: inout WireReader
    ) throws(WireError) -> Int {
      let value = Int(try reader.number(UInt8.self))
      guard range.contains(value) else { throw .malformed("\(name) is \(value)") }
      return value
    }
    var efforts = EncoderEfforts()
    efforts.png = try effort("png", in: EncoderEfforts.pngRange, &self)
    efforts.gif = try effort("gif", in: EncoderEfforts.gifRange, &self)
    efforts.webp = try effort("webp", in: EncoderEfforts.webpRange, &self)
    efforts.avif = try effort("avif", in: EncoderEfforts.avifRange, &self)
    efforts.jxl = try effort("jxl", in: EncoderEfforts.jxlRange, &self)
    return efforts
  }
}
