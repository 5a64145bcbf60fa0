// AnswerMessage: the messages from a worker to the server.

/// A message from a worker. Workers decode untrusted input, so every field is validated.
public enum AnswerMessage: Hashable, Sendable {
  /// The worker has started, is sealed as reported, and can take jobs. Sent once, as the first
  /// message.
  case ready(SandboxReport)
  /// The job is done. The bytes are in the worker's file of results.
  case result(ResultMessage)
  /// The job failed.
  case failure(id: UInt64, ImageError)
  /// The job is expensive, and was to be done only if it is not. `bytes` is its estimated memory.
  case takesLong(id: UInt64, bytes: Int)

  /// Returns the encoded message.
  public func encoded() -> [UInt8] {
    var writer = WireWriter(kind)
    var message = self
    message.code(by: &writer)
    return writer.bytes
  }

  /// Decodes a message.
  ///
  /// - Throws: `WireError.malformed`.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = try WireReader(bytes)
    switch reader.kind {
    case .ready: self = .ready(SandboxReport())
    case .result: self = .result(.empty)
    case .failure: self = .failure(id: 0, .draining)
    case .takesLong: self = .takesLong(id: 0, bytes: 0)
    case .job: throw .malformed("a job, not an answer")
    }
    try code(by: &reader)
    try reader.end()
  }

  private var kind: WireKind {
    switch self {
    case .ready: .ready
    case .result: .result
    case .failure: .failure
    case .takesLong: .takesLong
    }
  }

  private mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    switch self {
    case .ready(var report):
      try coder.code(small: "landlock", &report.landlock, in: 0...Int(UInt8.max))
      try coder.code("seccomp", &report.seccomp)
      self = .ready(report)
    case .result(var result):
      try result.code(by: &coder)
      self = .result(result)
    case .failure(var id, var error):
      try coder.code(&id)
      try error.code(by: &coder)
      self = .failure(id: id, error)
    case .takesLong(var id, var bytes):
      try coder.code(&id)
      try coder.code("bytes", &bytes, in: 0...mostPixels)
      self = .takesLong(id: id, bytes: bytes)
    }
  }
}

/// More pixels than any header states that a decoder reads, and more bytes than any file has.
private let mostPixels = 1 << 53

/// The answer to a finished job. The bytes of its result are in the worker's file of results.
public struct ResultMessage: Hashable, Sendable {
  /// The id of the job.
  public var id: UInt64
  /// What the bytes are. Of the timings only `decode`, `transform` and `encode` are sent.
  public var report: RenderReport
  /// Length of the result in bytes, which is also the length of the memory file.
  public var byteCount: Int

  /// Creates an answer.
  public init(id: UInt64, report: RenderReport, byteCount: Int) {
    self.id = id
    self.report = report
    self.byteCount = byteCount
  }

  fileprivate static let empty = ResultMessage(
    id: 0, report: RenderReport(content: .sourceDescription, digest: "", timings: Timings()),
    byteCount: 0)

  fileprivate mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&id)
    var image = report.content.image
    let size = PixelSize(width: 0, height: 0)
    try coder.code("image", &image, into: RenderedImage(format: .png, size: size, density: 1)) {
      coder, image throws(Coder.Failure) in
      try image.code(by: &coder)
    }
    report.content = image.map(VariantContent.image) ?? .sourceDescription
    try coder.code("digest", &report.digest)
    let isDigest =
      report.digest.utf8.count == 32
      && report.digest.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    try coder.check(isDigest, "digest is not 32 hexadecimal digits")
    try report.timings.decode.code(by: &coder)
    try report.timings.transform.code(by: &coder)
    try report.timings.encode.code(by: &coder)
    try coder.code("isDamaged", &report.isDamaged)
    try coder.code(faces: &report.faces)
    try coder.code("byteCount", &byteCount, in: 1...Int.max / 2)
  }
}

extension RenderedImage {
  /// The range of a side in pixels, up to libvips's `VIPS_MAX_COORD`.
  private static let sideRange = 1...10_000_000
  /// The range of a requested side: the longest one beside the highest ratio of sides and `scale`.
  private static let requestedRange = 1...10_000_000_000_000

  fileprivate mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    try coder.code("format", &format)
    try size.code(by: &coder, in: Self.sideRange)
    try coder.code("frames", &frames, in: 1...Int(Int32.max))
    try coder.code("density", &density, in: Double.leastNormalMagnitude...1_000)
    // This size was only requested (`enlarge`), not rendered.
    try coder.code("scaledDownFrom", &scaledDownFrom, into: PixelSize(width: 0, height: 0)) {
      coder, size throws(Coder.Failure) in
      try size.code(by: &coder, in: Self.requestedRange)
    }
    try coder.code("quality", &quality, in: OutputOptions.qualityRange)
    try coder.code("droppedFrames", &droppedFrames, in: 0...Int(Int32.max))
  }
}

