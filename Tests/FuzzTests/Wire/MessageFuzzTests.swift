// MessageFuzzTests: messages survive their encoding, and damaged ones are refused or canonical.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct MessageFuzzTests {
  @Test func `a job of any values is read back the same`() throws {
    try check(
      "jobs", make: { $0.job() }, encode: { $0.encoded() },
      decode: { bytes throws(WireError) in try JobMessage(decoding: bytes) })
  }

  @Test func `an answer of any values is read back the same`() throws {
    try check(
      "answers", make: { try AnswerMessage(decoding: $0.answer().encoded()) },
      encode: { $0.encoded() },
      decode: { bytes throws(WireError) in try AnswerMessage(decoding: bytes) })
  }

  /// Checks valid messages, then damaged ones: these are malformed, or the encoding of what they
  /// are read as. All fit the receiver's buffer.
  private func check<Message: Equatable>(
    _ name: String, make: (inout SeededGenerator) throws -> Message, encode: (Message) -> [UInt8],
    decode: ([UInt8]) throws(WireError) -> Message
  ) throws {
    var read = 0
    var refused = 0
    try Fuzz.run(
      name, usual: 3_000,
      make: { generator in
        let message = try make(&generator)
        var bytes = encode(message)
        try hold(bytes.count <= WireKind.longestMessage, "\(bytes.count) bytes of \(message)")
        try hold(try decode(bytes) == message, "\(message) is read back otherwise")
        Damage.apply(to: &bytes, using: &generator)
        return bytes
      },
      check: { bytes in
        let message: Message
        do throws(WireError) {
          message = try decode(bytes)
        } catch {
          guard case .malformed = error else { throw error }
          refused += 1
          return
        }
        read += 1
        try hold(encode(message) == bytes, "\(message) has two forms")
      })
    #expect(read > 0 && refused > 0)
  }
}

extension SeededGenerator {
  /// Returns a value or `nil`.
  fileprivate mutating func maybe<Value>(_ make: (inout SeededGenerator) -> Value) -> Value? {
    isOne(of: 2) ? make(&self) : nil
  }

  /// Returns a number of a range, often one of its ends.
  private mutating func edge(_ range: ClosedRange<Int>) -> Int {
    pick(range.lowerBound, range.upperBound, number(range))
  }

  private mutating func edge(_ range: ClosedRange<Double>) -> Double {
    pick(range.lowerBound, range.upperBound, .random(in: range, using: &self))
  }

  private mutating func text() -> String {
    sentence(of: ["a", " ", "é", "„", "😀", "\0", String(repeating: "x", count: 600)], most: 6)
  }

  mutating func job() -> JobMessage {
    var limits = ImagingLimits()
    limits.formats = Set(ImageFormat.allCases.filter { _ in isOne(of: 2) })
    limits.maximumPixels = edge(0...Int.max)
    limits.maximumFrames = edge(0...Int.max)
    limits.maximumResultPixels = edge(1...Int.max / 4)
    limits.failOn = FailOn.allCases.randomElement(using: &self) ?? .none
    limits.maximumSeconds = edge(0...1e9)
    limits.keepsPalettes = isOne(of: 2)
    limits.efforts.png = edge(EncoderEfforts.pngRange)
    limits.efforts.gif = edge(EncoderEfforts.gifRange)
    limits.efforts.webp = edge(EncoderEfforts.webpRange)
    limits.efforts.avif = edge(EncoderEfforts.avifRange)
    let draft = draft()
    let isMarked = draft.placement != WatermarkPlacement() || isOne(of: 2)
    let overlay = OverlayMessage(
      offset: edge(0...Int.max / 2), count: edge(0...Int.max / 2), density: edge(1...3),
      placement: draft.placement)
    return JobMessage(
      id: next(), transform: draft.transform, density: edge(1...3), limits: limits,
      offset: edge(0...Int.max / 2), count: edge(0...Int.max / 2),
      overlay: isMarked ? overlay : nil,
      verifies: isOne(of: 2), isRecompression: isOne(of: 2), isQuickOnly: isOne(of: 2))
  }

