// MessageTests: messages out of range and malformed ones are refused. `MessageFuzzTests` reads back
// those of any values.

import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct MessageTests {
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
      isRecompression: true, faces: faces)
  }

  private static let faces = [
    PixelArea(x: 0, y: 0, size: PixelSize(width: 10_000_000, height: 1)),
    PixelArea(x: 7, y: 10_000_000, size: PixelSize(width: 1, height: 9)),
  ]

  @Test func `faces arrive, and those out of range are refused`() throws {
    var result = Self.fullResult
    for faces in [nil, [], Self.faces, Array(repeating: Self.faces[0], count: 32)] {
      result.report.faces = faces
      let read = try AnswerMessage(decoding: AnswerMessage.result(result).encoded())
      #expect(read == .result(result))
    }
    #expect(try JobMessage(decoding: Self.fullJob.encoded()) == Self.fullJob)
    for (x, y, width, height) in [
      (-1, 0, 1, 1), (0, 10_000_001, 1, 1), (0, 0, 0, 1), (0, 0, 1, -1),
    ] {
      let face = PixelArea(x: x, y: y, size: PixelSize(width: width, height: height))
      result.report.faces = [face]
      let bytes = AnswerMessage.result(result).encoded()
      #expect(throws: WireError.self, "\(face)") { try AnswerMessage(decoding: bytes) }
    }
    result.report.faces = Array(repeating: Self.faces[0], count: 33)
    let bytes = AnswerMessage.result(result).encoded()
    #expect(throws: WireError.self) { try AnswerMessage(decoding: bytes) }
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
      { $0.size = PixelSize(width: 0, height: 1) },
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

  private func job(_ change: (inout WatermarkPlacement) -> Void = { _ in }) -> JobMessage {
    var placement = WatermarkPlacement()
    change(&placement)
    return JobMessage(
      id: 7, transform: Transform(), density: 1, limits: ImagingLimits(), offset: 0, count: 9,
      overlay: OverlayMessage(offset: 4_096, count: 1 << 40, density: 3, placement: placement))
  }

  @Test func `a watermark out of range, and a placement without one, are refused`() {
    let changes: [(inout WatermarkPlacement) -> Void] = [
      { $0.scale = 0 }, { $0.scale = 1.01 }, { $0.scale = .nan }, { $0.opacity = 0 },
      { $0.opacity = -1 }, { $0.opacity = .infinity },
    ]
    for (index, change) in changes.enumerated() {
      let bytes = job(change).encoded()
      #expect(throws: WireError.self, "change \(index)") { try JobMessage(decoding: bytes) }
    }
    // The flag before the last four says whether there is a watermark.
    let whole = job { $0.scale = 0.5 }.encoded()
    let overlay = 1 + 3 * 8
    var bare = whole
    bare.removeSubrange(whole.count - 4 - overlay + 1..<whole.count - 4)
    bare[bare.count - 5] = 0
    #expect(throws: WireError.malformed("a placement without a watermark")) {
      try JobMessage(decoding: bare)
    }
  }

  @Test func `a watermark error within another is refused`() {
    let nested = AnswerMessage.failure(id: 5, .watermark(.watermark(.undecodable(detail: ""))))
    #expect(throws: WireError.self) { try AnswerMessage(decoding: nested.encoded()) }
  }
}
