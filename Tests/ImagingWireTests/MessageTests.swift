// MessageTests: messages are read back unchanged, and malformed ones are refused.

import Model
import TestSupport
import Testing

@testable import ImagingWire

@Suite(.onOwnThreads) struct MessageTests {
  static let errors: [ImageError] = [
    .invalidParameter(name: "frame", value: "9", allowed: "0 to 8 – „so viele“"),
    .unsupportedFormat(detail: "PDF"), .unsupportedKind(reason: "a palette"),
    .undecodable(detail: ""),
    .tooManyPixels(pixels: 2_500_000_000, limit: 150_000_000),
    .tooManyFrames(frames: 1_001, limit: 1_000), .sourceTooLarge(limit: 12),
    .internal(detail: "no memory"), .internal(detail: ""), .tooCostly(reason: "5000 scans"),
    .tooCostly(reason: "9 s", key: ImagingLimits.timeKey),
    .tooCostly(reason: "9 MiB", key: ImagingLimits.memoryKey),
    .outOfMemory(detail: "VipsImage"), .ofVariant(.undecodable(detail: "frame 3")),
    .ofVariant(.tooCostly(reason: "")),
  ]

  static var fullJob: JobMessage {
    var transform = Transform()
    transform.scale = 0.37
    transform.width = 1
    transform.height = 65_535
    transform.fit = .contain
    transform.position = .attention
    transform.enlarge = true
    transform.format = .webp
    transform.quality = 100
    transform.qualities.jpeg = 1
    transform.qualities.webp = 2
    transform.qualities.avif = 99
    transform.qualities.jxl = 100
    transform.background = Color(red: 1, green: 2, blue: 3, alpha: 4)
    transform.limitBytes = 1
    transform.frame = 7
    transform.progressive = true
    transform.focalPoint = FocalPoint(x: 0, y: 0.125)
    transform.rotation = .threeQuarters
    transform.flip = .both
    transform.crop = PixelArea(x: 0, y: 10_000_000, size: PixelSize(width: 1, height: 10_000_000))
    transform.trim = 255
    transform.accepted = [.avif, .jxl, .webp]
    transform.maxBytes = .max
    transform.isAnimated = false
    transform.stripsMetadata = false
    transform.effects = effects
    transform.product = .info(.thumbhash)
    var limits = ImagingLimits()
    limits.formats = [.jpeg, .svg]
    limits.maximumPixels = 1
    limits.maximumFrames = 2
    limits.efforts.png = 9
    limits.keepsPalettes = false
    limits.efforts.gif = 10
    limits.efforts.webp = 0
    limits.efforts.avif = 9
    return JobMessage(
      id: .max, transform: transform, density: 3, limits: limits, offset: 4_096, count: 1 << 40,
      isRecompression: true)
  }

  static var effects: Effects {
    var effects = Effects()
    effects.blur = 250
    effects.sharpen = 0.1
    effects.radius = .points(65_535)
    effects.tint = Color(red: 5, green: 6, blue: 7, alpha: 8)
    effects.isGrayscale = true
    effects.brightness = 0
    effects.saturation = 10
    return effects
  }

  static var fullResult: ResultMessage {
    var timings = Timings()
    timings.decode = .milliseconds(3)
    timings.transform = .nanoseconds(1)
    timings.encode = .seconds(2)
    return ResultMessage(
      id: 12,
      report: RenderReport(
        content: .image(fullImage), digest: "0123456789abcdef0123456789abcdef", timings: timings),
      byteCount: 18_000)
  }

  static var fullImage: RenderedImage {
    RenderedImage(
      format: .gif, size: PixelSize(width: 4_892, height: 3_214), frames: 17, density: 1.864,
      scaledDownFrom: PixelSize(width: 5_250, height: 3_450), droppedFrames: 3)
  }

  @Test func `a job with all fields set is read back unchanged`() throws {
    #expect(try JobMessage(decoding: Self.fullJob.encoded()) == Self.fullJob)
  }

  @Test func `the size before scaling down may exceed any image`() throws {
    var result = Self.fullResult
    var image = Self.fullImage
    image.scaledDownFrom = PixelSize(width: 655_350, height: 6_553_500_000_000)
    result.report.content = .image(image)
    #expect(try AnswerMessage(decoding: result.encoded()) == .result(result))
  }

  @Test(arguments: [(0, 3), (1, 3), (3, 3), (5, 5)])
  func `more effort is that of WebP and AVIF alone, and never less`(avif: Int, more: Int) {
    var limits = ImagingLimits()
    limits.efforts.avif = avif
    var expected = limits
    expected.efforts.webp = 6
    expected.efforts.avif = more
    #expect(limits.withMoreEffort == expected)
  }