  /// Returns what a query of any parameters asks for, in the form that a worker gets.
  private mutating func draft() -> TransformDraft {
    var draft = TransformDraft()
    for row in TransformParameter.table where row.group != nil && isOne(of: 3) {
      _ = row.read(ParameterText(value(of: row)), &draft)
    }
    // A description of a source has no format.
    if draft.product == nil || draft.product == .image { draft.isDescription = isOne(of: 8) }
    draft.transform.output.accepted = ImageFormat.negotiable.filter { _ in isOne(of: 3) }
    for format in ImageFormat.lossy where isOne(of: 3) {
      draft.transform.output.qualities[format] = edge(OutputOptions.qualityRange)
    }
    draft.transform.product = draft.product ?? .image
    var whole = TransformDraft(draft.transform)
    whole.placement = draft.placement
    return TransformDraft(text: whole.text) ?? whole
  }

  /// Returns a value of a parameter, often one of its ends.
  private mutating func value(of row: TransformParameter) -> String {
    if let name = row.allowed.names.randomElement(using: &self), isOne(of: 2) { return name }
    switch row.allowed.numbers {
    case .whole(let range): return "\(edge(range))"
    case .decimal(let range), .decimalAbove(let range):
      // Multiples of a power of two have few digits.
      return "\((edge(range) * 1_024).rounded(.up) / 1_024)"
    case nil: break
    }
    switch row.allowed.form {
    case .color: return pick("f80", "ff8000", "FF800040")
    case .point: return "\(Double(number(0...64)) / 64),1"
    case .area:
      return [edge(0...10_000_000), number(0...9), edge(1...10_000_000), 1]
        .map { "\($0)" }.joined(separator: ",")
    default: return row.allowed.names.first ?? ""
    }
  }

  mutating func answer() -> AnswerMessage {
    switch number(0...3) {
    case 0: return .ready(SandboxReport(landlock: number(0...255), seccomp: isOne(of: 2)))
    case 1: return .takesLong(id: next(), bytes: Int.random(in: 0...1 << 53, using: &self))
    case 2: return .failure(id: next(), error())
    default: return .result(result())
    }
  }

  private mutating func error() -> ImageError {
    let cause: ImageError = pick(
      .undecodable(detail: text()), .unsupportedFormat(detail: text()),
      .unsupportedKind(reason: text()), .internal(detail: text()),
      .tooCostly(reason: text()), .tooCostly(reason: text(), key: ImagingLimits.timeKey),
      .tooCostly(reason: text(), key: ImagingLimits.memoryKey),
      .outOfMemory(detail: text()),
      .invalidParameter(name: text(), value: text(), allowed: text()),
      .tooManyPixels(pixels: edge(0...1 << 53), limit: edge(0...1 << 53)),
      .tooManyFrames(frames: edge(0...Int(Int32.max)), limit: edge(0...Int(Int32.max))),
      .sourceTooLarge(limit: edge(0...1 << 53)))
    return pick(cause, .watermark(cause), .ofVariant(cause), .ofVariant(.watermark(cause)))
  }

  private mutating func result() -> ResultMessage {
    var timings = Timings()
    timings.decode = maybe { .nanoseconds($0.edge(0...86_400_000_000_000)) }
    timings.encode = maybe { .nanoseconds($0.edge(0...86_400_000_000_000)) }
    let content: VariantContent =
      isOne(of: 3)
      ? .sourceDescription
      : .image(
        RenderedImage(
          format: ImageFormat.outputs.randomElement(using: &self) ?? .png, size: size(),
          frames: edge(1...Int(Int32.max)), density: edge(Double.leastNormalMagnitude...1_000),
          scaledDownFrom: maybe { $0.size() },
          quality: maybe { $0.edge(OutputOptions.qualityRange) },
          droppedFrames: edge(0...Int(Int32.max))))
    return ResultMessage(
      id: next(),
      report: RenderReport(
        content: content, digest: String((0..<32).map { _ in pick("0", "9", "a", "f") }.joined()),
        timings: timings, isDamaged: isOne(of: 2)),
      byteCount: edge(1...Int.max / 2))
  }

  private mutating func size() -> PixelSize {
    PixelSize(width: edge(1...10_000_000), height: edge(1...10_000_000))
  }
}
