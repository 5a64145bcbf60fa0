// AnswerMessage: the messages from a worker to the server.

import Model

/// A message from a worker. Workers decode untrusted input, so every field is validated.
public enum AnswerMessage: Hashable, Sendable {
  /// The worker has started and can take jobs. Sent once, as the first message.
  case ready
  /// The job is done. The image's descriptor is passed along.
  case result(ResultMessage)
  /// The job failed.
  case failure(id: UInt64, ImageError)
  /// The job would take long, and was to be done only if it does not.
  case takesLong(id: UInt64)

  /// Returns the encoded message.
  public func encoded() -> [UInt8] {
    switch self {
    case .ready: return WireWriter(.ready).bytes
    case .result(let result): return result.encoded()
    case .failure(let id, let error):
      var writer = WireWriter(.failure)
      writer.put(id)
      writer.put(error)
      return writer.bytes
    case .takesLong(let id):
      var writer = WireWriter(.takesLong)
      writer.put(id)
      return writer.bytes
    }
  }

  /// Decodes a message.
  ///
  /// - Throws: `WireError.malformed`.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = try WireReader(bytes)
    switch reader.kind {
    case .ready: self = .ready
    case .result: self = .result(try ResultMessage(reading: &reader))
    case .failure: self = .failure(id: try reader.number(UInt64.self), try reader.imageError())
    case .takesLong: self = .takesLong(id: try reader.number(UInt64.self))
    case .job: throw .malformed("a job, not an answer")
    }
    try reader.end()
  }
}

/// The metadata of a finished image. Its bytes are in a sealed memory file.
public struct ResultMessage: Hashable, Sendable {
  /// The id of the job.
  public var id: UInt64
  /// Format of the bytes, one of `ImageFormat.outputs`, or `json`.
  public var format: ImageFormat
  /// Size in pixels.
  public var size: PixelSize
  /// Number of frames; 1 for a still image.
  public var frames: Int
  /// Pixels per point.
  public var density: Double
  /// Size before large-image downsizing, if it was applied.
  public var scaledDownFrom: PixelSize?
  /// Lossy quality, if `maxbytes` determined it.
  public var quality: Int?
  /// 32 lower-case hexadecimal digits.
  public var digest: String
  /// `decode`, `transform` and `encode`; other timings are not sent.
  public var timings: Timings
  /// Length of the image in bytes, which is also the length of the memory file.
  public var byteCount: Int
  /// Whether the source is damaged but could be decoded.
  public var isDamaged: Bool

  /// The range of a side, up to libvips's `VIPS_MAX_COORD`.
  static let sideRange = 1...10_000_000

  /// Creates a result.
  public init(
    id: UInt64, format: ImageFormat, size: PixelSize, frames: Int, density: Double,
    scaledDownFrom: PixelSize?, quality: Int? = nil, digest: String, timings: Timings,
    byteCount: Int, isDamaged: Bool = false
  ) {
    self.id = id
    self.format = format
    self.size = size
    self.frames = frames
    self.density = density
    self.scaledDownFrom = scaledDownFrom
    self.quality = quality
    self.digest = digest
    self.timings = timings
    self.byteCount = byteCount
    self.isDamaged = isDamaged
  }

  func encoded() -> [UInt8] {
    var writer = WireWriter(.result)
    writer.put(id)
    writer.put(format)
    writer.put(size)
    writer.put(Int64(frames))
    writer.put(density)
    writer.put(scaledDownFrom) { $0.put($1) }
    writer.put(quality) { $0.put(Int64($1)) }
    writer.put(digest)
    for duration in [timings.decode, timings.transform, timings.encode] {
      writer.put(duration) { $0.put($1) }
    }
    writer.put(Int64(byteCount))
    writer.put(isDamaged)
    return writer.bytes
  }