  @Test func `a job with default fields is read back unchanged`() throws {
    let job = JobMessage(
      id: 0, transform: Transform(), density: 1, limits: ImagingLimits(), offset: 0, count: 0)
    #expect(try JobMessage(decoding: job.encoded()) == job)
  }

  @Test(arguments: Fit.allCases, Position.allCases)
  func `every fit, position and format is read back unchanged`(fit: Fit, position: Position) throws
  {
    var transform = Transform()
    transform.fit = fit
    transform.position = position
    for format in ImageFormat.allCases {
      transform.format = format
      var limits = ImagingLimits()
      limits.formats = [format]
      limits.maximumSeconds = 2.5
      let job = JobMessage(
        id: 1, transform: transform, density: 2, limits: limits, offset: 0, count: 1,
        isQuickOnly: true)
      #expect(try JobMessage(decoding: job.encoded()) == job)
    }
  }

  @Test(arguments: Rotation.allCases, Flip.allCases)
  func `every rotation, flip, radius and product is read back unchanged`(
    rotation: Rotation, flip: Flip
  ) throws {
    var transform = Transform()
    transform.rotation = rotation
    transform.flip = flip
    let products: [Product] =
      [.image, .info(nil)] + PlaceholderKind.allCases.map(Product.info)
      + PlaceholderKind.allCases.map(Product.placeholder)
    for radius in [nil, CornerRadius.maximum, .points(1)] {
      for product in products {
        transform.effects.radius = radius
        transform.product = product
        let job = JobMessage(
          id: 1, transform: transform, density: 2, limits: ImagingLimits(), offset: 0, count: 1)
        #expect(try JobMessage(decoding: job.encoded()) == job)
      }
    }
  }

