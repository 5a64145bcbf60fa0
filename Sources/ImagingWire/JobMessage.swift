// JobMessage: the message that sends a job to a worker.

/// A job for a worker. The source's descriptor is passed along, then the watermark's if there is
/// one.
public struct JobMessage: Hashable, Sendable {
  /// The id, which the answer repeats.
  public private(set) var id: UInt64
  /// The requested transform. It is sent as the text that the cache key has (`TransformDraft`), so
  /// that a worker cannot see what the key does not say.
  public private(set) var transform: Transform
  /// Pixels per point of the source, from its name: 1, 2 or 3.
  public private(set) var density: Int
  /// The limits for decoding.
  public private(set) var limits: ImagingLimits
  /// Offset of the source in its file.
  public private(set) var offset: Int
  /// Length of the source in bytes.
  public private(set) var count: Int
  /// The watermark. That of the transform is not sent.
  public private(set) var overlay: OverlayMessage?
  /// Whether a description requires that all pixels of the source decode.
  public private(set) var verifies = false
  /// Whether the source is a variant, which becomes smaller without a change of its pixels.
  public private(set) var isRecompression = false
  /// Whether the worker refuses the job if it is expensive (`AnswerMessage.takesLong`).
  public private(set) var isQuickOnly = false
  /// The faces of the source, if an earlier job has found them.
  public private(set) var faces: [PixelArea]?
}

extension JobMessage {
  /// Creates the message of a job; `faces` are those that an earlier job has found.
  public init(
    _ job: ImageJob, id: UInt64, limits: ImagingLimits, isQuickOnly: Bool = false,
    faces: [PixelArea]? = nil
  ) {
    self.init(
      id: id, transform: job.transform, density: job.density, limits: limits,
      offset: job.file.offset, count: job.file.count, overlay: OverlayMessage(job),
      verifies: job.verifies, isRecompression: job.isRecompression, isQuickOnly: isQuickOnly,
      faces: faces)
  }

  /// Returns the encoded message.
  public func encoded() -> [UInt8] {
    var writer = WireWriter(.job)
    var message = self
    message.code(by: &writer)
    return writer.bytes
  }

  /// Decodes a message.
  ///
  /// - Throws: `WireError.malformed`.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = try WireReader(bytes)
    guard reader.kind == .job else { throw .malformed("kind \(reader.kind), not a job") }
    self.init(
      id: 0, transform: Transform(), density: 1, limits: ImagingLimits(), offset: 0, count: 0)
    try code(by: &reader)
    try reader.end()
  }

  private mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&id)
    try coder.code("density", &density, in: 1...3)
    // The ranges ensure that the sum of both does not overflow.
    try coder.code("offset", &offset, in: 0...Int.max / 2)
    try coder.code("count", &count, in: 0...Int.max / 2)
    try limits.code(by: &coder)
    try codeTransform(by: &coder)
    try coder.code("verifies", &verifies)
    try coder.code("isRecompression", &isRecompression)
    try coder.code("isQuickOnly", &isQuickOnly)
    try coder.code(faces: &faces)
  }

  /// The transform's text has the placement of the watermark, too.
  private mutating func codeTransform<Coder: WireCoder>(
    by coder: inout Coder
  ) throws(Coder.Failure) {
    var draft = TransformDraft(transform)
    draft.placement = overlay?.placement ?? WatermarkPlacement()
    var text = draft.text
    try coder.code("transform", &text)
    let read = TransformDraft(text: text)
    try coder.check(read != nil, "transform is \(text.prefix(100))")
    let placement = read?.placement ?? draft.placement
    transform = read?.transform ?? transform
    try coder.code("overlay", &overlay, into: OverlayMessage(offset: 0, count: 0, density: 1)) {
      coder, overlay throws(Coder.Failure) in
      overlay.placement = placement
      try overlay.code(by: &coder)
    }
    try coder.check(
      overlay != nil || placement == WatermarkPlacement(), "a placement without a watermark")
  }
}

/// A job's watermark. Its descriptor is passed after the source's.
public struct OverlayMessage: Hashable, Sendable {
  /// Offset of the image in its file.
  public private(set) var offset: Int
  /// Length of the image in bytes.
  public private(set) var count: Int
  /// Pixels per point of the image, from its name: 1, 2 or 3.
  public private(set) var density: Int
  /// Placement on the result; part of the transform's text.
  public internal(set) var placement = WatermarkPlacement()

  fileprivate mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    // The ranges ensure that the sum of both does not overflow.
    try coder.code("overlay's offset", &offset, in: 0...Int.max / 2)
    try coder.code("overlay's count", &count, in: 0...Int.max / 2)
    try coder.code("overlay's density", &density, in: 1...3)
  }
}

extension OverlayMessage {
  /// Creates the message for the job's watermark; `nil` without one.
  fileprivate init?(_ job: ImageJob) {
    guard let overlay = job.overlay else { return nil }
    self.init(
      offset: overlay.file.offset, count: overlay.file.count, density: overlay.density,
      placement: job.transform.watermark?.placement ?? WatermarkPlacement())
  }
}

extension ImagingLimits {
  fileprivate mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    let all = ImageFormat.allCases
    var bits = all.indices.reduce(into: UInt32(0)) {
      $0 |= formats.contains(all[$1]) ? 1 << UInt32($1) : 0
    }
    try coder.code(&bits)
    try coder.check(bits >> UInt32(all.count) == 0, "formats is \(bits)")
    formats = Set(all.indices.filter { bits >> UInt32($0) & 1 == 1 }.map { all[$0] })
    try coder.code("maximumPixels", &maximumPixels, in: 0...Int.max)
    try coder.code("maximumFrames", &maximumFrames, in: 0...Int.max)
    try coder.code("failOn", &failOn)
    try coder.code("maximumResultPixels", &maximumResultPixels, in: 1...Int.max / 4)
    try coder.code(small: "png", &efforts.png, in: EncoderEfforts.pngRange)
    try coder.code(small: "gif", &efforts.gif, in: EncoderEfforts.gifRange)
    try coder.code(small: "webp", &efforts.webp, in: EncoderEfforts.webpRange)
    try coder.code(small: "avif", &efforts.avif, in: EncoderEfforts.avifRange)
    try coder.code("maximumSeconds", &maximumSeconds, in: 0...1e9)
    try coder.code("maximumSecondsOfPixels", &maximumSecondsOfPixels, in: 0...1e9)
    try coder.code("maximumBytes", &maximumBytes, in: 0...Int.max)
    try coder.code("maximumQuickBytes", &maximumQuickBytes, in: 0...Int.max)
    try coder.code(small: "maximumThreads", &maximumThreads, in: 1...Int(UInt8.max))
    try coder.code("keepsPalettes", &keepsPalettes)
  }
}
