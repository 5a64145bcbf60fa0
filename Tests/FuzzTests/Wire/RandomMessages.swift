// RandomMessages: valid messages between the server and its workers, with any value in each field.

import ImagingWire
import Model
import TestSupport

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

  private mutating func any<Value: CaseIterable>(_: Value.Type, else value: Value) -> Value {
    Value.allCases.randomElement(using: &self) ?? value
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
    limits.failOn = any(FailOn.self, else: .none)
    limits.maximumSeconds = edge(0...1e9)
    limits.keepsPalettes = isOne(of: 2)
    limits.efforts.png = edge(EncoderEfforts.pngRange)
    limits.efforts.gif = edge(EncoderEfforts.gifRange)
    limits.efforts.webp = edge(EncoderEfforts.webpRange)
    limits.efforts.avif = edge(EncoderEfforts.avifRange)
    return JobMessage(
      id: next(), transform: transform(), density: edge(1...3), limits: limits,
      offset: edge(0...Int.max / 2), count: edge(0...Int.max / 2), overlay: maybe { $0.overlay() },
      verifies: isOne(of: 2), isRecompression: isOne(of: 2), isQuickOnly: isOne(of: 2))
  }

  private mutating func overlay() -> OverlayMessage {
    var placement = WatermarkPlacement()
    placement.position = any(Position.self, else: .center)
    placement.scale = maybe { $0.edge(Double.leastNonzeroMagnitude...1) }
    placement.opacity = edge(Double.leastNonzeroMagnitude...1)
    placement.repeats = isOne(of: 2)
    return OverlayMessage(
      offset: edge(0...Int.max / 2), count: edge(0...Int.max / 2), density: edge(1...3),
      placement: placement)
  }

  private mutating func color() -> Color {
    let parts = bytes(4)
    return Color(red: parts[0], green: parts[1], blue: parts[2], alpha: parts[3])
  }

  private mutating func transform() -> Transform {
    var transform = Transform()
    transform.frame = maybe { $0.edge(0...Int.max) }
    transform.rotation = any(Rotation.self, else: .none)
    transform.flip = any(Flip.self, else: .none)
    transform.crop = maybe {
      PixelArea(
        x: $0.edge(Selection.cropRange), y: $0.edge(Selection.cropRange),
        size: PixelSize(width: $0.edge(1...10_000_000), height: $0.edge(1...10_000_000)))
    }
    transform.trim = maybe { $0.edge(Selection.trimRange) }
    transform.scale = maybe { $0.edge(Double.leastNonzeroMagnitude...10) }
    transform.width = maybe { $0.edge(Sizing.sideRange) }
    transform.height = maybe { $0.edge(Sizing.sideRange) }
    transform.fit = any(Fit.self, else: .inside)
    transform.position = any(Position.self, else: .center)
    transform.focalPoint = maybe { FocalPoint(x: $0.edge(0...1), y: $0.edge(0...1)) }
    transform.enlarge = isOne(of: 2)
    transform.limitBytes = edge(1...Int.max)
    transform.effects = effects()
    let range = OutputOptions.qualityRange
    transform.format = maybe { $0.any(ImageFormat.self, else: .png) }
    transform.accepted = ImageFormat.allCases.filter { _ in isOne(of: 3) }
    transform.quality = maybe { $0.edge(range) }
    transform.qualities.jpeg = edge(range)
    transform.qualities.webp = edge(range)
    transform.qualities.avif = edge(range)
    transform.qualities.jxl = edge(range)
    transform.maxBytes = maybe { $0.edge(1...Int.max) }
    transform.background = color()
    transform.isAnimated = isOne(of: 2)
    transform.stripsMetadata = isOne(of: 2)
    transform.progressive = isOne(of: 2)
    transform.product = pick(
      .image, .info(nil), .info(any(PlaceholderKind.self, else: .lqip)),
      .placeholder(any(PlaceholderKind.self, else: .lqip)))
    return transform
  }

  private mutating func effects() -> Effects {
    var effects = Effects()
    effects.blur = maybe { $0.edge(Effects.blurRange) }
    effects.sharpen = maybe { $0.edge(Effects.sharpenRange) }
    effects.radius = maybe { $0.pick(.maximum, .points($0.edge(CornerRadius.pointRange))) }
    effects.tint = maybe { $0.color() }
    effects.isGrayscale = isOne(of: 2)
    effects.brightness = edge(Effects.factorRange)
    effects.saturation = edge(Effects.factorRange)
    return effects
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
