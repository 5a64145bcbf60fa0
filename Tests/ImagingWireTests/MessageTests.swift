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
    transform.position = .attention
    transform.accepted = [.avif, .jxl, .webp]
    transform.qualities[.jpeg] = 1
    transform.background = Color(red: 1, green: 2, blue: 3, alpha: 4)
    transform.effects.radius = .maximum
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
    #expect(try AnswerMessage(decoding: AnswerMessage.result(result).encoded()) == .result(result))
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

  @Test(arguments: ImageFormat.allCases)
  func `every format is read back unchanged`(format: ImageFormat) throws {
    var limits = ImagingLimits()
    limits.formats = [format]
    limits.maximumSeconds = 2.5
    let job = JobMessage(
      id: 1, transform: Transform(), density: 2, limits: limits, offset: 0, count: 1,
      isQuickOnly: true)
    #expect(try JobMessage(decoding: job.encoded()) == job)
  }

  @Test func `a transform that no query has is refused`() {
    let changes: [(inout Transform) -> Void] = [
      { $0.focalPoint = FocalPoint(x: .nan, y: 0) }, { $0.trim = 256 }, { $0.effects.blur = 251 },
      { $0.effects.radius = .points(-1) }, { $0.format = .svg }, { $0.accepted = [.png] },
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
      let bytes = AnswerMessage.result(result).encoded()
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
    let result = AnswerMessage.result(Self.fullResult).encoded()
    for count in 0..<result.count {
      #expect(throws: WireError.self) { try AnswerMessage(decoding: Array(result.prefix(count))) }
    }
    #expect(throws: WireError.self) { try AnswerMessage(decoding: result + [0]) }
  }
}