  init(reading reader: inout WireReader) throws(WireError) {
    id = try reader.number(UInt64.self)
    format = try reader.value("format", of: ImageFormat.self)
    guard ImageFormat.outputs.contains(format) || format == .json else {
      throw .malformed("format is \(format.rawValue)")
    }
    size = try reader.size()
    frames = try reader.integer("frames", in: 1...Int(Int32.max))
    density = try reader.double("density", in: Double.leastNormalMagnitude...1_000)
    // Any length is valid, because this size was only requested (`enlarge`), not rendered.
    scaledDownFrom = try reader.optional("scaledDownFrom") { reader throws(WireError) in
      try reader.size(in: 1...Int.max)
    }
    quality = try reader.optional("quality") { reader throws(WireError) in
      try reader.integer("quality", in: Transform.qualityRange)
    }
    digest = try reader.text("digest")
    let isDigest =
      digest.utf8.count == 32
      && digest.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    guard isDigest else { throw .malformed("digest is not 32 hexadecimal digits") }
    timings = Timings()
    timings.decode = try reader.optionalDuration("decode")
    timings.transform = try reader.optionalDuration("transform")
    timings.encode = try reader.optionalDuration("encode")
    byteCount = try reader.integer("byteCount", in: 1...Int.max / 2)
    isDamaged = try reader.flag("isDamaged")
  }
}

extension WireWriter {
  mutating func put(_ size: PixelSize) {
    put(Int64(size.width))
    put(Int64(size.height))
  }

  /// Appends whole nanoseconds.
  mutating func put(_ duration: Duration) {
    let parts = duration.components
    put(parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000)
  }

  /// Appends an error. Errors that a pipeline cannot throw become internal errors.
  mutating func put(_ error: ImageError) {
    switch error {
    case .invalidParameter(let name, let value, let allowed):
      put(UInt8(1))
      put(name)
      put(value)
      put(allowed)
    case .unsupportedFormat(let detail):
      put(UInt8(2))
      put(detail)
    case .undecodable(let detail):
      put(UInt8(3))
      put(detail)
    case .tooManyPixels(let pixels, let limit):
      put(UInt8(4))
      put(Int64(pixels))
      put(Int64(limit))
    case .tooManyFrames(let frames, let limit):
      put(UInt8(5))
      put(Int64(frames))
      put(Int64(limit))
    case .sourceTooLarge(let limit):
      put(UInt8(6))
      put(Int64(limit))
    case .watermark(let cause):
      put(UInt8(8))
      put(cause)
    case .ofVariant(let cause):
      put(UInt8(9))
      put(cause)
    case .tooCostly(let reason):
      put(UInt8(10))
      put(reason)
    case .outOfMemory(let detail):
      put(UInt8(11))
      put(detail)
    default:
      put(UInt8(7))
      put(error.logDetail ?? error.code)
    }
  }
}

extension WireReader {
  mutating func size(
    in range: ClosedRange<Int> = ResultMessage.sideRange
  ) throws(WireError) -> PixelSize {
    PixelSize(width: try integer("width", in: range), height: try integer("height", in: range))
  }

  /// Reads a duration of at most a day, since no job runs longer.
  mutating func optionalDuration(_ name: String) throws(WireError) -> Duration? {
    try optional(name) { reader throws(WireError) in
      .nanoseconds(try reader.integer(name, in: 0...86_400_000_000_000))
    }
  }

  /// Reads an error.
  ///
  /// - Parameter holders: the allowed kinds that wrap another error. A variant's error may wrap a
  ///   watermark's error. A watermark's error wraps neither.
  mutating func imageError(holders: Set<UInt8> = [8, 9]) throws(WireError) -> ImageError {
    let kind = try number(UInt8.self)
    switch kind {
    case 1:
      return .invalidParameter(
        name: try text("name"), value: try text("value"), allowed: try text("allowed"))
    case 2: return .unsupportedFormat(detail: try text("detail"))
    case 3: return .undecodable(detail: try text("detail"))
    case 4:
      return .tooManyPixels(
        pixels: try integer("pixels", in: 0...Int.max), limit: try integer("limit", in: 0...Int.max)
      )
    case 5:
      return .tooManyFrames(
        frames: try integer("frames", in: 0...Int.max), limit: try integer("limit", in: 0...Int.max)
      )
    case 6: return .sourceTooLarge(limit: try integer("limit", in: 0...Int.max))
    case 7: return .internal(detail: try text("detail"))
    case 8 where holders.contains(kind): return .watermark(try imageError(holders: []))
    case 9 where holders.contains(kind): return .ofVariant(try imageError(holders: [8]))
    case 10: return .tooCostly(reason: try text("reason"))
    case 11: return .outOfMemory(detail: try text("detail"))
    case let other: throw .malformed("error is \(other)")
    }
  }
}