  @Test func `a transform out of range is refused`() {
    let changes: [(inout Transform) -> Void] = [
      { $0.focalPoint = FocalPoint(x: -0.1, y: 0) }, { $0.focalPoint = FocalPoint(x: 0, y: 1.1) },
      { $0.focalPoint = FocalPoint(x: .nan, y: 0) },
      { $0.crop = PixelArea(x: -1, y: 0, size: PixelSize(width: 1, height: 1)) },
      { $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 0, height: 1)) },
      { $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 1, height: 10_000_001)) },
      { $0.trim = 0 }, { $0.trim = 256 }, { $0.maxBytes = 0 },
      { $0.effects.blur = 0.2 }, { $0.effects.blur = 251 }, { $0.effects.blur = .nan },
      { $0.effects.sharpen = 0 }, { $0.effects.sharpen = .infinity },
      { $0.effects.radius = .points(65_536) }, { $0.effects.radius = .points(-1) },
      { $0.effects.brightness = -0.1 }, { $0.effects.saturation = 10.1 },
    ]
    for (index, change) in changes.enumerated() {
      var transform = Transform()
      change(&transform)
      let job = JobMessage(
        id: 1, transform: transform, density: 1, limits: ImagingLimits(), offset: 0, count: 1)
      let bytes = job.encoded()
      #expect(throws: WireError.self, "change \(index)") { try JobMessage(decoding: bytes) }
    }
  }

  @Test func `results are read back unchanged`() throws {
    var plain = Self.fullResult
    var described = Self.fullResult
    var searched = Self.fullResult
    plain.report.content = .image(
      RenderedImage(format: .png, size: PixelSize(width: 1, height: 1), density: 1))
    plain.report.timings = Timings()
    described.report.content = .sourceDescription
    described.report.isDamaged = true
    var image = Self.fullImage
    image.quality = 1
    searched.report.content = .image(image)
    for result in [Self.fullResult, plain, described, searched] {
      let message = AnswerMessage.result(result)
      #expect(try AnswerMessage(decoding: message.encoded()) == message)
    }
    for report in [SandboxReport(), SandboxReport(landlock: 7, seccomp: true)] {
      let message = AnswerMessage.ready(report)
      #expect(try AnswerMessage(decoding: message.encoded()) == message)
    }
  }

  @Test(arguments: errors)
  func `pipeline errors are read back unchanged`(error: ImageError) throws {
    let message = AnswerMessage.failure(id: 5, error)
    #expect(try AnswerMessage(decoding: message.encoded()) == message)
  }

  @Test func `an error of another part arrives as an internal error`() throws {
    let message = AnswerMessage.failure(id: 5, .draining)
    let read = try AnswerMessage(decoding: message.encoded())
    #expect(read == .failure(id: 5, .internal(detail: "draining")))
  }

  @Test func `a long text is truncated, even inside a character`() throws {
    for padding in 0..<4 {
      let long =
        String(repeating: "x", count: padding) + String(repeating: "𝄞", count: 4_000)
      let message = AnswerMessage.failure(id: 5, .undecodable(detail: long))
      guard
        case .failure(_, .undecodable(let detail)) = try AnswerMessage(
          decoding: message.encoded())
      else {
        Issue.record("another message")
        return
      }
      #expect((2_000...2_048).contains(detail.utf8.count))
    }
  }

  @Test func `a result out of range is refused`() {
    let ofImage: [(inout RenderedImage) -> Void] = [
      { $0.format = .svg }, { $0.format = .heic }, { $0.size = PixelSize(width: 0, height: 1) },
      { $0.size = PixelSize(width: 1, height: 10_000_001) }, { $0.frames = 0 },
      { $0.density = 0 }, { $0.density = .nan }, { $0.density = .infinity },
      { $0.density = -1 }, { $0.scaledDownFrom = PixelSize(width: -1, height: 1) },
      { $0.scaledDownFrom = PixelSize(width: 1, height: .max) },
      { $0.quality = 0 }, { $0.quality = 101 }, { $0.droppedFrames = 1 << 31 },
    ]
    let changes: [(inout ResultMessage) -> Void] = [
      { $0.report.digest = "" }, { $0.report.digest = String(repeating: "A", count: 32) },
      { $0.report.digest = String(repeating: "a", count: 33) },
      { $0.report.timings.decode = .seconds(-1) },
      { $0.report.timings.encode = .seconds(86_401) },
      { $0.byteCount = 0 }, { $0.byteCount = -1 },
    ]
    let all =
      changes
      + ofImage.map { change in
        { result in
          var image = Self.fullImage
          change(&image)
          result.report.content = .image(image)
        }
      }
    for (index, change) in all.enumerated() {
      var result = Self.fullResult
      change(&result)
      let bytes = result.encoded()
      #expect(throws: WireError.self, "change \(index)") { try AnswerMessage(decoding: bytes) }
    }
  }

  @Test func `a message of another version or kind is refused`() {
    var bytes = Self.fullJob.encoded()
    #expect(throws: WireError.self) { try AnswerMessage(decoding: bytes) }
    bytes[0] = WireKind.version + 1
    #expect(throws: WireError.malformed("version \(bytes[0]), not \(WireKind.version)")) {
      try JobMessage(decoding: bytes)
    }
    #expect(throws: WireError.self) {
      try JobMessage(decoding: AnswerMessage.ready(SandboxReport()).encoded())
    }
    #expect(throws: WireError.self) { try AnswerMessage(decoding: []) }
  }

  @Test func `truncated messages and trailing bytes are refused`() {
    let job = Self.fullJob.encoded()
    for count in 0..<job.count {
      #expect(throws: WireError.self) { try JobMessage(decoding: Array(job.prefix(count))) }
    }
    #expect(throws: WireError.self) { try JobMessage(decoding: job + [0]) }
    let result = Self.fullResult.encoded()
    for count in 0..<result.count {
      #expect(throws: WireError.self) { try AnswerMessage(decoding: Array(result.prefix(count))) }
    }
    #expect(throws: WireError.self) { try AnswerMessage(decoding: result + [0]) }
  }

  @Test func `random bytes and random changes decode to a value or throw WireError`() {
    // Given: random messages, and valid ones with a few changed bytes, the same in each run
    var random = SeededGenerator(seed: 2_026)
    let good =
      [Self.fullJob.encoded(), Self.fullResult.encoded()]
      + Self.errors.map { AnswerMessage.failure(id: 1, $0).encoded() }
    var refused = 0
    for round in 0..<20_000 {
      var bytes: [UInt8]
      if round.isMultiple(of: 2) {
        bytes = (0..<Int.random(in: 0...120, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
        if bytes.count > 1 {
          bytes[0] = 1
          bytes[1] = UInt8(round % 6)
        }
      } else {
        bytes = good[round / 2 % good.count]
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          bytes[Int.random(in: 2..<bytes.count, using: &random)] = .random(
            in: 0...255, using: &random)
        }
      }
      // When they are read, then the process survives, and typed throws allow no other error.
      do throws(WireError) { _ = try JobMessage(decoding: bytes) } catch { refused += 1 }
      do throws(WireError) { _ = try AnswerMessage(decoding: bytes) } catch { refused += 1 }
    }
    #expect(refused > 20_000)
  }
}
