// JobMessage: the message that sends a job to a worker.

import Model

/// A job for a worker. The source's descriptor is passed along, then the watermark's if there is
/// one.
public struct JobMessage: Hashable, Sendable {
  /// The id, which the answer repeats.
  public let id: UInt64
  /// The requested transform.
  public let transform: Transform
  /// Pixels per point of the source, from its name: 1, 2 or 3.
  public let density: Int
  /// The limits for decoding.
  public let limits: ImagingLimits
  /// Offset of the source in its file.
  public let offset: Int
  /// Length of the source in bytes.
  public let count: Int
  /// The watermark. That of the transform is not sent.
  public let overlay: OverlayMessage?
  /// Whether a description requires that all pixels of the source decode.
  public let verifies: Bool

  /// Whether the source is a variant, which becomes smaller without a change of its pixels.
  public let isRecompression: Bool

  /// Whether the worker refuses the job if it is expensive (`AnswerMessage.takesLong`).
  public let isQuickOnly: Bool

  /// A job.
  public init(
    id: UInt64, transform: Transform, density: Int, limits: ImagingLimits, offset: Int, count: Int,
    overlay: OverlayMessage? = nil, verifies: Bool = false, isRecompression: Bool = false,
    isQuickOnly: Bool = false
  ) {
    self.isRecompression = isRecompression
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

  /// Returns the encoded message.
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
    writer.put(isRecompression)
    writer.put(isQuickOnly)
    return writer.bytes
  }

  /// Decodes a message.
  ///
  /// - Throws: `WireError.malformed`.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = try WireReader(bytes)
    guard reader.kind == .job else { throw .malformed("kind \(reader.kind), not a job") }
    id = try reader.number(UInt64.self)
    density = try reader.integer("density", in: 1...3)
    // The ranges ensure that the sum of both does not overflow.
    offset = try reader.integer("offset", in: 0...Int.max / 2)
    count = try reader.integer("count", in: 0...Int.max / 2)
    limits = try reader.limits()
    transform = try reader.transform()
    overlay = try reader.optional("overlay") { reader throws(WireError) in try reader.overlay() }
    verifies = try reader.flag("verifies")
    isRecompression = try reader.flag("isRecompression")
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
    for effort in [efforts.png, efforts.gif, efforts.webp, efforts.avif] {
      put(UInt8(clamping: effort))
    }
    put(limits.maximumSeconds)
    put(limits.maximumSecondsOfPixels)
    put(Int64(limits.maximumBytes))
    put(Int64(limits.maximumQuickBytes))
    put(UInt8(clamping: limits.maximumThreads))
    put(limits.keepsPalettes)
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
    limits.maximumSeconds = try double("maximumSeconds", in: 0...1e9)
    limits.maximumSecondsOfPixels = try double("maximumSecondsOfPixels", in: 0...1e9)
    limits.maximumBytes = try integer("maximumBytes", in: 0...Int.max)
    limits.maximumQuickBytes = try integer("maximumQuickBytes", in: 0...Int.max)
    limits.maximumThreads = try small("maximumThreads", in: 1...Int(UInt8.max))
    limits.keepsPalettes = try flag("keepsPalettes")
    return limits
  }

  private mutating func efforts() throws(WireError) -> EncoderEfforts {
    var efforts = EncoderEfforts()
    efforts.png = try small("png", in: EncoderEfforts.pngRange)
    efforts.gif = try small("gif", in: EncoderEfforts.gifRange)
    efforts.webp = try small("webp", in: EncoderEfforts.webpRange)
    efforts.avif = try small("avif", in: EncoderEfforts.avifRange)
    return efforts
  }

  /// Reads a number of one byte.
  private mutating func small(
    _ name: String, in range: ClosedRange<Int>
  ) throws(WireError) -> Int {
    let value = Int(try number(UInt8.self))
    guard range.contains(value) else { throw .malformed("\(name) is \(value)") }
    return value
  }
}
