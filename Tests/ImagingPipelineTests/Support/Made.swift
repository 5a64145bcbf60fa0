// Made: runs the pipeline for tests and holds its result.

@testable import Core
import ImagingPipeline
import TestSupport

/// A watermark of a test.
struct Mark {
  var bytes: [UInt8]
  var density = 1
  var placement = WatermarkPlacement()

  init(_ bytes: [UInt8], density: Int = 1, change: (inout WatermarkPlacement) -> Void = { _ in }) {
    self.bytes = bytes
    self.density = density
    change(&placement)
  }
}

/// A result with its bytes copied out.
struct Made {
  let report: RenderReport
  let bytes: [UInt8]

  /// Whether the result is a description rather than an image.
  var isDescription: Bool { report.content == .sourceDescription }
  var format: ImageFormat { image.format }
  var size: PixelSize { image.size }
  var frames: Int { image.frames }
  var density: Double { image.density }
  var scaledDownFrom: PixelSize? { image.scaledDownFrom }
  var droppedFrames: Int { image.droppedFrames }
  var quality: Int? { image.quality }
  var digest: String { report.digest }
  var timings: Timings { report.timings }
  var isDamaged: Bool { report.isDamaged }

  /// The image. A description has none, and a test that asks for one ends here.
  private var image: RenderedImage {
    guard let image = report.content.image else { preconditionFailure("a description") }
    return image
  }

  private static let pipeline: Result<Pipeline, any Error> = Result {
    // Tests run in parallel, and two threads must not start libvips at once.
    TestImages.start()
    return try Pipeline()
  }

  /// Runs the pipeline. The usual parameters have labels; `change` sets all others.
  init(
    _ source: [UInt8], density: Int = 1, limits: ImagingLimits = ImagingLimits(),
    mark: Mark? = nil, verifies: Bool = false, width: Int? = nil, height: Int? = nil,
    fit: Fit = .inside, format: ImageFormat? = nil, quality: Int? = nil, frame: Int? = nil,
    faces: [PixelArea]? = nil, change: (inout Transform) -> Void = { _ in }
  ) throws {
    var transform = Transform()
    (transform.width, transform.height, transform.fit) = (width, height, fit)
    (transform.format, transform.quality, transform.frame) = (format, quality, frame)
    change(&transform)
    let image = try Self.run(
      try Self.pipeline.get(), on: source, transform: transform, density: density, limits: limits,
      mark: mark, verifies: verifies, faces: faces)
    report = image.report
    bytes = image.withUnsafeBytes { Array($0) }
  }

  private static func run(
    _ pipeline: Pipeline, on source: [UInt8], transform: Transform, density: Int,
    limits: ImagingLimits, mark: Mark?, verifies: Bool, faces: [PixelArea]?
  ) throws(ImageError) -> EncodedImage {
    let copy = copied(source)
    let copyOfMark = copied(mark?.bytes ?? [])
    defer {
      copy.deallocate()
      copyOfMark.deallocate()
    }
    return try pipeline.process(
      UnsafeRawBufferPointer(copy), transform: transform, density: density, limits: limits,
      overlay: mark.map {
        OverlaySource(
          bytes: UnsafeRawBufferPointer(copyOfMark), density: $0.density, placement: $0.placement)
      }, verifies: verifies, faces: faces)
  }

  private static func copied(_ bytes: [UInt8]) -> UnsafeMutableRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyBytes(from: bytes)
    return copy
  }

  /// Returns the decoded result, or one frame of an animation.
  func pixels(frame: Int? = nil) throws -> Pixels { try Pixels(decoding: bytes, frame: frame) }

  /// Returns pixels after effects, encoded without loss.
  static func pixels(
    of pixels: Pixels, _ change: (inout Effects) -> Void
  ) throws -> Pixels {
    try Made(try TestImages.encode(pixels, as: ".png")) {
      $0.format = .png
      change(&$0.effects)
    }.pixels()
  }

  /// Returns the error for a source; `nil` if the pipeline returns an image.
  static func error(
    _ source: [UInt8], limits: ImagingLimits = ImagingLimits(), mark: Mark? = nil,
    width: Int? = nil, height: Int? = nil, fit: Fit = .inside, format: ImageFormat? = nil,
    quality: Int? = nil, frame: Int? = nil, change: (inout Transform) -> Void = { _ in }
  ) -> ImageError? {
    do {
      _ = try Made(
        source, limits: limits, mark: mark, width: width, height: height, fit: fit, format: format,
        quality: quality, frame: frame, change: change)
      return nil
    } catch {
      return error as? ImageError
    }
  }

  /// Returns what a job is estimated to take before each of its decodings.
  ///
  /// - Parameter isBegun: whether the job runs; otherwise it ends at its first estimate.
  static func costs(
    of source: [UInt8], limits: ImagingLimits = ImagingLimits(), verifies: Bool = false,
    faces: [PixelArea]? = nil, isBegun: Bool = false, change: (inout Transform) -> Void = { _ in }
  ) throws -> [JobCost] {
    var transform = Transform()
    change(&transform)
    var costs: [JobCost] = []
    do {
      try source.withUnsafeBytes { bytes in
        _ = try pipeline.get().process(
          bytes, transform: transform, density: 1, limits: limits, verifies: verifies,
          faces: faces,
          admits: {
            costs.append($0)
            return isBegun
          })
      }
    } catch ImageError.cancelled where !isBegun {}
    return costs
  }

  /// Returns whether a source is refused as damaged.
  static func isUndecodable(
    _ source: [UInt8], change: (inout Transform) -> Void = { _ in }
  ) -> Bool {
    error(source, change: change).isUndecodable
  }
}

extension ImagingLimits {
  /// Creates the usual limits with a change.
  init(_ change: (inout ImagingLimits) -> Void) {
    self.init()
    change(&self)
  }
}

extension ImageError? {
  /// Whether the error says that a source is damaged.
  var isUndecodable: Bool { if case .undecodable = self { true } else { false } }
}

/// Returns whether two colours differ by at most `tolerance` in every band.
func isClose(_ left: [UInt8], to right: [UInt8], within tolerance: Int = 12) -> Bool {
  left.count == right.count
    && zip(left, right).allSatisfy { abs(Int($0) - Int($1)) <= tolerance }
}

/// Returns the colours of a result's pixels, three values each.
func colours(of made: Made) throws -> [UInt8] {
  let pixels = try made.pixels()
  return (0..<pixels.size.pixels).flatMap {
    pixels.rgb(x: $0 % pixels.size.width, y: $0 / pixels.size.width)
  }
}

/// Returns the RMSE of two lists of values in percent of full light.
func difference(_ left: [UInt8], from right: [UInt8]) -> Double {
  guard left.count == right.count else { return .infinity }
  let sum = zip(left, right).reduce(0) { $0 + (Int($1.0) - Int($1.1)) * (Int($1.0) - Int($1.1)) }
  return 100 * (Double(sum) / Double(left.count)).squareRoot() / 255
}

extension CodedPNG {
  /// Every colour type with its depths (PNG, third edition, table 11.1).
  static let kinds: [(type: Int, depth: Int)] = [
    (0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8),
    (4, 8), (4, 16), (6, 8), (6, 16),
  ]
}