extension PixelSize {
  mutating func code<Coder: WireCoder>(
    by coder: inout Coder, in range: ClosedRange<Int>
  ) throws(Coder.Failure) {
    var (width, height) = (width, height)
    try coder.code("width", &width, in: range)
    try coder.code("height", &height, in: range)
    self = PixelSize(width: width, height: height)
  }
}

extension Duration? {
  /// Whole nanoseconds of at most a day, since no job runs longer.
  fileprivate mutating func code<Coder: WireCoder>(by coder: inout Coder) throws(Coder.Failure) {
    var nanoseconds = map(\.wholeNanoseconds)
    try coder.code("a timing", &nanoseconds, in: 0...86_400_000_000_000)
    self = nanoseconds.map { .nanoseconds($0) }
  }
}

extension ImageError {
  /// The kinds of errors on the wire. Errors that a pipeline cannot throw become internal errors.
  private var kind: UInt8 {
    switch self {
    case .invalidParameter: 1
    case .unsupportedFormat: 2
    case .undecodable: 3
    case .tooManyPixels: 4
    case .tooManyFrames: 5
    case .sourceTooLarge: 6
    case .watermark: 8
    case .ofVariant: 9
    case .tooCostly(_, let key): key == nil ? 10 : key == ImagingLimits.memoryKey ? 13 : 12
    case .outOfMemory: 11
    case .unsupportedKind: 14
    default: 7
    }
  }

  /// The texts of an error that has texts.
  private var texts: [String] {
    switch self {
    case .invalidParameter(let name, let value, let allowed): [name, value, allowed]
    case .unsupportedFormat(let text), .undecodable(let text), .tooCostly(let text, _),
      .unsupportedKind(let text), .outOfMemory(let text), .internal(let text):
      [text]
    default: [logDetail ?? code]
    }
  }

  /// The numbers of an error that has numbers, the limit last.
  private var numbers: (found: Int, limit: Int) {
    switch self {
    case .tooManyPixels(let pixels, let limit): (min(pixels, mostPixels), limit)
    case .tooManyFrames(let frames, let limit): (frames, limit)
    case .sourceTooLarge(let limit, _): (0, limit)
    default: (0, 0)
    }
  }

  /// The error that this one wraps.
  private var wrapped: ImageError {
    switch self {
    case .watermark(let cause), .ofVariant(let cause): cause
    default: .draining
    }
  }

  /// - Parameter holders: the allowed kinds that wrap another error. A variant's error may wrap a
  ///   watermark's error. A watermark's error wraps neither.
  fileprivate mutating func code<Coder: WireCoder>(
    by coder: inout Coder, holders: Set<UInt8> = [8, 9]
  ) throws(Coder.Failure) {
    var kind = kind
    try coder.code(&kind)
    var (found, limit) = numbers
    switch kind {
    case 4:
      try coder.code("pixels", &found, in: 0...mostPixels)
      try coder.code("limit", &limit, in: 0...mostPixels)
      self = .tooManyPixels(pixels: found, limit: limit)
    case 5:
      try coder.code("frames", &found, in: 0...Int(Int32.max))
      try coder.code("limit", &limit, in: 0...Int(Int32.max))
      self = .tooManyFrames(frames: found, limit: limit)
    case 6:
      try coder.code("limit", &limit, in: 0...mostPixels)
      self = .sourceTooLarge(limit: limit)
    case 8 where holders.contains(kind):
      var cause = wrapped
      try cause.code(by: &coder, holders: [])
      self = .watermark(cause)
    case 9 where holders.contains(kind):
      var cause = wrapped
      try cause.code(by: &coder, holders: [8])
      self = .ofVariant(cause)
    case 1:
      var texts = texts + ["", ""]
      for place in 0..<3 { try coder.code("text", &texts[place]) }
      self = .invalidParameter(name: texts[0], value: texts[1], allowed: texts[2])
    default:
      var text = texts[0]
      try coder.code("text", &text)
      let error = Self.error(of: kind, saying: text)
      try coder.check(error != nil, "error is \(kind)")
      self = error ?? self
    }
  }

  /// Returns the error of a kind that has one text.
  private static func error(of kind: UInt8, saying text: String) -> ImageError? {
    switch kind {
    case 2: .unsupportedFormat(detail: text)
    case 3: .undecodable(detail: text)
    case 7: .internal(detail: text)
    case 10: .tooCostly(reason: text)
    case 11: .outOfMemory(detail: text)
    case 12: .tooCostly(reason: text, key: ImagingLimits.timeKey)
    case 13: .tooCostly(reason: text, key: ImagingLimits.memoryKey)
    case 14: .unsupportedKind(reason: text)
    default: nil
    }
  }
}
